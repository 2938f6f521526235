"""What a frame sees, against a generator's gradients: of a frame that is not seen they are zero, with no tolerance."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from models.kokoro.config import KOKORO_82M, GeneratorConfig, receptive_frames
from models.kokoro.generator import Generator, Normed
from models.kokoro.generator_weights import generator_weights
from tests.kokoro_writer.checkpoint import SMALL
from tests.models.kokoro.checkpoints import drawn, tame_weights

SIZES = KOKORO_82M.istftnet
RATE = SIZES.columns_per_frame
MIDDLE = 12
"""Of 25 frames."""

WIDER = replace(SIZES, resblock_kernel_sizes=(11,), resblock_dilation_sizes=((1, 3, 6),))
"""Blocks that see a little further, so that rounding up to frames adds nothing."""


def frozen(x: Tensor) -> Normed:
    """A norm whose statistics are known before: 0 and 1."""
    return Normed(x)


def gradients(sizes: GeneratorConfig) -> tuple[Tensor, Tensor]:
    """How much each of 25 frames of x, and each column of har, moves the columns of the middle frame.

    Of few channels and frequencies: how far it is seen does not depend on them.
    """
    config = replace(SMALL, istftnet=replace(sizes, upsample_initial_channel=4, gen_istft_n_fft=2))
    thin, frames = config.istftnet, 2 * MIDDLE + 1
    generator = Generator(generator_weights(tame_weights(config), thin), thin).eval().double()
    x = drawn(1, thin.upsample_initial_channel, frames).double().requires_grad_()
    har = drawn(1, 2 * thin.bins, RATE * frames + 1, seed=1).double().requires_grad_()
    out = generator(x, har, drawn(1, config.style_dim, seed=2).double(), norm=frozen)
    # The column on the seam belongs to both frames: the last window gives it.
    columns = out[..., RATE * MIDDLE : RATE * (MIDDLE + 1) + 1]
    columns.backward(drawn(*columns.shape, seed=3).double())
    assert x.grad is not None
    assert har.grad is not None
    return x.grad.abs().sum(dim=(0, 1)), har.grad.abs().sum(dim=(0, 1))


def test_receptive_frames_are_nine_when_the_sizes_are_kokoro_82ms() -> None:
    assert receptive_frames(SIZES) == 9


@pytest.mark.parametrize(("sizes", "reached"), [(SIZES, 8), (WIDER, 9)], ids=["Kokoro-82M", "wider blocks"])
def test_receptive_frames_hold_every_frame_of_x_that_moves_a_frames_columns(
    sizes: GeneratorConfig, reached: int
) -> None:
    of_x, _ = gradients(sizes)
    seen = of_x.nonzero()[:, 0]
    assert max(MIDDLE - int(seen[0]), int(seen[-1]) - MIDDLE) == reached <= receptive_frames(sizes)


def test_harmonics_are_seen_two_frames_further_but_faintly() -> None:
    _, of_har = gradients(SIZES)
    seen = of_har.nonzero()[:, 0]
    # Theirs is one block more: 36 steps at the coarse rate, ten of which are a frame.
    assert 10 < MIDDLE - int(seen[0]) / RATE <= 11
    enough = receptive_frames(SIZES)
    beyond = torch.cat([of_har[: RATE * (MIDDLE - enough)], of_har[RATE * (MIDDLE + 1 + enough) + 1 :]])
    assert 0 < beyond.max() < 1e-6 * of_har.max()
