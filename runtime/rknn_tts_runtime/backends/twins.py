"""Engines' ONNX twins in onnxruntime, in the place of an NPU: fp32, on the CPU of a PC or a board.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from typing import Mapping, Sequence

import numpy as np

from rknn_tts_runtime.backends.engine import Array, MemoryUse
from rknn_tts_runtime.backends.feeds import fitted
from rknn_tts_runtime.backends.host_session import HostSession, HostTensor, imported_onnxruntime, open_host
from rknn_tts_runtime.faults import Mismatch, RunFault
from rknn_tts_runtime.identity import check_twin
from rknn_tts_runtime.manifest import EngineManifest, TensorInfo


class TwinEngine:
    """The twin of an engine, loaded: it takes and gives what the engine does (`backends.engine.Engine`).

    Attributes:
        inputs: what `run` takes, in order.
        outputs: what `run` gives, in order.
    """

    def __init__(self, manifest: EngineManifest, session: HostSession) -> None:
        self.inputs: tuple[TensorInfo, ...] = manifest.inputs
        self.outputs: tuple[TensorInfo, ...] = manifest.outputs
        self._session = session

    def run(self, feed: Mapping[str, Array]) -> dict[str, Array]:
        """One inference; see `backends.engine.Engine.run`."""
        arrays = fitted(self.inputs, feed, str(self._session.path))
        given = self._session.run(
            [info.name for info in self.outputs], {info.name: array for info, array in zip(self.inputs, arrays)}
        )
        return {info.name: self._own(info, given[info.name]) for info in self.outputs}

    def close(self) -> None:
        """Give back what it holds; once more does nothing."""
        self._session.close()

    def _own(self, info: TensorInfo, array: Array) -> Array:
        if array.size != np.prod(info.shape, dtype=np.int64):
            raise RunFault(
                f"{self._session.path}: its output '{info.name}' came in the shape {list(array.shape)}, "
                f"not {list(info.shape)}."
            )
        return np.array(array, dtype=np.float32).reshape(info.shape)


class TwinBackend:
    """Opens engines as their twins (`backends.engine.Backend`).

    Attributes:
        name: "onnx".
    """

    name = "onnx"

    def __init__(self, threads: int | None = None) -> None:
        """`threads` of a run; None: as many as onnxruntime takes."""
        self._threads = threads
        self._versions: dict[str, str] = {}

    def open(self, manifest: EngineManifest) -> TwinEngine:
        """The twin of `manifest`'s engine, loaded; the engine itself may be missing.

        Raises:
            BadInput: the twin is missing or cannot be loaded, or onnxruntime is not installed.
            Mismatch: it is not the twin that the manifest tells of.
        """
        check_twin(manifest)
        session = open_host(manifest.twin, self._threads)
        _check_tensors(manifest, "inputs", manifest.inputs, session.inputs)
        _check_tensors(manifest, "outputs", manifest.outputs, session.outputs)
        self._versions = {"onnxruntime": str(imported_onnxruntime(self.name).__version__)}
        return TwinEngine(manifest, session)

    def memory(self, manifest: EngineManifest) -> MemoryUse | None:
        """What the engine itself would map, as its manifest estimates it."""
        return None if manifest.context_bytes is None else MemoryUse(manifest.context_bytes, 0, measured=False)

    def versions(self) -> dict[str, str]:
        """{"onnxruntime": its version}; empty before anything was opened."""
        return dict(self._versions)


def _check_tensors(
    manifest: EngineManifest, kind: str, told: Sequence[TensorInfo], found: Sequence[HostTensor]
) -> None:
    has, expected = ([f"{name} {list(shape)} {dtype}" for name, shape, dtype in each] for each in (found, told))
    if has != expected:
        raise Mismatch(
            f"{manifest.twin}: its {kind} are {', '.join(has) or 'none'}; those of the engine, as {manifest.path.name} "
            f"tells, are {', '.join(expected) or 'none'}. Copy the engine, its manifest and its twin together."
        )
