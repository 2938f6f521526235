from __future__ import annotations

import numpy as np
import pytest
from rknn_tts_runtime import CodeStep

from converters.qwen3.streams import columns, drawn_codes, proof_length, steps_of
from tests.qwen3_configs import REDUCED


def test_drawn_codes_are_the_same_for_a_seed_and_every_entry_occurs() -> None:
    codes = drawn_codes(REDUCED, 300, 0)
    assert codes.shape == (1, 16, 300)
    assert codes.dtype == np.int64
    assert np.array_equal(codes, drawn_codes(REDUCED, 300, 0))
    assert not np.array_equal(codes, drawn_codes(REDUCED, 300, 1))
    for book in codes[0]:
        assert set(book.tolist()) == set(range(32))


@pytest.mark.parametrize(
    ("plans", "length"),
    [
        ([(0, 64)], 193),  # 192 = 3 * 64
        ([(0, 100)], 192),
        ([(0, 1)], 192),  # nothing can be left over of steps of one
        ([(0, 64), (0, 16), (16, 64)], 193),
        ([(0, 64), (0, 3), (1, 64)], 194),  # 192 = 3 * 64, 193 - 1 = 3 * 64
        ([(0, 2), (0, 3)], 193),
    ],
)
def test_proof_length_leaves_the_last_step_of_each_plan_partly_empty(plans: list[tuple[int, int]], length: int) -> None:
    assert proof_length(plans) == length


def test_steps_of_cover_the_stream_one_after_the_other() -> None:
    assert steps_of(10, 4) == [CodeStep(4, 0, 4), CodeStep(4, 4, 4), CodeStep(4, 8, 2)]
    assert steps_of(10, 4, 3) == [CodeStep(3, 0, 3), CodeStep(4, 3, 4), CodeStep(4, 7, 3)]
    assert steps_of(2, 4, 3) == [CodeStep(3, 0, 2)]
    assert steps_of(8, 4) == [CodeStep(4, 0, 4), CodeStep(4, 4, 4)]


def test_columns_have_zeros_behind_the_last() -> None:
    values = np.arange(1, 13).reshape(1, 2, 6)
    assert columns(values, 4, 3)[0].tolist() == [[5, 6, 0], [11, 12, 0]]
    assert columns(values, 1, 3)[0].tolist() == [[2, 3, 4], [8, 9, 10]]
    assert columns(values, 1, 3).dtype == values.dtype
