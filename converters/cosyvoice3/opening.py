"""A flow estimator's checkpoint that is open: what its engines are made of, and what they are compared with."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import onnx_ir as ir

from converters.cosyvoice3.checkpoint import open_flow
from converters.cosyvoice3.geometry import lengths_of
from converters.cosyvoice3.solving import shown
from converters.stages import Array, Checkpoint, Equality, OpenSession, StageOptions
from models.cosyvoice3.dit import Dit
from models.cosyvoice3.layout import OUTPUT, input_shapes
from models.cosyvoice3.runs import FloatArray, dit_of, estimated, estimator_graph

ORIGINAL_DB = 100.0
"""Of one arithmetic in two programs, torch and onnxruntime: 133 dB measured of upstream's module and ours at the same
weights of two blocks; of 22 blocks, 114 dB of float32 against double precision at the solver's sixth time."""

ORIGINAL_FRAMES = 24
"""Of the run that the published graph is compared on, which takes any length: enough for kernels and attention."""


class FlowOpening:
    """An open checkpoint: what all engines share is made when somebody needs it, and once.

    The weights are in memory once: the estimator's parameters, and those of a graph of any length, are the checkpoint's
    arrays.
    """

    def __init__(self, checkpoint: Checkpoint, options: StageOptions, open_session: OpenSession) -> None:
        self.file, self.open_session = checkpoint, open_session
        self.lengths = {f"s{length}": length for length in lengths_of(options)}
        opened = open_flow(checkpoint)
        self.config, self._weights, self._graph = opened.config, opened.weights, opened.graph

    @cached_property
    def dit(self) -> Dit:
        """The estimator in upstream's arithmetic."""
        return dit_of(self._weights, self.config)

    def model(self, length: int) -> ir.Model:
        """The estimator for so many frames as an ONNX graph, before any pass."""
        return estimator_graph(self.dit, length)

    def owed(self, feed: Mapping[str, Array], frames: int) -> dict[str, Array]:
        """What the estimator gives for the first frames of `feed` alone, without padding."""
        return {OUTPUT: self.estimated({name: _cut(array, frames) for name, array in feed.items()})}

    def estimated(self, feed: Mapping[str, Array]) -> FloatArray:
        """What the estimator gives for `feed`."""
        return estimated(self.dit, feed)

    @cached_property
    def original(self) -> tuple[Equality, ...]:
        """The estimator against the graph that its weights were found in; nothing where they were in none."""
        graph, self._graph = self._graph, None
        if graph is None:
            return ()
        declared = next(value.shape for value in graph.graph.inputs if value.name == "x")
        size = declared[2] if declared is not None and len(declared) == 3 else None
        frames = size if isinstance(size, int) else ORIGINAL_FRAMES
        feed = shown(input_shapes(self.config, frames), frames, step=3)
        got = self.open_session(graph)(feed)
        detail = f"weights as they were found, in upstream's arithmetic, against the graph itself, {frames} frames"
        return (Equality("fp32.original", got, {OUTPUT: self.estimated(feed)}, ORIGINAL_DB, detail),)


def _cut(array: Array, frames: int) -> Array:
    """An input without what is behind `frames`; a time or a speaker has no frames."""
    return array[..., :frames] if array.ndim == 3 else array
