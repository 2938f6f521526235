"""Backends that run nothing, and remember what was asked of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rknn_tts_runtime.backends.engine import Array, MemoryUse
from rknn_tts_runtime.faults import RunFault
from rknn_tts_runtime.manifest import EngineManifest, TensorInfo, read_manifest

Compute = Callable[[Mapping[str, Array]], Mapping[str, Array]]


class FakeEngine:
    """An engine of a manifest; `compute` gives its outputs, or all are zeros."""

    def __init__(self, manifest: EngineManifest, events: list[str], compute: Compute | None) -> None:
        self._manifest, self._events, self._compute, self._open = manifest, events, compute, True
        self.feeds: list[dict[str, Array]] = []

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        return self._manifest.inputs

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        return self._manifest.outputs

    def run(self, feed: Mapping[str, Array]) -> dict[str, Array]:
        assert self._open, "an engine that was closed is run"
        assert {name: array.size for name, array in feed.items()} == {
            tensor.name: int(np.prod(tensor.shape)) for tensor in self.inputs
        }
        self.feeds.append(dict(feed))
        if self._compute is not None:
            return dict(self._compute(feed))
        return {tensor.name: np.zeros(tensor.shape, np.float32) for tensor in self.outputs}

    def close(self) -> None:
        if self._open:
            self._events.append(f"close {self._manifest.engine.stem}")
        self._open = False


class FakeBackend:
    """Opens fake engines.

    Attributes:
        events: "open NAME", "refuse NAME" and "close NAME", in order.
        engines: what was opened, by the engine's stem.
        refusals: how often opening an engine of this stem is refused yet.
        code: what a refusal returns.
    """

    name = "fake"

    def __init__(
        self,
        measured: Mapping[str, MemoryUse] | None = None,
        refusals: Mapping[str, int] | None = None,
        compute: Compute | None = None,
        code: int = -4,
    ) -> None:
        self.events: list[str] = []
        self.engines: dict[str, FakeEngine] = {}
        self.refusals = dict(refusals or {})
        self.code = code
        self.asked: list[str] = []
        self._measured, self._compute = dict(measured or {}), compute

    def open(self, manifest: EngineManifest) -> FakeEngine:
        stem = manifest.engine.stem
        if self.refusals.get(stem, 0) > 0:
            self.refusals[stem] -= 1
            self.events.append(f"refuse {stem}")
            raise RunFault(f"rknn_init failed with code {self.code}", self.code)
        self.events.append(f"open {stem}")
        self.engines[stem] = FakeEngine(manifest, self.events, self._compute)
        return self.engines[stem]

    def memory(self, manifest: EngineManifest) -> MemoryUse | None:
        self.asked.append(manifest.engine.stem)
        return self._measured.get(manifest.engine.stem)

    def versions(self) -> dict[str, str]:
        return {}


def written_manifest(folder: Path, stem: str, **keys: Any) -> EngineManifest:
    """A manifest in `folder` with these keys besides those that it must have; its engine is not there."""
    data: dict[str, Any] = {
        "schema": "rknn-tts/engine/1",
        "target": "rk3588",
        "toolkit": {"version": "2.3.2"},
        "onnx": {"file": f"{stem}.onnx"},
        "engine": {"file": f"{stem}.rknn", "sha256": "0" * 64, "bytes": 1000},
        "inputs": [],
        "outputs": [],
        **keys,
    }
    path = folder / f"{stem}.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return read_manifest(path)
