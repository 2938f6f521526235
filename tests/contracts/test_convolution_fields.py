"""Which sizes of a convolution fit the hardware's fields, each as the toolkit's log said it."""

from __future__ import annotations

import pytest

from contracts.convolution_fields import (
    TRANSPOSED_FIELDS,
    Axis,
    dilated_overflow,
    gathered_overflow,
    gathered_stride_overflow,
    overflowing,
    pooled_overflow,
    spatial_axes,
    stride_holds,
    transposed_overflow,
)

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


@pytest.mark.parametrize("stride", [0, -1, -2])
def test_stride_holds_ends_when_it_is_no_stride(stride: int) -> None:
    assert not stride_holds(stride)


def test_spatial_axes_reads_the_lists_as_onnx_has_them() -> None:
    axes = spatial_axes([10, 20], [3, 5], [2, 4], [1, 7], [1, 2, 3, 4])
    assert axes == (Axis(10, 3, 2, 1, 1, 3), Axis(20, 5, 4, 7, 2, 4))


def test_spatial_axes_takes_the_defaults_when_lists_are_empty() -> None:
    assert spatial_axes([10], [3], [], [], []) == (Axis(10, 3, stride=1, dilation=1, pad_begin=0, pad_end=0),)


@pytest.mark.parametrize(
    ("lists", "says"),
    [
        (([10], [3, 3], [], [], []), "kernel for another number of axes"),
        (([10], [3], [1, 1], [1, 1], []), "strides, dilations for another number of axes"),
        (([10], [3], [], [], [1]), "pads for another number of axes"),
        (([10], [3], [0], [], []), "strides below 1"),
        (([10], [0], [], [-1], []), "kernel, dilations below 1"),
    ],
)
def test_spatial_axes_says_which_list_is_wrong(lists: tuple[list[int], ...], says: str) -> None:
    with pytest.raises(ValueError, match=f"^{says}$"):
        spatial_axes(*lists)


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


@pytest.mark.parametrize(
    ("axes", "wanted"),
    [
        ([Axis(64, 16, 2)], ()),
        ([Axis(64, 17, 2)], (0,)),
        ([Axis(64, 17, 2, pad_begin=1)], ()),
        ([Axis(64, 31, 8, pad_begin=15)], ()),
        ([Axis(64, 32, 8, pad_begin=20)], (0,)),
        ([Axis(64, 17, 3)], ()),
        ([Axis(64, 18, 3, 2)], (0,)),
        ([Axis(64, 16, 2, 2)], ()),
        ([Axis(12, 17, 2), Axis(12, 3, 2)], (0,)),
        ([Axis(12, 33, 2), Axis(12, 33, 2)], (0, 1)),
        ([Axis(12, 3, 3), Axis(12, 17, 2)], ()),
    ],
)
def test_transposed_overflow_names_the_axes_as_measured(axes: list[Axis], wanted: tuple[int, ...]) -> None:
    assert transposed_overflow(axes, TRANSPOSED_FIELDS["rk3588"]) == wanted


@pytest.mark.parametrize(
    ("target", "axis", "holds"),
    [
        ("rk3588", Axis(64, 17, 2), False),
        ("rk3568", Axis(64, 17, 2), False),
        ("rk3562", Axis(64, 31, 2), True),
        ("rk3562", Axis(64, 32, 2, 1, 20), False),
        ("rk3576", Axis(64, 32, 2), True),
        ("rk3576", Axis(64, 33, 2, 1, 20), False),
        ("rk3588", Axis(64, 64, 3), True),
        ("rk3576", Axis(64, 34, 3), False),
        ("rk3588", Axis(64, 20, 10), True),
        ("rk3576", Axis(64, 20, 10), False),
        ("rk3562", Axis(64, 16, 9), False),
        ("rk3562", Axis(64, 16, 7), True),
        ("rk3588", Axis(64, 6, 9, 2), False),
        ("rk3566", Axis(64, 6, 9, 2), True),
    ],
)
def test_transposed_overflow_follows_the_target_when_its_fields_are_larger(
    target: str, axis: Axis, holds: bool
) -> None:
    assert transposed_overflow([axis], TRANSPOSED_FIELDS[target]) == (() if holds else (0,))


@pytest.mark.parametrize(
    ("target", "axis", "holds"),
    [
        ("rk3588", Axis(20, 14, 7), True),
        ("rk3588", Axis(20, 8, 8), True),
        ("rk3588", Axis(20, 3, 9), False),
        ("rk3588", Axis(20, 20, 10, 1, 5), False),
        ("rk3588", Axis(20, 18, 3), False),
        ("rk3588", Axis(20, 32, 16, 1, 8), False),
        ("rk3566", Axis(20, 9, 9), True),
        ("rk3566", Axis(20, 18, 3), True),
        ("rk3576", Axis(20, 18, 3), True),
        ("rk3562", Axis(20, 9, 9), False),
    ],
)
def test_transposed_overflow_follows_the_target_when_weights_are_computed(target: str, axis: Axis, holds: bool) -> None:
    assert transposed_overflow([axis], TRANSPOSED_FIELDS[target], computed=True) == (() if holds else (0,))


@pytest.mark.parametrize(
    ("axis", "wanted"),
    [
        (Axis(400, 31, dilation=2), ()),
        (Axis(400, 32, dilation=2), (0,)),
        (Axis(400, 32), ()),
        (Axis(1300, 40, dilation=32), ()),
    ],
)
def test_dilated_overflow_counts_the_kernel_when_the_compiler_keeps_it_whole(
    axis: Axis, wanted: tuple[int, ...]
) -> None:
    assert dilated_overflow([axis]) == wanted


@pytest.mark.parametrize(
    ("axis", "wanted"),
    [
        (Axis(2794, 3, dilation=32), ()),
        (Axis(2795, 3, dilation=32), (0,)),
        (Axis(4160, 2, dilation=64), ()),
        (Axis(4161, 2, dilation=64), (0,)),
        (Axis(16384, 3, dilation=31), ()),
        (Axis(16384, 1, dilation=64), ()),
    ],
)
def test_gathered_overflow_counts_all_taps_when_the_dilation_is_wide(axis: Axis, wanted: tuple[int, ...]) -> None:
    assert gathered_overflow([axis]) == wanted


@pytest.mark.parametrize(
    ("axis", "wanted"),
    [
        (Axis(8192, 3, pad_begin=1, pad_end=1), ()),
        (Axis(8193, 3, pad_begin=1, pad_end=1), (0,)),
        (Axis(8193, 2, 2), ()),
        (Axis(8194, 2, 2), (0,)),
        (Axis(16384, 3, 3), (0,)),
    ],
)
def test_pooled_overflow_counts_the_steps_that_are_read(axis: Axis, wanted: tuple[int, ...]) -> None:
    assert pooled_overflow([axis]) == wanted


@pytest.mark.parametrize(
    ("axis", "wanted"),
    [
        (Axis(700, 17, dilation=32), (0,)),
        (Axis(700, 18, dilation=32), (0,)),
        (Axis(700, 15, dilation=32), ()),
        (Axis(800, 20, dilation=32), ()),
        (Axis(1000, 21, dilation=40), (0,)),
        (Axis(700, 17, dilation=31), ()),
    ],
)
def test_gathered_stride_overflow_takes_the_kernel_for_the_stride(axis: Axis, wanted: tuple[int, ...]) -> None:
    assert gathered_stride_overflow([axis]) == wanted
