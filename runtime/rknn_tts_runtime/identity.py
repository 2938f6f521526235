"""Whether an engine is the one that it is taken for: the contract inside it, its manifest, a plan and the board agree.

Every disagreement names both sides, and the command that builds the right engine.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import hashlib
import shlex
from pathlib import Path
from typing import Any, Mapping

from rknn_tts_runtime.faults import BadInput, Mismatch
from rknn_tts_runtime.manifest import RANDOM, EngineManifest, TensorInfo

TARGETS = ("rk3562", "rk3566", "rk3568", "rk3576", "rk3588")
"""The chips that engines are built for."""

SAME_NPU = {"rk3568": "rk3566"}
"""Chips that run engines of another: for RK3566 and RK3568 the toolkit writes the same engine but for the name (a small
graph, 2.3.2); that either runs that of the other was not measured on a board. The driver has the last word."""

SOURCE_DIGITS = 16
"""Of the checkpoint's digest: as many stand in the short contract (docs/manifest.md, Inside the engine)."""

STAND_IN = "seeded random weights: a stand-in, not a voice"
"""What is said of random weights, as the toolchain says it."""

_CLAIMED = (
    "family", "stage", "role", "target", "toolkit", "source", "window", "step", "trim", "cache", "precision",
)  # fmt: skip
"""Keys of a short contract that are called the same here, and left out where there is no such thing."""

_CHECKPOINT = "checkpoint"
_CHUNK_BYTES = 1 << 20
_SHOWN_CHARS = 200


def check_identity(manifest: EngineManifest, contract: Mapping[str, Any] | None, soc: str | None) -> None:
    """Check that the engine file, the contract inside it, its manifest and the board belong together.

    Args:
        manifest: the engine's.
        contract: `engine_file.short_contract_of` its engine.
        soc: the board's chip, `board.soc()`; None where it is not known: the driver will tell then.

    Raises:
        BadInput: the engine's file cannot be read.
        Mismatch: they disagree; or an engine of a family carries no contract.
    """
    _check_size(manifest)
    check_target(manifest, soc)
    if contract is None:
        if manifest.family is not None:
            raise Mismatch(
                f"{manifest.engine}: carries no contract, so it was not built by rknn-tts, or was changed since; "
                f"{manifest.path.name} says {_stage_of(manifest.family, manifest.stage, manifest.role)}. "
                f"{_build(manifest)}"
            )
        return
    found, told = _claims(contract), _told(manifest)
    for key, said in told.items():
        if key in found and found[key] != said:
            raise Mismatch(
                f"{manifest.engine}: its {key} is {_shown(found[key])} by the contract inside it, and {_shown(said)} "
                f"by its manifest {manifest.path.name}: they are of two engines. Copy the engine and its manifest "
                f"together. {_build(manifest)}"
            )


def check_target(manifest: EngineManifest, soc: str | None) -> None:
    """Check that the engine is for the chip `soc`, where that is known.

    Raises:
        Mismatch: it is for another.
    """
    if soc is None or runs_on(manifest.target, soc):
        return
    chip = _target_of(soc)
    remedy = _build(manifest, target=chip) if chip in TARGETS else "No engine can be built for that chip."
    raise Mismatch(f"{manifest.engine}: is for {manifest.target}, and this board has an {soc}. {remedy}")


def runs_on(target: str, soc: str) -> bool:
    """Whether engines for `target` run on the chip `soc`: "rk3588" on an "rk3588s", too."""
    chips = [SAME_NPU.get(chip, chip) for chip in map(_target_of, (target, soc))]
    return chips[0] == chips[1]


def check_stage(manifest: EngineManifest, family: str, stage: str) -> None:
    """Check that the engine is of the stage `stage` of `family`, as a plan's component takes it to be.

    Raises:
        Mismatch: it is of another, or of a foreign ONNX.
    """
    if (manifest.family, manifest.stage) == (family, stage):
        return
    found = _stage_of(manifest.family, manifest.stage, manifest.role)
    command = build_command(family, stage, manifest.target, manifest.toolkit)
    raise Mismatch(
        f"{manifest.engine}: is taken for {_stage_of(family, stage, None)}, and is {found}. "
        f"Name the right engine, or build it: {command}"
    )


def check_latent(manifest: EngineManifest, channels: int, tensor: str | None = None) -> None:
    """Check that the engine takes latents of `channels`, as a host half gives them.

    Args:
        manifest: the engine's.
        channels: axis 1 of what the host half gives.
        tensor: the engine's input that takes it; None: its first.

    Raises:
        Mismatch: it takes others, or has no such input.
    """
    info = _input(manifest, tensor)
    taken = info.shape[1] if len(info.shape) > 1 else 0
    if taken != channels:
        raise Mismatch(
            f"{manifest.engine}: its input '{info.name}' {list(info.shape)} takes {taken} channels, and the host half "
            f"gives {channels}: they are of two voices. {_build(manifest)}"
        )


def check_digest(manifest: EngineManifest) -> None:
    """Check the engine's file against the digest in its manifest.

    Raises:
        BadInput: it cannot be read.
        Mismatch: it is another file.
    """
    _check_file(manifest, manifest.engine, manifest.engine_sha256, "engine")


def check_twin(manifest: EngineManifest) -> None:
    """Check the engine's twin against the digest in the engine's manifest; as `check_digest`."""
    _check_file(manifest, manifest.twin, manifest.twin_sha256, "twin")


def check_host(manifest: EngineManifest, host: Path) -> None:
    """Check that the file `host` is the host half that the engine was exported with; as `check_digest`."""
    _check_file(manifest, host, manifest.host_sha256 or "", "host half")


def identity_notes(manifest: EngineManifest) -> tuple[str, ...]:
    """What a person should know of the engine, as sentences."""
    name = manifest.engine.name
    notes = []
    if manifest.stand_in:
        notes.append(f"{name}: {STAND_IN}.")
    if manifest.family is None:
        notes.append(f"{name}: is of a foreign ONNX: nothing tells what it is for.")
    if manifest.precision is not None:
        notes.append(f"{name}: is of 8 bits ({manifest.precision}), not fp16.")
    return tuple(notes)


def build_command(family: str, stage: str, target: str, toolkit: str, checkpoint: str | None = None) -> str:
    """The command that builds the engine of a stage, on a PC, in a checkout of rknn-tts."""
    told = {"FAMILY": family, "STAGE": stage, "TARGET": target, "TOOLKIT": toolkit, "CHECKPOINT": checkpoint}
    return " ".join(["make engine", *(f"{name}={shlex.quote(value)}" for name, value in told.items() if value)])


def sha256_of(path: Path) -> str:
    """Digest of the file `path` as hex digits; it is never in memory as a whole.

    Raises:
        BadInput: it cannot be read.
    """
    digest = hashlib.sha256()
    try:
        if path.exists() and not path.is_file():  # a pipe is waited for, a device may have no end
            raise BadInput(f"{path}: is no file; copy it again.")
        with path.open("rb") as file:
            for chunk in iter(lambda: file.read(_CHUNK_BYTES), b""):
                digest.update(chunk)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror}).") from error
    return digest.hexdigest()


def _check_size(manifest: EngineManifest) -> None:
    try:
        size = manifest.engine.stat().st_size
    except OSError as error:
        raise BadInput(f"{manifest.engine}: cannot be read ({error.strerror}).") from error
    if size != manifest.engine_bytes:
        raise Mismatch(
            f"{manifest.engine}: has {size} bytes, and by its manifest {manifest.path.name} {manifest.engine_bytes}: "
            f"it was cut off, or they are of two engines. Copy both again. {_build(manifest)}"
        )


def _check_file(manifest: EngineManifest, path: Path, sha256: str, kind: str) -> None:
    found = sha256_of(path)
    if found != sha256:
        told = f"the digest {sha256[:SOURCE_DIGITS]}" if sha256 else "no digest"
        together = "the engine and its manifest" + ("" if kind == "engine" else f" and its {kind}")
        raise Mismatch(
            f"{path}: its digest is {found[:SOURCE_DIGITS]}, and {manifest.path.name} has {told} of its {kind}: they "
            f"are of two exports. Copy {together} together. {_build(manifest)}"
        )


def _told(manifest: EngineManifest) -> dict[str, object]:
    """What the manifest says of what a short contract can say, in its form."""
    window, step = manifest.window, manifest.step
    return {
        "family": manifest.family,
        "stage": manifest.stage,
        "role": manifest.role,
        "target": manifest.target,
        "toolkit": manifest.toolkit,
        "source": manifest.source_sha256[:SOURCE_DIGITS],
        "stand-in": manifest.stand_in,
        "inputs": [[info.name, list(info.shape), info.dtype] for info in manifest.inputs],
        "outputs": [[info.name, list(info.shape), info.dtype] for info in manifest.outputs],
        "number of inputs": len(manifest.inputs),
        "number of outputs": len(manifest.outputs),
        "window": window and list(window),
        "step": step and [step.codes, step.samples_per_code, step.sample_rate, step.emitted],
        "trim": manifest.trim and manifest.trim.frames,
        "cache": manifest.cache_numel,
        "precision": manifest.precision,
    }


def _claims(contract: Mapping[str, Any]) -> dict[str, object]:
    """What the short contract says, under the names of `_told`; long lists of tensors stand in it as their number."""
    claims: dict[str, object] = {key: contract.get(key) for key in _CLAIMED}
    claims["stand-in"] = contract.get("stand_in", False)
    for key, name in (("in", "inputs"), ("out", "outputs")):
        tensors = contract.get(key)
        claims[name if isinstance(tensors, list) else f"number of {name}"] = tensors
    return claims


def _input(manifest: EngineManifest, name: str | None) -> TensorInfo:
    for info in manifest.inputs:
        if name is None or info.name == name:
            return info
    names = ", ".join(info.name for info in manifest.inputs) or "none"
    raise Mismatch(f"{manifest.engine}: has no input '{name or ''}'; its inputs are {names}. {_build(manifest)}")


def _build(manifest: EngineManifest, target: str | None = None) -> str:
    """The sentence with the command that builds what the manifest tells of, or that for another target."""
    target = target or manifest.target
    if manifest.family is None or manifest.stage is None:
        model = shlex.quote(manifest.twin.name)
        return f"To build it: make compile MODEL={model} TARGET={target} TOOLKIT={shlex.quote(manifest.toolkit)}"
    checkpoint = {_CHECKPOINT: manifest.source_name, RANDOM: RANDOM}.get(manifest.source_kind)
    command = build_command(manifest.family, manifest.stage, target, manifest.toolkit, checkpoint)
    return f"To build it: {command}"


def _target_of(chip: str) -> str:
    """The chip as targets are called: an `rk3588s` is an `rk3588` to the toolkit."""
    return next((target for target in TARGETS if chip.startswith(target)), chip)


def _stage_of(family: str | None, stage: str | None, role: str | None) -> str:
    if family is None:
        return "a foreign ONNX"
    return f"the {stage} of {family}" + (f" ({role})" if role else "")


def _shown(value: object) -> str:
    plain = isinstance(value, str) and value.isprintable()
    text = "none" if value is None else str(value) if plain else repr(value)
    return text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "..."
