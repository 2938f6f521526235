"""A flow estimator's checkpoint that is open: what its engines are made of and compared with, made when needed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cached_property

import numpy as np
import onnx_ir as ir
import torch
from numpy.typing import NDArray
from rknn_tts_runtime.carried_state import State
from torch import Tensor, nn

from converters.cosyvoice2.flow_estimator_drawn import Stream
from converters.cosyvoice2.flow_estimator_file import Weights, open_estimator
from converters.cosyvoice2.flow_estimator_geometry import STEP, geometry_of
from converters.remembered import Remembered
from converters.stages import Array, Checkpoint, OpenSession, Session, StageOptions
from models.cosyvoice2.estimator import chunk_sight, velocity
from models.cosyvoice2.estimator_config import PAIR
from models.cosyvoice2.estimator_graphs import (
    COND,
    MASK,
    MU,
    OUT,
    SPKS,
    TIME,
    Estimator,
    Step,
    Time,
    Whole,
    X,
    carried_states,
    state_shapes,
    step_graph,
    time_graph,
    whole_graph,
)

FloatArray = NDArray[np.float32]

KEPT_RUNS = 2
"""Of an exported graph: a step's feed holds all states, 120 MB at the published sizes."""


class EstimatorOpening:
    """An open checkpoint: what all engines share is made when somebody needs it, and once."""

    def __init__(self, checkpoint: Checkpoint, options: StageOptions, open_session: OpenSession) -> None:
        self.file, self.open_session = checkpoint, open_session
        self.geometry = geometry_of(options)
        opened = open_estimator(checkpoint)
        self.config, self.graph = opened.config, opened.graph
        self.weights = _tensors(opened.weights)
        self._models: dict[str, ir.Model] = {}
        self._sessions: dict[str, Session] = {}
        self._known: dict[str, Session] = {}

    @cached_property
    def estimator(self) -> Estimator:
        """The estimator in an NPU's forms."""
        return Estimator(self.weights, self.config)

    @cached_property
    def host(self) -> ir.Model:
        """What residual blocks add at a time."""
        return time_graph(self.weights, self.config)

    def module(self, role: str) -> nn.Module:
        """What the graph of the engine for `role` is traced from."""
        return Step(self.estimator) if role == STEP else Whole(self.estimator)

    def model(self, role: str) -> ir.Model:
        """The engine for `role` as an ONNX graph, before any pass."""
        if role not in self._models:
            step = self.geometry.step
            if role == STEP and step is not None:
                self._models[role] = step_graph(self.estimator, step.frames, step.history)
            else:
                self._models[role] = whole_graph(self.estimator, self.geometry.lengths[role])
        return self._models[role]

    def session(self, role: str) -> Session:
        """The same, opened."""
        if role not in self._sessions:
            self._sessions[role] = self.open_session(self.model(role))
        return self._sessions[role]

    def known(self, role: str) -> Session:
        """The same, which makes no run twice that gates share; not for a walk, which changes states in place."""
        if role not in self._known:
            self._known[role] = Remembered(self.session(role), KEPT_RUNS)
        return self._known[role]

    def ran(self, role: str, feed: Mapping[str, Array]) -> dict[str, Array]:
        """What the module of the engine for `role` gives for `feed`, its inputs in order."""
        with torch.no_grad():
            given = self.module(role)(*(torch.from_numpy(np.asarray(array, np.float32)) for array in feed.values()))
        outputs = given if isinstance(given, tuple) else (given,)
        names = [OUT, *(state.output for state in carried_states(self.config))][: len(outputs)]
        return {name: output.numpy() for name, output in zip(names, outputs, strict=True)}

    def time(self, stream: Stream) -> FloatArray:
        """What the host half gives at a stream's time, in torch."""
        with torch.no_grad():
            made: FloatArray = Time(self.weights, self.config)(torch.from_numpy(stream.t)).numpy()
        return made

    def whole(self, stream: Stream, chunk: int | None = None, history: int | None = None) -> FloatArray:
        """The velocity [2, mel, N] of a stream by the original's arithmetic, without padding; in chunks, see
        `models.cosyvoice2.estimator.chunk_sight`."""
        frames = stream.x.shape[2]
        seen = None if chunk is None else chunk_sight(frames, chunk, history)
        mask = np.ones((PAIR, 1, frames), np.float32)
        arrays = (stream.x, mask, stream.mu, stream.t, stream.spks, stream.cond)
        x, masked, mu, t, spks, cond = (torch.from_numpy(array) for array in arrays)
        with torch.no_grad():
            made: FloatArray = velocity(self.weights, self.config, x, masked, mu, t, spks, cond, seen).numpy()
        return made

    def feed(self, stream: Stream, frames: int) -> dict[str, Array]:
        """The inputs of a graph of so many frames, those of `stream` in front; behind them is what the mask leaves out,
        and no zeros."""
        real = stream.x.shape[2]
        padded = {
            name: np.concatenate((array, np.ones((*array.shape[:2], frames - real), np.float32)), axis=2)
            for name, array in ((X, stream.x), (MU, stream.mu), (COND, stream.cond))
        }
        mask = np.broadcast_to(np.arange(frames) < real, (PAIR, 1, frames)).astype(np.float32)
        return {
            X: padded[X],
            MASK: mask,
            MU: padded[MU],
            TIME: self.time(stream),
            SPKS: stream.spks,
            COND: padded[COND],
        }

    def states(self) -> tuple[State, ...]:
        """What goes from step to step."""
        assert self.geometry.step is not None
        shapes = state_shapes(self.config, self.geometry.step.history)
        return tuple(State(s.input, s.output, shapes[s.input], s.axis) for s in carried_states(self.config))


def _tensors(weights: Weights) -> dict[str, Tensor]:
    """The same memory, in torch; it is never written to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of arrays that may not be written to
        return {name: torch.from_numpy(array) for name, array in weights.items()}
