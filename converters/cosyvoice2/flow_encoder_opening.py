"""A flow encoder's checkpoint that is open: what its engines are made of and compared with, made when it is needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
import onnx_ir as ir
import torch
from numpy.typing import NDArray
from rknn_tts_runtime.carried_state import State, walk_states

from contracts.errors import UserInput
from converters.cosyvoice2.flow_encoder_file import open_encoder
from converters.cosyvoice2.flow_encoder_geometry import FIRST, STEADY, geometry_of
from converters.remembered import Remembered
from converters.stages import Array, Checkpoint, OpenSession, Session, StageOptions
from models.cosyvoice2.encoder import Encoder, encoder_of
from models.cosyvoice2.encoder_config import TABLE, UPSAMPLING
from models.cosyvoice2.encoder_host import HostHalf, host_graph
from models.cosyvoice2.encoder_states import (
    EMBEDDED,
    MASK,
    MEAN,
    OUT,
    StepSizes,
    input_shapes,
    output_shapes,
    state_shapes,
)
from models.cosyvoice2.encoder_step import Step, step_graph

FloatArray = NDArray[np.float32]

PROOF_SEED = 0
"""Of the tokens that the gates run on: none can be had without a language model, so they are drawn evenly."""

PROOF_STEPS = 4
"""Full steps of the stream that most gates run on; then a part of one."""

KEPT_RUNS = 3
"""Of each exported step: a stream's first step, one in its middle and its last one are several gates'."""


class EncoderOpening:
    """An open checkpoint: what all engines share is made when somebody needs it, and once."""

    def __init__(self, checkpoint: Checkpoint, options: StageOptions, open_session: OpenSession) -> None:
        self.file, self.open_session = checkpoint, open_session
        self.geometry = geometry_of(options)
        opened = open_encoder(checkpoint)
        self.config, self.weights = opened.config, opened.weights
        for sizes in self.geometry.steps.values():
            if sizes.look_ahead > self.config.look_ahead:
                raise UserInput(
                    f"--look-ahead {sizes.look_ahead}: the encoder of {self.file.path} sees {self.config.look_ahead} "
                    "tokens ahead at most."
                )
        self._models: dict[StepSizes, ir.Model] = {}
        self._sessions: dict[StepSizes, Session] = {}
        self._modules: dict[StepSizes, Step] = {}

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder in the original's arithmetic."""
        return encoder_of(self.weights, self.config)

    @cached_property
    def host(self) -> ir.Model:
        """The table of tokens and the layer of the speaker."""
        return host_graph(HostHalf(self.weights))

    def module(self, sizes: StepSizes) -> Step:
        """The step of these sizes."""
        if sizes not in self._modules:
            self._modules[sizes] = Step(self.encoder, sizes)
        return self._modules[sizes]

    def model(self, sizes: StepSizes) -> ir.Model:
        """The same as an ONNX graph, before any pass."""
        if sizes not in self._models:
            self._models[sizes] = step_graph(self.module(sizes))
        return self._models[sizes]

    def known(self, sizes: StepSizes) -> Session:
        """The same, opened, which runs no step twice that gates share."""
        if sizes not in self._sessions:
            self._sessions[sizes] = Remembered(self.open_session(self.model(sizes)), KEPT_RUNS)
        return self._sessions[sizes]

    def stepped(self, sizes: StepSizes, feed: Mapping[str, Array]) -> dict[str, Array]:
        """What the module of a step gives for `feed`."""
        inputs = [torch.from_numpy(np.asarray(feed[name])) for name in input_shapes(self.config, sizes)]
        with torch.no_grad():
            outputs = self.module(sizes)(*inputs)
        return dict(zip(output_shapes(self.config, sizes), (output.numpy() for output in outputs), strict=True))

    @cached_property
    def sizes(self) -> StepSizes:
        """Of the steps that a stream goes on with."""
        return self.geometry.steps[STEADY]

    @property
    def first(self) -> StepSizes | None:
        """Of the step that a stream may begin with, where there is one."""
        return self.geometry.steps.get(FIRST)

    @cached_property
    def tokens(self) -> NDArray[np.int64]:
        """The stream that most gates run on, [1, N], all of it within the history; its last step is partly empty."""
        sizes = self.sizes
        length = min(PROOF_STEPS * sizes.chunk + -(-sizes.chunk // 3), sizes.history)
        return self.drawn(length)

    def drawn(self, length: int) -> NDArray[np.int64]:
        """So many tokens of a stream, [1, length]: a longer one begins with a shorter one."""
        drawn = np.random.default_rng(PROOF_SEED).integers(0, self.config.tokens, (1, length))
        return drawn.astype(np.int64)

    def embedded(self, tokens: NDArray[np.int64]) -> FloatArray:
        """Their embeddings, [1, C, 1, N], looked up in numpy."""
        rows = self.weights[f"{TABLE}.weight"][tokens[0]]
        return np.ascontiguousarray(rows.T)[None, :, None]

    def whole(self, tokens: NDArray[np.int64], chunk: int | None, look_aheads: Sequence[int] = ()) -> FloatArray:
        """The mean [1, mel, 1, 2N] that the original gives for a whole stream; see `Encoder.forward`."""
        embedded = torch.from_numpy(self.embedded(tokens))[:, :, 0].transpose(1, 2)
        mean: FloatArray = self.encoder(embedded, chunk, look_aheads).numpy()
        return mean[:, :, None]

    def inputs(self, tokens: NDArray[np.int64], start: int, sizes: StepSizes) -> dict[str, Array]:
        """What a step that begins at `start` takes of the stream `tokens`, besides its states.

        Behind the stream's end stands the first token's embedding, which the mask keeps out.
        """
        real = self.embedded(tokens[:, start : start + sizes.seen])
        count = real.shape[3]
        filled = np.repeat(self.embedded(tokens[:, :1]), sizes.seen, axis=3)
        filled[..., :count] = real
        return {EMBEDDED: filled, MASK: (np.arange(sizes.seen) < count).astype(np.float32)[None, None, None]}

    def states(self) -> tuple[State, ...]:
        """What goes from step to step."""
        shapes = state_shapes(self.config, self.sizes.history)
        return tuple(State(name, name + OUT, shape) for name, shape in shapes.items())

    def walk(self, tokens: NDArray[np.int64], plan: Sequence[StepSizes]) -> Iterator[dict[str, Array]]:
        """The outputs of the exported steps over the stream `tokens`, whose last step may be partly empty.

        Args:
            tokens: [1, N].
            plan: of each step.
        """
        by_width = {sizes.seen: self.known(sizes) for sizes in dict.fromkeys(plan)}
        steps = (self.inputs(tokens, number * sizes.chunk, sizes) for number, sizes in enumerate(plan))

        def run(inputs: Mapping[str, Array]) -> Mapping[str, Array]:
            return by_width[inputs[EMBEDDED].shape[3]](inputs)

        return walk_states(run, self.states(), steps)

    def walked(self, tokens: NDArray[np.int64], plan: Sequence[StepSizes]) -> FloatArray:
        """The mean [1, mel, 1, 2N] that a walk gives."""
        means = [np.asarray(outputs[MEAN], np.float32) for outputs in self.walk(tokens, plan)]
        return np.concatenate(means, axis=3)[..., : UPSAMPLING * tokens.shape[1]]

    def plan(self, length: int, first: StepSizes, others: StepSizes) -> list[StepSizes]:
        """The steps over a stream of so many tokens."""
        return [first, *[others] * (-(-length // others.chunk) - 1)]

    def behind(self, sizes: StepSizes, steps: int) -> dict[str, Array]:
        """The states behind so many full steps of the stream, by the exported step."""
        states: dict[str, Array] = {
            name: np.zeros(shape, np.float32) for name, shape in state_shapes(self.config, sizes.history).items()
        }
        if not steps:
            return states
        *_, last = self.walk(self.tokens, [sizes] * steps)
        return {name: last[name + OUT] for name in states}
