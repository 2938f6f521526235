"""What a loaded engine is to the walks, whatever runs it.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Protocol

import numpy.typing as npt

from rknn_tts_runtime.manifest import EngineManifest, TensorInfo

Array = npt.NDArray[Any]


class MemoryUse(NamedTuple):
    """What one loaded engine maps into the NPU's address space, in bytes.

    Attributes:
        weight_bytes: weights.
        internal_bytes: tensors between layers.
        measured: True where the driver told it; False where it is the manifest's estimate (one number, as weights).
    """

    weight_bytes: int
    internal_bytes: int
    measured: bool


class Engine(Protocol):
    """An engine that is loaded. Not for two threads at once.

    Attributes:
        inputs: what `run` takes, in order.
        outputs: what `run` gives, in order.
    """

    @property
    def inputs(self) -> tuple[TensorInfo, ...]: ...

    @property
    def outputs(self) -> tuple[TensorInfo, ...]: ...

    def run(self, feed: Mapping[str, Array]) -> dict[str, Array]:
        """One inference.

        Args:
            feed: every input by name, of its dtype, with its number of elements in its order; axes of one may be
                missing or too many.

        Returns:
            Every output by name, float32, of the shape in `outputs`, in arrays of its own.

        Raises:
            BadInput: an input is missing, is not known, or has another dtype or number of elements.
            RunFault: the run failed, or gave less than its outputs hold.
        """

    def close(self) -> None:
        """Give back what it holds; once more does nothing."""


class Backend(Protocol):
    """What opens engines.

    Attributes:
        name: "librknnrt" or "onnx".
    """

    @property
    def name(self) -> str: ...

    def open(self, manifest: EngineManifest) -> Engine:
        """The engine of `manifest`, loaded, its identity checked.

        Raises:
            Mismatch: it is not the engine that its manifest tells of, or not one for this board.
            RunFault: it cannot be loaded.
        """

    def memory(self, manifest: EngineManifest) -> MemoryUse | None:
        """What the engine would map, without loading its network; None where nothing tells."""

    def versions(self) -> dict[str, str]:
        """What runs it: {"api": ..., "driver": ...} or {"onnxruntime": ...}; empty before anything was opened."""
