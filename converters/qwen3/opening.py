"""A Qwen3 checkpoint that is open: what its engines are made of and compared with, made when somebody needs it."""

from __future__ import annotations

from functools import cached_property
from math import prod

import numpy as np
import onnx_ir as ir
import torch
from rknn_tts_runtime import CodeStep
from rknn_tts_runtime.stateful import RunStep
from torch import Tensor

from contracts.contract import Cache
from contracts.errors import UserInput
from converters.qwen3.checkpoint import open_checkpoint
from converters.qwen3.geometry import CODES, FIRST, HIDDEN, MAIN, geometry_of
from converters.qwen3.streams import CodeArray, FloatArray, columns, drawn_codes, proof_length
from converters.remembered import Remembered
from converters.stages import Array, Checkpoint, OpenSession, Session, StageOptions
from models.qwen3.cache import cache_layout, wave_frames
from models.qwen3.decoder import Decoder, decoder_of
from models.qwen3.runs import gains_of, quantized, voiced_and_watched
from models.qwen3.step import CodesStep, Step, cache_shape
from models.qwen3.step_graph import AUDIO, CACHE, CACHE_OUT, host_graph, step_graph
from surgery.rewrite_squares import rewrite_squares
from surgery.sine_forms import Form
from surgery.sine_soft import soft_offset, soft_reaches

PROOF_SEED, OTHER_SEED = 0, 1
"""Of the codes that most gates run on, and of others that the sines' reach is looked at on too."""

KEPT_RUNS = 3
"""Of each exported step: a stream's first step, a full one behind it, and a partly empty one are several gates'."""

OTHER_CODES = 64
"""Length of the other stream, which shows the reach only."""


class Opening:
    """An open checkpoint: what all engines share is made when somebody needs it, and once."""

    def __init__(self, checkpoint: Checkpoint, options: StageOptions, open_session: OpenSession) -> None:
        self.file, self.open_session = checkpoint, open_session
        self.geometry = geometry_of(options)
        self.checkpoint = open_checkpoint(checkpoint)
        self.config, self.sample_rate = self.checkpoint.config, self.checkpoint.sample_rate
        self.layout: Cache = cache_layout(self.config, self.geometry.cache)
        self._check_steps()
        self._models: dict[int, ir.Model] = {}
        self._sessions: dict[int, Session] = {}
        self._steps: dict[int, Step | CodesStep] = {}
        self._known: dict[int, Session] = {}

    def _check_steps(self) -> None:
        """A step gives at least as many frames, behind the first wave block, as the next one starts from."""
        config = self.config
        rate = prod(config.upsampling_ratios) * config.upsample_rates[0]
        least = -(-wave_frames(config) // rate)
        for size in (*self.geometry.steps.values(), *self.geometry.sizes.values()):
            if size.codes < least:
                raise UserInput(
                    f"{self.file.path}: a step of {size.codes} codes gives this decoder {rate * size.codes} frames "
                    f"behind its first block and {wave_frames(config)} are needed: --codes {least} or more."
                )

    @cached_property
    def decoder(self) -> Decoder:
        """The decoder in the reference's arithmetic."""
        return decoder_of(self.checkpoint.weights(), self.config)

    @cached_property
    def constants(self) -> list[Tensor]:
        """What each SnakeBeta leaves out where a step may: what the form of its sine has over."""
        gains = gains_of(self.decoder)
        soft = self.geometry.form is Form.SOFT
        return [
            torch.from_numpy(soft_offset(gain) if soft and soft_reaches(gain) else np.zeros_like(gain))
            for gain in gains
        ]

    def step(self, codes: int) -> Step | CodesStep:
        """The step of so many codes as a module, from the seam that is chosen."""
        if codes not in self._steps:
            made = Step(self.decoder, self.layout, codes, self.constants)
            self._steps[codes] = made if self.geometry.seam == HIDDEN else CodesStep(made, self.decoder.quantizer)
        return self._steps[codes]

    def shapes(self, codes: int) -> dict[str, tuple[int, ...]]:
        """Of the inputs of a step of so many codes, by name."""
        cache = cache_shape(self.config, self.layout)
        if self.geometry.seam == CODES:
            return {CODES: (1, self.config.num_quantizers, codes), CACHE: cache}
        return {HIDDEN: (1, self.config.codebook_dim, 1, codes), CACHE: cache}

    def model(self, codes: int) -> ir.Model:
        """The step of so many codes as an ONNX graph, before any pass."""
        if codes not in self._models:
            shapes = list(self.shapes(codes).values())
            self._models[codes] = step_graph(self.step(codes), self.geometry.seam, shapes)
        return self._models[codes]

    def session(self, codes: int) -> Session:
        """The same, opened; a square is a product to it.

        onnxruntime's power takes 23 times a product's time, 4 of 10 s of CPU for a step of 64 codes (measured, 1.23,
        which takes no power apart), and is off by a last bit where torch's, a product, is not.
        """
        if codes not in self._sessions:
            self._sessions[codes] = self.open_session(rewrite_squares().rewrite(self.model(codes)).model)
        return self._sessions[codes]

    def known(self, codes: int) -> Session:
        """The same, which runs no step twice that gates share."""
        if codes not in self._known:
            self._known[codes] = Remembered(self.session(codes), KEPT_RUNS)
        return self._known[codes]

    def run(self, codes: int) -> RunStep:
        """The step of so many codes as a walk runs it that is timed."""
        return self._walking(self.session(codes))

    def known_run(self, codes: int) -> RunStep:
        """The same as walks run it that are compared."""
        return self._walking(self.known(codes))

    def _walking(self, session: Session) -> RunStep:

        def run(window: Array, cache: FloatArray) -> tuple[Array, Array]:
            got = session(self.as_inputs(window, cache))
            return got[AUDIO], got[CACHE_OUT]

        return run

    @cached_property
    def host(self) -> ir.Model | None:
        """The quantizer, which the host looks up; none where the engine takes codes."""
        return host_graph(self.decoder.quantizer, self.config) if self.geometry.seam == HIDDEN else None

    @cached_property
    def codes(self) -> CodeArray:
        """The stream that most gates run on, [1, Q, N]: its last step is partly empty, however it is decoded."""
        steps = self.geometry.steps
        plans = [(0, size.codes) for size in steps.values()]
        if FIRST in steps:
            plans.append((steps[FIRST].codes, steps[MAIN].codes))
        return drawn_codes(self.config, proof_length(plans), PROOF_SEED)

    @cached_property
    def hidden(self) -> FloatArray:
        """The same behind the quantizer, [1, codebook_dim, N]."""
        return quantized(self.decoder, self.codes)

    @cached_property
    def seam(self) -> Array:
        """What steps take of the stream: codes or hidden states."""
        return self.codes if self.geometry.seam == CODES else self.hidden

    def drawn(self, length: int) -> Array:
        """The same of another stream, of so many codes."""
        codes = drawn_codes(self.config, length, PROOF_SEED)
        return codes if self.geometry.seam == CODES else quantized(self.decoder, codes)

    @cached_property
    def whole(self) -> tuple[FloatArray, list[FloatArray]]:
        """The whole decode [1, 1, 1920 N] of the stream, and how far its sines went (`models.qwen3.runs`)."""
        return voiced_and_watched(self.decoder, self.hidden)

    @cached_property
    def others(self) -> list[FloatArray]:
        """How far the sines went on other codes."""
        codes = drawn_codes(self.config, OTHER_CODES, OTHER_SEED)
        return voiced_and_watched(self.decoder, quantized(self.decoder, codes))[1]

    def audio_of(self, start: int, stop: int) -> FloatArray:
        """The whole decode's audio of the codes from `start` up to `stop`, [1, 1, samples]."""
        rate = self.config.samples_per_code
        return self.whole[0][..., rate * start : rate * stop]

    def zeros(self) -> FloatArray:
        """The cache of a stream's start."""
        return np.zeros(self.layout.numel, np.float32)

    def feed(self, step: CodeStep, cache: FloatArray) -> dict[str, Array]:
        """The inputs of `step` of the stream, behind `cache` of any shape."""
        return self.as_inputs(columns(self.seam[..., : step.start + step.valid], step.start, step.size), cache)

    def as_inputs(self, window: Array, cache: FloatArray) -> dict[str, Array]:
        """What the host hands over, `window` [1, C, B] and `cache`, in the shapes of a step's inputs."""
        shapes = self.shapes(window.shape[-1])
        return {self.geometry.seam: window.reshape(shapes[self.geometry.seam]), CACHE: cache.reshape(shapes[CACHE])}
