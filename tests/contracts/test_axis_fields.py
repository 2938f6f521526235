"""Which broadcasts and pads of a long axis fit the hardware's fields, each as the toolkit's log said it."""

from __future__ import annotations

import pytest

from contracts.axis_fields import mask_overflow, padded_overflow, spread_overflow


@pytest.mark.parametrize(
    ("wide", "narrow", "overflows"),
    [
        ([1, 8, 8192], [1, 8, 1], False),
        ([1, 8, 8200], [1, 8, 1], True),
        ([1, 22, 15360], [1, 22, 1], True),
        ([1, 16, 30720], [1, 1, 1], True),
        ([1, 16, 15360], [1], True),
        ([2, 16, 15360], [2, 16, 1], True),
        ([1, 1, 15360], [1, 1, 1], False),
        ([1, 16, 30720], [1, 1, 30720], False),
        ([1, 16, 30720], [1, 16, 30720], False),
        ([2, 16, 15360], [1], False),
        ([1, 16, 2, 15360], [1, 16, 1, 1], False),
        ([16, 15360], [16, 1], False),
    ],
)
def test_spread_overflow_is_what_the_log_said(wide: list[int], narrow: list[int], overflows: bool) -> None:
    assert spread_overflow(wide, narrow) is overflows


@pytest.mark.parametrize(
    ("wide", "narrow", "overflows"),
    [
        ([1, 16, 8192], [1, 1, 8192], False),
        ([1, 16, 8193], [1, 1, 8193], True),
        ([1, 128, 30720], [1, 1, 30720], True),
        ([2, 16, 15360], [1, 1, 15360], True),
        ([2, 16, 15360], [2, 1, 15360], False),
        ([1, 1, 30720], [1, 1, 30720], False),
        ([1, 16, 30720], [1, 16, 1], False),
        ([1, 16, 2, 15360], [1, 1, 2, 15360], False),
    ],
)
def test_mask_overflow_is_what_the_log_said(wide: list[int], narrow: list[int], overflows: bool) -> None:
    assert mask_overflow(wide, narrow) is overflows


@pytest.mark.parametrize(
    ("sizes", "before", "behind", "overflows"),
    [
        ([1, 16, 8191], 1, 0, False),
        ([1, 16, 8192], 1, 0, True),
        ([1, 16, 8184], 4, 4, False),
        ([1, 16, 8192], 4, 4, True),
        ([1, 16, 30720], 0, 0, False),
        ([1, 16, 30720, 1], 1, 0, False),
    ],
)
def test_padded_overflow_is_what_the_log_said(sizes: list[int], before: int, behind: int, overflows: bool) -> None:
    assert padded_overflow(sizes, before, behind) is overflows
