"""Which sizes of a convolution fit the hardware's fields, each as the toolkit's log said it."""

from __future__ import annotations

import pytest

from contracts.convolution_fields import Axis, overflowing, stride_holds

HELD = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128, 160, 256, 512)
NOT_HELD = (
    9,
    11,
    13,
    15,
    17,
    18,
    19,
    21,
    22,
    23,
    25,
    26,
    27,
    29,
    30,
    31,
    36,
    42,
    49,
    50,
    54,
    60,
    63,
    72,
    100,
    240,
    300,
)


@pytest.mark.parametrize("stride", [*HELD, *NOT_HELD])
def test_stride_holds_as_measured(stride: int) -> None:
    assert stride_holds(stride) is (stride in HELD)


@pytest.mark.parametrize(
    ("axes", "wanted"),
    [
        ([Axis(1800, 32, 16, pad_begin=8, pad_end=8)], ()),
        ([Axis(1800, 30, 15, pad_begin=7, pad_end=7)], (0,)),
        ([Axis(1800, 1, 9)], (0,)),
        ([Axis(90, 9, 9)], ()),
        ([Axis(91, 9, 9)], (0,)),
        ([Axis(98, 9, 9)], (0,)),
        ([Axis(90, 9, 9, pad_end=1)], (0,)),
        ([Axis(90, 9, 9, pad_begin=1)], (0,)),
        ([Axis(90, 9, 9, dilation=2)], (0,)),
        ([Axis(225, 15, 15)], ()),
        ([Axis(170, 17, 17)], (0,)),
        ([Axis(17, 17, 17)], ()),
        ([Axis(3, 3, 17)], ()),
        ([Axis(3, 3, 9, pad_end=8)], ()),
        ([Axis(3, 3, 9, pad_begin=1, pad_end=1)], (0,)),
        ([Axis(5, 3, 9, dilation=2)], (0,)),
        ([Axis(1, 1, 9, dilation=3)], ()),
        ([Axis(8, 3, 9)], (0,)),
        ([Axis(64, 3, 9), Axis(64, 3, 9)], (0, 1)),
        ([Axis(64, 3, 1), Axis(64, 3, 9)], (1,)),
        ([Axis(24, 3, 2), Axis(126, 9, 9)], ()),
        ([Axis(24, 3, 1, 1, 1, 1), Axis(135, 15, 15)], ()),
        ([Axis(9, 3, 2), Axis(3, 3, 9)], ()),
        # where one axis has factors of 2 taken out, the other is not spared
        ([Axis(2, 2, 8, 1, 1, 1), Axis(1, 1, 9)], (1,)),
        ([Axis(72, 17, 16), Axis(15, 15, 17, pad_end=5)], (1,)),
    ],
)
def test_overflowing_names_the_axes_as_measured(axes: list[Axis], wanted: tuple[int, ...]) -> None:
    assert overflowing(axes) == wanted


@pytest.mark.parametrize(
    ("axis", "reach", "steps"),
    [(Axis(10, 3), 3, 8), (Axis(10, 3, 2, 4), 9, 1), (Axis(10, 3, 9, 1, 1, 2), 3, 2), (Axis(2, 3), 3, 0)],
)
def test_axis_counts_reach_and_steps_as_onnx_does(axis: Axis, reach: int, steps: int) -> None:
    assert (axis.reach, axis.steps) == (reach, steps)
