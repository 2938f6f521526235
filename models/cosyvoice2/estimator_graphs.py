"""CosyVoice2's flow estimator as graphs: whole for a fixed number of frames, a step of a stream, and the time.

    whole   x, mask, mu, time, spks, cond                          -> estimator_out
    step    the same, and states                                   -> estimator_out, and what becomes of the states
    host    t                                                      -> time

Names and shapes are those of the published graph but for the time, of which an engine is given what its residual blocks
add: sines of 1000 t are beyond what fp16 tells of t. The host reads them once for each t that its solver takes.

A step keeps its past in states (`rknn_tts_runtime.carried_state`): `BLOCK.tails`, the last two frames of what each
convolution read; `LAYER.keys` and `LAYER.values` of the last frames, which the host writes round and round, for
attention knows no order of frames; and `valid`, which of their places hold any. No tensor has more than 8191 channels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat

import onnx_ir as ir
import torch
from torch import Tensor, nn
from torch.nn import functional

from contracts.contract import CarriedState
from models.cosyvoice2.estimator import Weights, embedded_time
from models.cosyvoice2.estimator_config import HEAD_DIM, PAIR, EstimatorConfig, Shape
from models.cosyvoice2.estimator_layers import TAIL, Causal, Normed, Residual, Tails, Transformer
from models.npu_layers import MASKED, pointwise
from models.tracing import traced

X, MASK, MU, T, TIME, SPKS, COND = "x", "mask", "mu", "t", "time", "spks", "cond"
OUT = "estimator_out"
VALID, TAILS, FINAL = "valid", "tails", "final_block"
FRAMES = 3
"""The axis of frames in a state."""


class Estimator(nn.Module):
    """The estimator in an NPU's forms, for any number of frames, whole or a step."""

    def __init__(self, weights: Weights, config: EstimatorConfig) -> None:
        super().__init__()
        self.config = config
        self.residuals = nn.ModuleList(Residual(weights, f"{block}.0") for block in config.blocks)
        self.layers = nn.ModuleList(Transformer(weights, name) for name in config.layers)
        self.outer = nn.ModuleList(Causal(weights, f"{block}.2") for block in (config.blocks[0], config.blocks[-1]))
        self.final = Normed(weights, FINAL)
        self.project = pointwise(weights["final_proj.weight"][:, :, 0], weights["final_proj.bias"])

    def forward(
        self,
        given: Tensor,
        time: Tensor,
        bias: Tensor,
        tails: Iterator[Tails],
        past: Iterator[tuple[Tensor, Tensor] | None],
    ) -> tuple[Tensor, list[Tensor]]:
        """The velocity [2, mel, 1, T], and keys and values of its frames for each layer in order.

        Args:
            given: what the first block reads [2, 4 mel, 1, T].
            time: what residual blocks add, one behind the other [2, blocks channels, 1, 1].
            bias: added to scores [2 heads, 1, past and T].
            tails: the past of convolutions, of each block and of the final one.
            past: keys and values of the past, of each layer.
        """
        x, down, made = given, given, list[Tensor]()
        layers, outer = iter(self.layers), iter(self.outer)
        shifts = torch.split(time, self.config.channels, dim=1)
        for number, (residual, shift) in enumerate(zip(self.residuals, shifts, strict=True)):
            last, kept = number == len(self.residuals) - 1, next(tails)
            x = residual(torch.cat((x, down), dim=1) if last else x, shift, kept)
            for _ in range(self.config.depth):
                x, keys, values = next(layers)(x, bias, next(past))
                made += [keys, values]
            if number == 0:
                down = x
            if number == 0 or last:
                x = next(outer)(x, kept)
        out: Tensor = self.project(self.final(x, next(tails)))
        return out, made


class Whole(nn.Module):
    """All frames at once; those that `mask` leaves out stand behind the others."""

    def __init__(self, estimator: Estimator) -> None:
        super().__init__()
        self.estimator = estimator

    def forward(self, x: Tensor, mask: Tensor, mu: Tensor, time: Tensor, spks: Tensor, cond: Tensor) -> Tensor:
        """See the module."""
        bias = score_bias(mask, self.estimator.config)
        out, _ = self.estimator(joined(x, mu, spks, cond), time, bias, repeat(Tails(None)), repeat(None))
        result: Tensor = out.squeeze(2) * mask
        return result


class Step(nn.Module):
    """The frames of one chunk, behind those of which the states are."""

    def __init__(self, estimator: Estimator) -> None:
        super().__init__()
        self.estimator = estimator

    def forward(
        self,
        x: Tensor,
        mask: Tensor,
        mu: Tensor,
        time: Tensor,
        spks: Tensor,
        cond: Tensor,
        valid: Tensor,
        *states: Tensor,
    ) -> tuple[Tensor, ...]:
        """See the module; `valid` [1, 1, 1, S] is 1 where the past has a frame."""
        config = self.estimator.config
        known = torch.cat([valid.squeeze(1)] * PAIR)
        bias = score_bias(torch.cat((known, mask), dim=2), config)
        count = len(tail_shapes(config))
        tails, past = [Tails(old) for old in states[:count]], states[count:]
        pairs = list(zip(past[::2], past[1::2], strict=True))
        out, made = self.estimator(joined(x, mu, spks, cond), time, bias, iter(tails), iter(pairs))
        return (out.squeeze(2) * mask, mask[:1, :, None], *(each.new() for each in tails), *made)


class Time(nn.Module):
    """What residual blocks add at a time, one behind the other."""

    def __init__(self, weights: Weights, config: EstimatorConfig) -> None:
        super().__init__()
        self.weights = dict(weights)
        self.config = config

    def forward(self, t: Tensor) -> Tensor:
        """T [2] -> [2, blocks channels, 1, 1]."""
        time = functional.mish(embedded_time(self.weights, self.config, t))
        names = [f"{block}.0.mlp.1" for block in self.config.blocks]
        shifts = [functional.linear(time, self.weights[f"{n}.weight"], self.weights[f"{n}.bias"]) for n in names]
        return torch.cat(shifts, dim=1)[:, :, None, None]


def joined(x: Tensor, mu: Tensor, spks: Tensor, cond: Tensor) -> Tensor:
    """What the first block reads [2, 4 mel, 1, T]: the speaker is beside every frame."""
    speaker = spks[:, :, None, None].expand(-1, -1, -1, x.shape[2])
    return torch.cat((x[:, :, None], mu[:, :, None], speaker, cond[:, :, None]), dim=1)


def score_bias(mask: Tensor, config: EstimatorConfig) -> Tensor:
    """What scores of frames get that `mask` [2, 1, S] leaves out: [2 heads, 1, S]."""
    bias = (mask - 1) * -MASKED
    return torch.cat([bias[:1]] * config.heads + [bias[1:]] * config.heads)


def input_shapes(config: EstimatorConfig, frames: int, history: int | None = None) -> dict[str, Shape]:
    """Names and shapes of what a graph of so many frames takes; with a `history` of frames, of a step."""
    mel: Shape = (PAIR, config.mel, frames)
    shapes: dict[str, Shape] = {
        X: mel,
        MASK: (PAIR, 1, frames),
        MU: mel,
        TIME: (PAIR, len(config.blocks) * config.channels, 1, 1),
        SPKS: (PAIR, config.mel),
        COND: mel,
    }
    return shapes if history is None else {**shapes, **state_shapes(config, history)}


def state_shapes(config: EstimatorConfig, history: int) -> dict[str, Shape]:
    """Names and shapes of a step's states."""
    kept = (PAIR * config.heads, HEAD_DIM, 1, history)
    return {
        VALID: (1, 1, 1, history),
        **tail_shapes(config),
        **dict.fromkeys(_kept_names(config), kept),
    }


def tail_shapes(config: EstimatorConfig) -> dict[str, Shape]:
    """Names and shapes of the states that convolutions leave."""
    outer = (config.blocks[0], config.blocks[-1])
    read = {block: config.read(block) + config.channels * (2 if block in outer else 1) for block in config.blocks} | {
        FINAL: config.channels
    }
    return {f"{block}.{TAILS}": (PAIR, channels, 1, TAIL) for block, channels in read.items()}


def carried_states(config: EstimatorConfig) -> tuple[CarriedState, ...]:
    """What goes from step to step."""
    whole = tail_shapes(config)
    names = (VALID, *whole, *_kept_names(config))
    return tuple(CarriedState(name, new_name(name), None if name in whole else FRAMES) for name in names)


def new_name(state: str) -> str:
    """The output that belongs to a state: `new_valid` to `valid`, `LAYER.new_keys` to `LAYER.keys`."""
    of, dot, what = state.rpartition(".")
    return f"{of}{dot}new_{what}"


def whole_graph(estimator: Estimator, frames: int) -> ir.Model:
    """The estimator of so many frames as an ONNX graph."""
    return _graph(Whole(estimator), input_shapes(estimator.config, frames), [OUT])


def step_graph(estimator: Estimator, frames: int, history: int) -> ir.Model:
    """The step of so many frames behind a history of so many as an ONNX graph."""
    config = estimator.config
    outputs = [OUT, *(state.output for state in carried_states(config))]
    return _graph(Step(estimator), input_shapes(config, frames, history), outputs)


def time_graph(weights: Weights, config: EstimatorConfig) -> ir.Model:
    """The host half: t [2] -> time [2, blocks channels, 1, 1]."""
    return _graph(Time(weights, config), {T: (PAIR,)}, [TIME])


def _graph(module: nn.Module, shapes: dict[str, Shape], outputs: Iterable[str]) -> ir.Model:
    example = tuple(torch.zeros(shape) for shape in shapes.values())
    return traced(module.eval(), example, list(shapes), list(outputs))


def _kept_names(config: EstimatorConfig) -> tuple[str, ...]:
    return tuple(f"{layer}.{what}" for layer in config.layers for what in ("keys", "values"))
