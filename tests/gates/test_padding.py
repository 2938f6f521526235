from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gates.padding import without_padding

STEPS = np.arange(24, dtype=np.float32).reshape(1, 2, 12)


def of(shape: tuple[int, ...]) -> NDArray[Any]:
    return np.zeros(shape, np.float32)


@pytest.mark.parametrize(
    ("measured", "reference", "wanted"),
    [
        (STEPS, of((1, 2, 12)), STEPS),
        (STEPS, of((1, 2, 5)), STEPS[..., :5]),
        (STEPS[:, :, None], of((1, 2, 5)), STEPS[..., :5]),  # an engine's axis of size 1 more
        (STEPS[..., None], of((1, 2, 5)), STEPS[..., :5]),  # the same behind its steps
        (STEPS[..., None, None], of((1, 2, 5)), STEPS[..., :5]),
        (STEPS[:, :, None, :1], of((1, 2, 1)), STEPS[..., :1]),
        (STEPS, of((2, 5)), STEPS[0, :, :5]),
        (STEPS, of((1, 2, 1)), STEPS[..., :1]),
    ],
)
def test_without_padding_cuts_the_last_axis_and_gives_the_references_shape(
    measured: NDArray[Any], reference: NDArray[Any], wanted: NDArray[Any]
) -> None:
    got = without_padding({"y": measured}, {"y": reference})["y"]
    assert got.shape == reference.shape
    np.testing.assert_array_equal(got.ravel(), wanted.ravel())


@pytest.mark.parametrize(
    ("measured", "reference"),
    [
        (STEPS, of((1, 2, 13))),  # too short
        (STEPS, of((1, 3, 12))),
        (STEPS, of((1, 1, 12))),  # a channel too many is no padding
        (STEPS, of((2, 1, 3, 4))),
        (STEPS.transpose(0, 2, 1), of((1, 2, 12))),
        (STEPS[:, :1].transpose(0, 2, 1), of((1, 1, 5))),  # one step of 12 channels
        (STEPS[..., None], of((1, 3, 5))),
        (STEPS, of(())),
        (of(()), of((1, 2, 12))),
    ],
)
def test_without_padding_leaves_what_does_not_fit_for_the_comparison_to_refuse(
    measured: NDArray[Any], reference: NDArray[Any]
) -> None:
    got = without_padding({"y": measured}, {"y": reference})["y"]
    assert got is measured
    assert got.shape != reference.shape


def test_without_padding_keeps_outputs_that_the_reference_lacks() -> None:
    got = without_padding({"y": STEPS, "more": STEPS}, {"y": of((1, 2, 5)), "owed": STEPS})
    assert {name: array.shape for name, array in got.items()} == {"y": (1, 2, 5), "more": (1, 2, 12)}
