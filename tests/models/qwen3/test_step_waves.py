"""The wave decoder of a step: its layers against torch's, and its constants, which change nothing where they count."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from models.qwen3 import cache
from models.qwen3.cache import MINIMAL, cache_layout
from models.qwen3.config import DecoderConfig
from models.qwen3.decoder import Decoder
from models.qwen3.layers import CausalTransposedConv, SnakeBeta
from models.qwen3.step import Step, cache_shape, no_constants
from models.qwen3.step_waves import (
    FUSED_PAD,
    LONGEST_FACTOR,
    Block,
    StepSnake,
    Upsampling,
    count_snakes,
    padding_behind,
)
from tests.models.qwen3.originals import random, random_codes, random_decoder, snr
from tests.qwen3_configs import REDUCED

NARROW = replace(REDUCED, decoder_dim=32)
CODES = 8
"""Of a step."""

STEPS = 3
DOUBLE_DB = 130.0
"""Weights and biases that are folded are rounded to float32."""


def in_order(x: Tensor) -> Tensor:
    """[1, C, T] as [1, C, T, 1]."""
    return x[..., None]


@pytest.mark.parametrize(("rate", "kernel"), [(5, 10), (3, 6), (2, 2), (4, 12)])
def test_upsampling_is_the_transposed_convolution(rate: int, kernel: int) -> None:
    torch.manual_seed(0)
    layer = CausalTransposedConv(6, 4, kernel, rate).requires_grad_(False)
    x = random(1, 6, 11)
    wanted = torch.nn.functional.conv_transpose1d(x, layer.conv.weight, layer.conv.bias, stride=rate)[..., : 11 * rate]
    made = Upsampling(layer)
    assert made.history == kernel // rate - 1
    behind = torch.nn.functional.pad(x, (made.history, 0))
    torch.testing.assert_close(made(in_order(behind)), in_order(wanted))
    torch.testing.assert_close(made.body(in_order(x)), in_order(wanted))


def test_upsampling_takes_up_what_its_input_leaves_out() -> None:
    """Behind the first input, whose past is zeros of which nothing was left out."""
    torch.manual_seed(0)
    layer, constant = CausalTransposedConv(6, 4, 10, 5).requires_grad_(False), random(6, seed=1)
    x = random(1, 6, 11)
    made = Upsampling(layer, constant)
    got, wanted = made.body(in_order(x - constant[:, None])), made.body(in_order(x))
    plain = Upsampling(layer).body(in_order(x))
    torch.testing.assert_close(got[:, :, 5:], plain[:, :, 5:])
    assert snr(plain[:, :, :5], got[:, :, :5]) < 60
    assert snr(plain, wanted) < 60  # what was not left out is added all the same


def test_snake_is_x_and_a_squared_sine_less_its_constant() -> None:
    snake = SnakeBeta(3)
    snake.alpha.copy_(torch.tensor([0.2, -0.5, 1.0]))
    snake.beta.copy_(torch.tensor([0.4, 0.0, -1.0]))
    constant, x = torch.tensor([0.3, 0.0, -0.2]), random(1, 3, 40).double()
    made = StepSnake(snake, constant).double()
    scale, size = (part.double().exp()[:, None] for part in (snake.alpha, snake.beta))
    wanted = x + torch.sin(x * scale) ** 2 / (size + 1e-9)
    torch.testing.assert_close(made(in_order(x)), in_order(wanted), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(
        made.less(in_order(x)), in_order(wanted - constant[:, None].double()), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize(
    ("history", "steps", "behind"),
    [
        (6, 1000, 0),  # the first convolution holds it
        (15, 1000, 0),
        (54, 1000, 0),  # a layer for it anyway, beyond 30
        (31, 1000, 0),
        (18, 1000, 3),
        (30, 1000, 15),
        (18, 41400, 4),  # 41397 = 3 * 13799 and 13799 is prime; 41396 = 79 * 524
        (18, 3, 3),
    ],
)
def test_padding_behind_leaves_what_a_convolution_takes_in_and_a_length_of_two_factors(
    history: int, steps: int, behind: int
) -> None:
    assert padding_behind(history, steps) == behind


@pytest.mark.parametrize("steps", range(60, 123_000, 1_117))
def test_padding_behind_gives_both_at_most_what_they_hold(steps: int) -> None:
    behind = padding_behind(18, steps)
    assert behind <= FUSED_PAD
    if behind:
        length = steps - behind
        assert 18 - behind <= FUSED_PAD
        assert any(length % one == 0 and length // one <= LONGEST_FACTOR for one in range(1, LONGEST_FACTOR + 1))


# Constants that SnakeBetas leave out.


def constants_of(decoder: Decoder) -> list[Tensor]:
    """Of every SnakeBeta other ones: one in the place of another is heard."""
    made = [random(len(each), seed=number) for number, each in enumerate(no_constants(decoder))]
    assert [len(each) for each in made] == [32, *[16] * 7, *[8] * 7, *[4] * 7, *[2] * 7]
    return made


def walked(step: Step, config: DecoderConfig) -> tuple[Tensor, Tensor]:
    """The whole decode of a stream's codes, and the audio of its steps."""
    layout = step.layout
    state = torch.zeros(cache_shape(config, layout), dtype=torch.float64)
    audio = []
    decoder = double_decoder(config)
    with torch.no_grad():
        hidden = decoder.quantizer(random_codes(STEPS * CODES, config))
        for number in range(STEPS):
            made, state = step(hidden[:, :, None, number * CODES : (number + 1) * CODES], state)
            audio.append(made.reshape(1, 1, -1))
        return decoder.voiced(hidden), torch.cat(audio, dim=-1)


def double_decoder(config: DecoderConfig) -> Decoder:
    return copy.deepcopy(random_decoder(config)).double()


def made_step(config: DecoderConfig, constants: Callable[[Decoder], list[Tensor]]) -> Step:
    decoder = double_decoder(config)
    return Step(decoder, cache_layout(config, MINIMAL), CODES, constants(decoder)).eval().double()


def test_a_step_with_constants_gives_the_whole_decode() -> None:
    step = made_step(NARROW, constants_of)
    assert snr(*walked(step, NARROW)) >= DOUBLE_DB
    assert all(isinstance(block, Block) and block.snake.leaves_out for block in step.waves.blocks)
    assert step.waves.last.snake.leaves_out


def test_a_constant_that_is_left_out_and_not_taken_up_is_heard() -> None:
    step = made_step(NARROW, constants_of)
    step.waves.last.less = step.waves.last.conv
    assert snr(*walked(step, NARROW)) < 30


@pytest.mark.parametrize("constants", [no_constants, constants_of], ids=["none", "some"])
def test_a_step_that_keeps_fewer_frames_than_are_seen_is_heard(
    constants: Callable[[Decoder], list[Tensor]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """23 are seen, the oldest hardly: with constants or without, the body is wrong that far and no farther."""
    kept_26 = walked(made_step(NARROW, constants), NARROW)[1]
    told = {}
    for kept in (18, 22, 23):
        monkeypatch.setattr(cache, "wave_frames", lambda config, kept=kept: kept)
        step = made_step(NARROW, constants)
        assert {part.name: part.shape for part in step.layout.layout}["wave"] == (kept, 16)
        told[kept] = snr(kept_26, walked(step, NARROW)[1])
    assert told[18] < 90
    assert told[22] < 220
    assert told[23] > 270


def test_blocks_share_the_weights_of_both_ways() -> None:
    """A graph has each once."""
    step = made_step(NARROW, constants_of)
    for block in step.waves.blocks:
        assert block.up.less.conv.weight is block.up.plain.conv.weight  # type: ignore[union-attr]
        assert block.up.less.conv.bias is not block.up.plain.conv.bias  # type: ignore[union-attr]


def test_count_snakes_counts_those_of_a_decoder() -> None:
    """One before each of four upsamplings, six in a block's units, one at the end."""
    assert count_snakes(random_decoder(NARROW)) == 4 * 7 + 1
