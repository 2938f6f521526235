"""A strided convolution over blocks of its axis."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.convolution_fields import STRIDE_LIMIT, Axis
from surgery.time_blocks import best_blocks, spread
from tests.surgery.direct_sums import convolved


@pytest.mark.parametrize(
    "axis",
    [
        Axis(90, 9, 9),
        Axis(100, 30, 15, pad_begin=7, pad_end=7),
        Axis(101, 4, 11),
        Axis(64, 3, 9, dilation=5, pad_begin=4),
        Axis(200, 61, 60, pad_end=30),
        Axis(20, 20, 13),
        Axis(50, 3, 13, pad_begin=12),
    ],
)
def test_blocks_give_the_same_sums_with_a_stride_that_fits(axis: Axis) -> None:
    random = np.random.default_rng(3)
    x, weight = random.standard_normal((3, axis.length)), random.standard_normal((2, 3, axis.kernel))
    blocks = best_blocks(axis, channels=3)
    assert blocks.axis.stride <= STRIDE_LIMIT
    assert blocks.kept + blocks.added == blocks.count * blocks.size
    filled = np.pad(x[:, : blocks.kept], ((0, 0), (0, blocks.added)))
    deep = filled.reshape(3, blocks.count, blocks.size).transpose(0, 2, 1).reshape(3 * blocks.size, blocks.count)
    got = convolved(deep, spread(weight, 0, blocks), blocks.axis)
    np.testing.assert_allclose(got, convolved(x, weight, axis), rtol=1e-9, atol=1e-12)
