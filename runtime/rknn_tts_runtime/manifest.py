"""What a board reads of an engine's manifest (schema rknn-tts/engine/1) and of a set's (rknn-tts/set/1).

A manifest is data from a file: its size is checked before it is read, and every key that is used before it is used.
Keys that are not known are left alone, so that a newer manifest can be read.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rknn_tts_runtime.faults import BadInput

ENGINE_SCHEMA = "rknn-tts/engine/1"
SET_SCHEMA = "rknn-tts/set/1"

LARGEST_BYTES = 16 << 20
"""Of a manifest or plan that is read: the largest manifest known (134 states, their shapes and verdicts) has 0.1 MB."""

LARGEST_AXIS = 1 << 31
"""Of a shape that is believed: the NPU's address space is of 32 bits."""

MOST_MAPPED = 1 << 48
"""Of bytes that an engine is believed to map: one of 900 frames asked for 4710850560, more than there are addresses
(reference, "The IOVA ceiling"), and its manifest is to tell so."""


class TensorInfo(NamedTuple):
    """Name, static shape and dtype ("float32", "int64") of an input or output."""

    name: str
    shape: tuple[int, ...]
    dtype: str


class WindowInfo(NamedTuple):
    """Geometry of a fixed window: `left + emitted + right == frames`; `hop` samples a frame."""

    frames: int
    emitted: int
    left: int
    right: int
    hop: int
    sample_rate: int | None


class StepInfo(NamedTuple):
    """Geometry of a step of codes: `context + emitted == codes`."""

    codes: int
    samples_per_code: int
    sample_rate: int | None
    context: int
    emitted: int


class StateInfo(NamedTuple):
    """A tensor that a step takes from the one before it, see `carried_state.State`."""

    input: str
    output: str
    axis: int | None


@dataclass(frozen=True)
class EngineManifest:
    """One engine, as its manifest tells of it.

    Attributes:
        path: the manifest's file.
        family, stage, role: None for a foreign ONNX, or where it has none.
        target: the chip.
        toolkit: version of the toolkit that compiled it.
        engine: the engine's file; it may be missing where only twins are run.
        engine_sha256: its digest.
        engine_bytes: its size.
        twin: the ONNX it was compiled from.
        host: the host half's file; None where the stage has none.
        inputs, outputs: its tensors, in order.
        window, step: its geometry, where it has one.
        cache_numel: elements of its flat cache, where it has one.
        state: what goes from step to step.
        modelled_ms: modelled time of a run; None where it is not known.
        context_bytes: what a loaded engine maps, estimated; None where it is not known.
        stand_in: whether its weights are seeded random ones.
        data: the whole manifest.
        largest_mapping_bytes: of what it maps, the largest mapping, estimated; None likewise.
    """

    path: Path
    family: str | None
    stage: str | None
    role: str | None
    target: str
    toolkit: str
    engine: Path
    engine_sha256: str
    engine_bytes: int
    twin: Path
    host: Path | None
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    window: WindowInfo | None
    step: StepInfo | None
    cache_numel: int | None
    state: tuple[StateInfo, ...]
    modelled_ms: float | None
    context_bytes: int | None
    stand_in: bool
    data: dict[str, Any]
    largest_mapping_bytes: int | None = None


def manifest_of(engine: Path) -> EngineManifest:
    """The manifest of the engine file `engine`: the JSON beside it, of the same stem.

    Raises:
        BadInput: there is none, or it tells of another file.
    """
    path = engine.with_suffix(".json")
    if not path.is_file():
        raise BadInput(
            f"{engine}: its manifest {path.name} is not beside it; an engine and its manifest are copied together."
        )
    manifest = read_manifest(path)
    if manifest.engine.name != engine.name:
        raise BadInput(f"{path}: is the manifest of {manifest.engine.name}, not of {engine.name}; copy the right one.")
    return manifest


def read_manifest(path: Path) -> EngineManifest:
    """The manifest in the file `path`.

    Raises:
        BadInput: it cannot be read, is no engine manifest, or a key of it is missing or of another kind.
    """
    data = read_json(path, "a manifest")
    if not isinstance(data, dict) or data.get("schema") != ENGINE_SCHEMA:
        found = data.get("schema") if isinstance(data, dict) else None
        raise BadInput(f"{path}: is no engine manifest: its schema is {found!r}, expected {ENGINE_SCHEMA!r}.")
    read = _Reader(path, data)
    source = read.table("source")
    layers, aperture, cache = read.table("layers"), read.table("aperture"), read.table("cache")
    window, step, host = read.table("window"), read.table("step"), read.table("host")
    return EngineManifest(
        path=path,
        family=read.text("family", optional=True),
        stage=read.text("stage", optional=True),
        role=read.text("role", optional=True),
        target=read.text("target") or "",
        toolkit=read.text("toolkit.version") or "",
        engine=read.file("engine.file"),
        engine_sha256=read.text("engine.sha256") or "",
        engine_bytes=read.whole("engine.bytes", least=1),
        twin=read.file("onnx.file"),
        host=read.file("host.file") if host else None,
        inputs=read.tensors("inputs"),
        outputs=read.tensors("outputs"),
        window=read.window() if window else None,
        step=read.step() if step else None,
        cache_numel=read.whole("cache.numel", least=1) if cache else None,
        state=read.states(),
        modelled_ms=read.number("layers.modelled_ms") if layers else None,
        context_bytes=read.mapped("aperture.context_bytes") if aperture else None,
        stand_in=bool(source) and source.get("kind") == "random",
        data=data,
        largest_mapping_bytes=read.mapped("aperture.largest_mapping_bytes") if aperture else None,
    )


def read_json(path: Path, what: str) -> object:
    """The JSON data in the file `path`, which is to be `what` ("a plan").

    Raises:
        BadInput: it cannot be read, is larger than any of ours, or is no JSON.
    """
    try:
        size = path.stat().st_size
        if size > LARGEST_BYTES:
            raise BadInput(
                f"{path}: has {size} bytes, and is no {what.split()[-1]}: those have {LARGEST_BYTES} at most."
            )
        return json.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        raise BadInput(f"{path}: cannot be read as {what} ({error.strerror}).") from error
    except RecursionError as error:
        raise BadInput(f"{path}: is nested too deep to be {what}.") from error
    except ValueError as error:
        raise BadInput(f"{path}: is not JSON, so no {what.split()[-1]} ({error}).") from error


class _Reader:
    """Reads keys of a manifest, each by its dotted name, and refuses what is not of its kind."""

    def __init__(self, path: Path, data: dict[str, Any]) -> None:
        self._path = path
        self._data = data

    def text(self, key: str, optional: bool = False) -> str | None:
        value = self._found(key)
        if value is None and optional:
            return None
        if not isinstance(value, str) or not value:
            raise self._wrong(key, value, "a text")
        return value

    def whole(self, key: str, least: int) -> int:
        return self._whole(key, self._found(key), least)

    def mapped(self, key: str) -> int:
        return self._whole(key, self._found(key), 0, MOST_MAPPED)

    def number(self, key: str) -> float:
        value = self._found(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
            raise self._wrong(key, value, "a number from 0")
        return float(value)

    def table(self, key: str) -> dict[str, Any]:
        value = self._found(key)
        if value is not None and not isinstance(value, dict):
            raise self._wrong(key, value, "an object")
        return value or {}

    def file(self, key: str) -> Path:
        name = self.text(key) or ""
        if "/" in name or "\\" in name or "\0" in name or name in (".", ".."):
            raise self._wrong(key, name, "the name of a file beside it")
        return self._path.parent / name

    def tensors(self, key: str) -> tuple[TensorInfo, ...]:
        return tuple(self._tensor(f"{key}[{place}]", item) for place, item in enumerate(self._list(key)))

    def window(self) -> WindowInfo:
        least = {"frames": 1, "emitted": 1, "left": 0, "right": 0, "hop": 1}
        sizes = {name: self.whole(f"window.{name}", bound) for name, bound in least.items()}
        if sizes["left"] + sizes["emitted"] + sizes["right"] != sizes["frames"]:
            raise self._wrong("window", sizes, "left + emitted + right = frames")
        return WindowInfo(**sizes, sample_rate=self._optional("window.sample_rate"))

    def step(self) -> StepInfo:
        least = {"codes": 1, "samples_per_code": 1, "context": 0, "emitted": 1}
        sizes = {name: self.whole(f"step.{name}", bound) for name, bound in least.items()}
        if sizes["context"] + sizes["emitted"] != sizes["codes"]:
            raise self._wrong("step", sizes, "context + emitted = codes")
        return StepInfo(**sizes, sample_rate=self._optional("step.sample_rate"))

    def states(self) -> tuple[StateInfo, ...]:
        states = []
        for place, item in enumerate(self._list("state") if "state" in self._data else []):
            key = f"state[{place}]"
            names = (item.get("input"), item.get("output")) if isinstance(item, dict) else (None, None)
            axis = item.get("axis") if isinstance(item, dict) else None
            if not all(isinstance(name, str) for name in names):
                raise self._wrong(key, item, "the names of an input and an output")
            states.append(StateInfo(str(names[0]), str(names[1]), None if axis is None else self._whole(key, axis, 0)))
        return tuple(states)

    def _tensor(self, key: str, item: object) -> TensorInfo:
        shape = item.get("shape") if isinstance(item, dict) else None
        if not isinstance(item, dict) or not isinstance(item.get("name"), str) or not isinstance(shape, list):
            raise self._wrong(key, item, "a tensor's name, shape and dtype")
        axes = tuple(self._whole(f"{key}.shape", axis, 1) for axis in shape)
        return TensorInfo(item["name"], axes, str(item.get("dtype", "float32")))

    def _list(self, key: str) -> list[Any]:
        value = self._found(key)
        if not isinstance(value, list):
            raise self._wrong(key, value, "a list")
        return value

    def _optional(self, key: str) -> int | None:
        value = self._found(key)
        return None if value is None else self._whole(key, value, 1)

    def _whole(self, key: str, value: object, least: int, most: int = LARGEST_AXIS) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self._wrong(key, value, f"a whole number from {least}")
        return value

    def _found(self, key: str) -> Any:
        value: Any = self._data
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return value

    def _wrong(self, key: str, value: object, expected: str) -> BadInput:
        return BadInput(f"{self._path}: {key} is {value!s:.80}, expected {expected}; export the engine again.")
