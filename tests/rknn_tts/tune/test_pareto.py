"""What beats what, by hand."""

from __future__ import annotations

import pytest

from rknn_tts.tune.pareto import beaten_by, beats


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ((1, 2), (1, 3), True),
        ((1, 2), (2, 3), True),
        ((1, 2), (1, 2), False),
        ((1, 3), (2, 2), False),
        ((2, 3), (1, 2), False),
        ((1, None), (2, 5), True),
        ((1, 9), (2, None), True),
        ((1, None), (None, 2), False),
    ],
)
def test_beats_tells_who_is_nowhere_worse_when_rows_are_given(
    one: tuple[float | None, ...], other: tuple[float | None, ...], expected: bool
) -> None:
    assert beats(one, other) is expected


def test_beaten_by_names_a_row_of_the_front_when_a_row_is_beaten() -> None:
    # 0 and 3 are the front: the one is faster, the other smaller. 1 is worse than 0 alone, 2 than 1 and 0, 4 than both.
    rows = [(10.0, 50.0), (11.0, 50.0), (12.0, 51.0), (20.0, 10.0), (21.0, 60.0)]
    assert beaten_by(rows) == [None, 0, 0, None, 0]


def test_beaten_by_keeps_both_when_rows_are_alike() -> None:
    assert beaten_by([(1.0, 2.0), (1.0, 2.0)]) == [None, None]


def test_beaten_by_is_empty_when_there_are_no_rows() -> None:
    assert beaten_by([]) == []
