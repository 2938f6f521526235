"""A transposed convolution by the phases of its output."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.convolution_fields import Axis
from surgery.phases import phases_of, spread_to_phases
from tests.surgery.direct_sums import convolved, transposed


@pytest.mark.parametrize(
    ("axis", "output_padding"),
    [
        (Axis(7, 16, 8, pad_begin=4, pad_end=4), 0),
        (Axis(7, 5, 9), 3),
        (Axis(6, 40, 2, pad_begin=1), 1),
        (Axis(5, 3, 4, dilation=5, pad_begin=2, pad_end=6), 0),
        (Axis(9, 33, 1, pad_begin=16, pad_end=16), 0),
        (Axis(4, 2, 11, pad_begin=13), 0),
    ],
)
def test_phases_interleaved_are_the_transposed_convolution(axis: Axis, output_padding: int) -> None:
    random = np.random.default_rng(3)
    x, weight = random.standard_normal((3, axis.length)), random.standard_normal((3, 2, axis.kernel))
    phases = phases_of(axis, output_padding)
    plain = Axis(axis.length, phases.kernel, 1, 1, phases.begin, phases.end)
    made = convolved(x, spread_to_phases(weight, 1, [phases]), plain)
    assert made.shape == (2 * axis.stride, phases.steps)
    interleaved = made.reshape(2, axis.stride, phases.steps).transpose(0, 2, 1).reshape(2, -1)[:, : phases.length]
    wanted = transposed(x, weight, axis, output_padding)
    assert interleaved.shape == wanted.shape
    np.testing.assert_allclose(interleaved, wanted, rtol=1e-9, atol=1e-12)


def test_groups_keep_their_channels_apart() -> None:
    axis = Axis(5, 4, 3)
    phases = phases_of(axis, 0)
    weight = np.random.default_rng(3).standard_normal((4, 2, axis.kernel))
    whole = spread_to_phases(weight, 2, [phases])
    apart = [spread_to_phases(part, 1, [phases]) for part in np.split(weight, 2)]
    np.testing.assert_array_equal(whole, np.concatenate(apart))
