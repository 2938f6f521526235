"""A transposed convolution by groups of its output's phases."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from contracts.convolution_fields import Axis
from surgery.phase_groups import grouped_phases, weights_of_group
from tests.surgery.direct_sums import convolved, transposed


@settings(max_examples=150, deadline=None)
@given(
    length=st.integers(1, 12),
    kernel=st.integers(1, 20),
    stride=st.integers(1, 9),
    dilation=st.integers(1, 4),
    pads=st.tuples(st.integers(0, 25), st.integers(0, 25)),
    output_padding=st.integers(0, 8),
)
def test_phases_interleaved_are_the_transposed_convolution(
    length: int, kernel: int, stride: int, dilation: int, pads: tuple[int, int], output_padding: int
) -> None:
    assume(output_padding < max(stride, dilation))
    axis = Axis(length, kernel, stride, dilation, *pads)
    phases = grouped_phases(axis, output_padding)
    assume(phases.length > 0)
    random = np.random.default_rng(3)
    x, weight = random.standard_normal((3, length)), random.standard_normal((3, 2, kernel))
    made = np.full((2, phases.steps, stride), np.nan)
    for group in phases.groups:
        assert 0 <= group.begin < group.kernel
        assert 0 <= group.end < group.kernel
        plain = Axis(length, group.kernel, 1, 1, group.begin, group.end)
        made_by_group = convolved(x, weights_of_group(weight, group), plain).reshape(len(group.phases), 2, -1)
        made[:, :, list(group.phases)] = made_by_group.transpose(1, 2, 0)
    whole = made.reshape(2, -1)[:, phases.skipped :][:, : phases.length]
    np.testing.assert_allclose(whole, transposed(x, weight, axis, output_padding), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("axis", "kernels"),
    [
        (Axis(109, 16, 8, pad_begin=4, pad_end=4), [2, 2]),
        (Axis(6976, 8, 4, pad_begin=2, pad_end=2), [2, 2]),
        (Axis(64, 16, 8), [2]),
        (Axis(130, 10, 5, pad_begin=2, pad_end=2), [2]),
        (Axis(160, 20, 10, pad_begin=5, pad_end=5), [2, 2]),
    ],
    ids=str,
)
def test_groups_have_no_tap_that_is_zero_when_the_kernel_is_whole_strides(axis: Axis, kernels: list[int]) -> None:
    groups = grouped_phases(axis, 0).groups
    assert [group.kernel for group in groups] == kernels
    assert sum(len(group.taps) for group in groups) == axis.kernel
    assert sum(group.kernel * len(group.phases) for group in groups) == axis.kernel


def test_a_phase_without_taps_joins_others_when_the_kernel_is_shorter_than_the_stride() -> None:
    (group,) = grouped_phases(Axis(5, 2, 4), 2).groups
    assert group.phases == (0, 1, 2, 3)
    assert [phase for _, phase, _ in group.taps] == [0, 1]


def test_groups_are_none_when_the_output_is_empty() -> None:
    assert grouped_phases(Axis(3, 2, 2, pad_begin=4, pad_end=4), 0).groups == ()
