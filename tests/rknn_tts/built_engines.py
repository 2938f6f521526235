"""Engines with manifests as builds leave them, a few bytes each, for tests of what reads those alone."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from contracts.contract import HostHalf, Source, TensorSpec, Window
from contracts.files import sha256_of_bytes
from contracts.manifest import (
    EngineFile,
    LogSummary,
    Manifest,
    OnnxTwin,
    SetManifest,
    Toolkit,
    manifest_text,
)


def write_engine(
    folder: Path,
    name: str,
    stage: str,
    role: str | None = None,
    *,
    target: str = "rk3588",
    source: str = "voice.onnx",
    kind: str = "checkpoint",
    host: bytes | None = None,
    frames: int | None = None,
    **more: Any,
) -> Path:
    """An engine `name` (its stem) of `stage` ("piper.decoder"; "" of a foreign ONNX), with what stands beside it.

    Args:
        source: the checkpoint's name, which its digest is made of.
        host: what its host half holds; None where it has none.
        frames: of its window.
        more: other fields of the manifest.
    """
    folder.mkdir(parents=True, exist_ok=True)
    engine = folder / f"{name}.rknn"
    data = b"RKNN" + name.encode()
    engine.write_bytes(data)
    family, _, stage_name = stage.partition(".")
    half = None
    if host is not None:
        half = HostHalf(f"{family}-{stage_name}-host.onnx", sha256_of_bytes(host))
        (folder / half.file).write_bytes(host)
    given: dict[str, Any] = {
        "family": family or None,
        "stage": stage_name or None,
        "target": target,
        "toolkit": Toolkit("rknn-toolkit2", "2.3.2"),
        "source": Source(source, hashlib.sha256(source.encode()).hexdigest(), kind),
        "onnx": OnnxTwin(f"{name}.onnx", "ab" * 32, 15, 3),
        "engine": EngineFile(engine.name, sha256_of_bytes(data), len(data)),
        "inputs": (TensorSpec("x", (1, 4)),),
        "outputs": (TensorSpec("y", (1, 4)),),
        "layers": None,
        "memory": None,
        "log": LogSummary(),
        "role": role,
        "host": half,
        "window": None if frames is None else Window(frames, frames - 2, 1, 1, 256, 22050),
    }
    engine.with_suffix(".json").write_text(manifest_text(Manifest(**{**given, **more})), encoding="utf-8")
    return engine


def write_set(folder: Path, name: str, *engines: Path) -> Path:
    """The manifest of the set of `engines`."""
    place = folder / f"{name}.set.json"
    members = tuple(engine.with_suffix(".json").name for engine in engines)
    place.write_text(manifest_text(SetManifest(members)), encoding="utf-8")
    return place
