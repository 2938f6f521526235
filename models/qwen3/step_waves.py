"""The wave decoder of a streaming step, from the latent of 4 B frames to 1920 B samples. Signals are [1, C, T, 1].

Time stands on the height, as the compiler joins phases and cuts steps best. The first block is behind what is cached of
each convolution. The others start from its last outputs: their frames are decoded twice, all of them behind zeros
(`body`), which is wrong for the first few and right for the rest; and those few behind the cached outputs (`head`),
each convolution's inputs times what the cache says is valid, for it must see zeros where there was no earlier code.

In the body, a SnakeBeta leaves out a constant for each channel, which the convolution behind it has in its bias: so a
pass that writes the sine with that constant left over needs no step for it. At the zeros in front that is wrong, where
the body is.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.qwen3.cache import WAVE
from models.qwen3.layers import SNAKE_EPSILON, CausalConv, CausalTransposedConv, ResidualUnit, SnakeBeta, WaveBlock
from models.qwen3.step_cache import State, grouped

FUSED_PAD = 15
"""The longest padding that the compiler takes into a convolution; a longer one is a layer of its own (measured)."""

LONGEST_FACTOR = 8191
"""An elementwise layer's length must be a product of two numbers up to this: 41397 = 3 * 13799 overflows fields
(measured, 2.3.2)."""

Constants = Sequence[Tensor]
"""Of each SnakeBeta in the decoder's order, [C]."""


class Waves(nn.Module):
    """The wave decoder of B codes."""

    def __init__(self, decoder: nn.Sequential, constants: Constants) -> None:
        super().__init__()
        first, block, *rest = decoder
        self.first_conv = StepConv(cast(CausalConv, first).conv)
        self.first_block = FirstBlock(cast(WaveBlock, block))
        following = list(constants[count_snakes(block) :])
        blocks = [cast(WaveBlock, layer) for layer in rest[:-2]]
        self.blocks = nn.ModuleList()
        for each in blocks:
            count = count_snakes(each)
            self.blocks.append(Block(each, following[:count]))
            following = following[count:]
        self.last = Last(cast(SnakeBeta, rest[-2]), cast(CausalConv, rest[-1]), following[0])
        self.samples = prod(cast(Block, each).rate for each in self.blocks)

    def forward(self, x: Tensor, valid: Tensor, old: State, new: State) -> Tensor:
        """One step.

        Args:
            x: [1, latent_dim, 4 B, 1], of at least as many codes as make the frames that are kept.
            valid: [1, 1, 1, 1]: 1 where there was an earlier code.
            old: the slices of the cache.
            new: takes those of the next.

        Returns:
            [1, 1, 1920 B, 1], not yet clipped.
        """
        x = self.first_block(self.first_conv(behind_tail(x, "decoder.0", old, new)), old, new)
        before = _flat(old[WAVE])
        kept = before.shape[2]
        new[WAVE] = grouped(x[:, :, -kept:], old[WAVE].shape[1])
        head = self._head(torch.cat((before, x[:, :, :kept]), dim=2), kept, valid)
        body = x
        for block in self.blocks:
            body = block(body)
        body = self.last(body)
        wrong = kept * self.samples
        return torch.cat((head[:, :, wrong:], body[:, :, wrong:]), dim=2)

    def _head(self, x: Tensor, before: int, valid: Tensor) -> Tensor:
        ones = torch.ones(1, 1, x.shape[2] - before, 1, dtype=valid.dtype)
        known = torch.cat((valid.expand(1, 1, before, 1), ones), dim=2)
        for block in self.blocks:
            x, known = cast(Block, block).masked(x, known)
        return self.last.exact(x)


class StepConv(nn.Module):
    """A convolution over time, of what has its past in front; `constant` [I] was left out of its input."""

    def __init__(self, layer: nn.Conv1d, constant: Tensor | None = None, like: StepConv | None = None) -> None:
        super().__init__()
        outs, ins, taps = layer.weight.shape
        with torch.device("meta"):
            self.conv = nn.Conv2d(ins, outs, (taps, 1), dilation=(int(layer.dilation[0]), 1))
        shared = like.conv.weight if like is not None else nn.Parameter(layer.weight[..., None], requires_grad=False)
        self.conv.weight = shared
        assert layer.bias is not None
        bias = layer.bias
        if constant is not None:
            bias = (bias.double() + layer.weight.double().sum(dim=2) @ constant.double()).to(bias.dtype)
        self.conv.bias = nn.Parameter(bias, requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        """X [1, I, history + T, 1] -> [1, O, T, 1]."""
        out: Tensor = self.conv(x)
        return out


class StepSnake(nn.Module):
    """SnakeBeta, its exponentials taken: x + sin^2(scale x) / size, less a constant where that is wanted."""

    scale: Tensor
    size: Tensor
    constant: Tensor

    def __init__(self, snake: SnakeBeta, constant: Tensor) -> None:
        super().__init__()
        self.register_buffer("scale", torch.exp(snake.alpha.double()).float()[None, :, None, None])
        self.register_buffer("size", (torch.exp(snake.beta.double()) + SNAKE_EPSILON).float()[None, :, None, None])
        self.register_buffer("constant", constant.float()[None, :, None, None])
        self.leaves_out = bool(constant.any())

    def forward(self, x: Tensor) -> Tensor:
        """X [1, C, T, 1]."""
        return x + self._square(x)

    def less(self, x: Tensor) -> Tensor:
        """The same without the constant."""
        square = self._square(x)
        return x + (square - self.constant if self.leaves_out else square)

    def _square(self, x: Tensor) -> Tensor:
        return torch.sin(x * self.scale) ** 2 / self.size


class Upsampling(nn.Module):
    """A causal transposed convolution, as one convolution to all phases' channels, which then stand in turn.

    Output t rate + j is what tap j makes of input t, tap rate + j of input t - 1, and so on.
    """

    def __init__(self, layer: CausalTransposedConv, constant: Tensor | None = None) -> None:
        super().__init__()
        weight, bias = layer.conv.weight, layer.conv.bias
        assert bias is not None
        self.rate, self.history = layer.rate, layer.history
        taps = [weight[:, :, self.rate * ago : self.rate * (ago + 1)] for ago in reversed(range(self.history + 1))]
        kernel = torch.stack(taps, dim=-1).permute(2, 1, 0, 3).reshape(-1, weight.shape[0], self.history + 1)
        with torch.device("meta"):
            phases = nn.Conv1d(weight.shape[0], kernel.shape[0], self.history + 1)
        phases.weight = nn.Parameter(kernel, requires_grad=False)
        phases.bias = nn.Parameter(bias.repeat(self.rate), requires_grad=False)
        self.plain = StepConv(phases)
        self.less = StepConv(phases, constant, self.plain) if constant is not None else self.plain

    def forward(self, joined: Tensor) -> Tensor:
        """What has its past in front, [1, I, history + T, 1] -> [1, O, T rate, 1]."""
        return self._in_turn(self.plain(joined))

    def body(self, x: Tensor) -> Tensor:
        """X [1, I, T, 1] behind zeros, without its constant."""
        return self._in_turn(self.less(_padded(x, self.history)))

    def _in_turn(self, phases: Tensor) -> Tensor:
        parts = phases.chunk(self.rate, dim=1)
        joined = torch.cat(parts, dim=3)
        return joined.reshape(1, parts[0].shape[1], -1, 1)


class Unit(nn.Module):
    """A residual unit, its SnakeBetas' constants known."""

    def __init__(self, unit: ResidualUnit, constants: Constants) -> None:
        super().__init__()
        self.history = unit.conv1.history
        self.act1, self.act2 = StepSnake(unit.act1, constants[0]), StepSnake(unit.act2, constants[1])
        self.conv1, self.conv2 = StepConv(unit.conv1.conv), StepConv(unit.conv2.conv)
        self.less1 = StepConv(unit.conv1.conv, constants[0], self.conv1) if self.act1.leaves_out else self.conv1
        self.less2 = StepConv(unit.conv2.conv, constants[1], self.conv2) if self.act2.leaves_out else self.conv2

    def forward(self, x: Tensor) -> Tensor:
        """The body: x [1, C, T, 1] behind zeros."""
        behind = padding_behind(self.history, x.shape[2])
        inner = self.less1(_padded(self.act1.less(x), self.history - behind))
        out: Tensor = self.less2(_padded(self.act2.less(inner), behind)) + x
        return out

    def exact(self, x: Tensor) -> Tensor:
        """X [1, C, T, 1] behind zeros, right from the first frame on."""
        return self.of(x, _padded(self.act1(x), self.history))

    def of(self, x: Tensor, joined: Tensor) -> Tensor:
        """X, and what its first SnakeBeta gives behind its past."""
        out: Tensor = self.conv2(self.act2(self.conv1(joined))) + x
        return out


class FirstBlock(nn.Module):
    """The wave block whose convolutions have their tails in the cache."""

    def __init__(self, block: WaveBlock) -> None:
        super().__init__()
        snake, up, *units = block.block
        self.snake, self.up = _plain(cast(SnakeBeta, snake)), Upsampling(cast(CausalTransposedConv, up))
        made = [cast(ResidualUnit, unit) for unit in units]
        self.units = nn.ModuleList(Unit(unit, [torch.zeros_like(unit.act1.alpha)] * 2) for unit in made)

    def forward(self, x: Tensor, old: State, new: State) -> Tensor:
        """X [1, C, T, 1] -> [1, C / 2, T rate, 1]."""
        x = self.up(behind_tail(self.snake(x), "decoder.1.up", old, new))
        for number, unit in enumerate(cast("list[Unit]", list(self.units))):
            x = unit.of(x, behind_tail(unit.act1(x), f"decoder.1.units.{number}", old, new))
        return x


class Block(nn.Module):
    """A wave block that starts anew in each step."""

    def __init__(self, block: WaveBlock, constants: Constants) -> None:
        super().__init__()
        snake, up, *units = block.block
        self.snake = StepSnake(cast(SnakeBeta, snake), constants[0])
        self.up = Upsampling(cast(CausalTransposedConv, up), constants[0] if self.snake.leaves_out else None)
        self.rate = self.up.rate
        self.units = nn.ModuleList(
            Unit(cast(ResidualUnit, unit), constants[1 + 2 * number : 3 + 2 * number])
            for number, unit in enumerate(units)
        )

    def forward(self, x: Tensor) -> Tensor:
        """The body: x [1, C, T, 1] behind zeros."""
        x = self.up.body(self.snake.less(x))
        for unit in self.units:
            x = unit(x)
        return x

    def masked(self, x: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
        """X where each convolution sees zeros wherever `known` [1, 1, T, 1] is 0; and `known` behind the block."""
        x = self.up(_padded(self.snake(x * known), self.up.history))
        known = known.repeat_interleave(self.rate, dim=2)
        x = x * known
        for unit in cast("list[Unit]", list(self.units)):
            x = unit.exact(x) * known
        return x, known


class Last(nn.Module):
    """The SnakeBeta and convolution at the end."""

    def __init__(self, snake: SnakeBeta, layer: CausalConv, constant: Tensor) -> None:
        super().__init__()
        self.history = layer.history
        self.snake, self.conv = StepSnake(snake, constant), StepConv(layer.conv)
        self.less = StepConv(layer.conv, constant, self.conv) if self.snake.leaves_out else self.conv

    def forward(self, x: Tensor) -> Tensor:
        """The body: x [1, C, T, 1] behind zeros."""
        out: Tensor = self.less(_padded(self.snake.less(x), self.history))
        return out

    def exact(self, x: Tensor) -> Tensor:
        """The same, right from the first sample on."""
        out: Tensor = self.conv(_padded(self.snake(x), self.history))
        return out


def count_snakes(module: nn.Module) -> int:
    """SnakeBetas in `module`."""
    return sum(isinstance(layer, SnakeBeta) for layer in module.modules())


def padding_behind(history: int, steps: int) -> int:
    """How much of a unit's left padding its second convolution takes, so that neither needs a layer for it.

    None where the first holds it all or both do not hold it; and only as much as leaves a length between them that
    elementwise layers can have.
    """
    if not FUSED_PAD < history <= 2 * FUSED_PAD:
        return 0
    fits = (some for some in range(history - FUSED_PAD, FUSED_PAD + 1) if _factors(steps - some))
    return next(fits, 0)


def behind_tail(x: Tensor, name: str, old: State, new: State) -> Tensor:
    """X [1, C, T, 1] behind its tail in the cache; the next tail is what is last."""
    tail = old[name]
    behind = torch.cat((_flat(tail), x), dim=2)
    new[name] = grouped(behind[:, :, -tail.shape[3] :], tail.shape[1])
    return behind


def _flat(groups: Tensor) -> Tensor:
    """[C / G, G, 1, T] as [1, C, T, 1]."""
    return groups.reshape(1, -1, groups.shape[3], 1)


def _padded(x: Tensor, steps: int) -> Tensor:
    return functional.pad(x, (0, 0, steps, 0)) if steps else x


def _plain(snake: SnakeBeta) -> StepSnake:
    return StepSnake(snake, torch.zeros_like(snake.alpha))


def _factors(length: int) -> bool:
    return any(length % one == 0 and length // one <= LONGEST_FACTOR for one in range(1, LONGEST_FACTOR + 1))
