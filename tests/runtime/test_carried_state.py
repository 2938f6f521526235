"""Walks over named states: a filter in pieces equals the filter at once, and a ring keeps the latest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from rknn_tts_runtime.carried_state import State, walk_states, written, zero_states

Array = Any
TAPS = np.array([3.0, -1.0, 2.0], np.float32)
TAIL = State("tail", "tail_out", (1, 2))


def filtered(inputs: Mapping[str, Array]) -> dict[str, Array]:
    signal = np.concatenate([inputs["tail"][0], inputs["x"]])
    return {"y": np.convolve(signal, TAPS, "valid"), "tail_out": signal[None, -2:]}


def test_a_filter_in_pieces_is_the_filter_at_once() -> None:
    x = np.arange(12, dtype=np.float32) ** 2
    walked = walk_states(filtered, [TAIL], ({"x": part} for part in np.split(x, [5, 7])))
    np.testing.assert_array_equal(np.concatenate([step["y"] for step in walked]), np.convolve(x, TAPS)[:12])


def test_a_kept_state_holds_the_latest_places_in_any_order() -> None:
    seen: list[Array] = []

    def run(inputs: Mapping[str, Array]) -> dict[str, Array]:
        seen.append(inputs["kept"].copy())
        return {"new": inputs["x"]}

    steps = [{"x": np.full((1, 2), float(value))} for value in (1, 2, 3)]
    list(walk_states(run, [State("kept", "new", (1, 5), axis=1)], steps))
    np.testing.assert_array_equal(seen[0], [[0, 0, 0, 0, 0]])
    np.testing.assert_array_equal(seen[1], [[1, 1, 0, 0, 0]])
    np.testing.assert_array_equal(seen[2], [[1, 1, 2, 2, 0]])


def test_written_goes_on_at_the_first_place_behind_the_last() -> None:
    kept, place = written(np.zeros((1, 5)), np.array([[7.0, 8.0]]), 1, 4)
    np.testing.assert_array_equal(kept, [[8, 0, 0, 0, 7]])
    assert place == 1
    assert written(np.zeros((5, 1)), np.ones((5, 1)), 0, 0)[1] == 0


def test_written_fills_all_places_from_the_middle_on() -> None:
    kept, place = written(np.zeros((2, 3)), np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), 1, 1)
    assert kept.tolist() == [[3, 1, 2], [6, 4, 5]]
    assert place == 1


def test_a_state_that_is_written_lies_as_the_npu_takes_it_all_along_a_stream() -> None:
    """Of four axes: N, H, W, C in memory, so that a step's input needs no turn (npu/attributes.py)."""
    seen: list[Array] = []

    def run(inputs: Mapping[str, Array]) -> dict[str, Array]:
        assert inputs["keys"].transpose(0, 2, 3, 1).flags.c_contiguous
        seen.append(inputs["keys"].copy())
        return {"new": np.arange(12.0).reshape(1, 6, 1, 2) + inputs["x"]}

    list(walk_states(run, [State("keys", "new", (1, 6, 1, 3), axis=3)], [{"x": 0.0}, {"x": 100.0}, {"x": 0.0}]))
    assert seen[2][0, :, 0].tolist() == [[101.0 + 2 * n, 1.0 + 2 * n, 100.0 + 2 * n] for n in range(6)]


@pytest.mark.parametrize(("new", "axis"), [((1, 6), 1), ((2, 3), 1), ((1, 5), 0)])
def test_written_refuses_what_does_not_fit(new: tuple[int, ...], axis: int) -> None:
    kept = np.zeros((1, 5)) if axis else np.zeros((3, 4))
    with pytest.raises(ValueError, match="cannot be written along axis"):
        written(kept, np.ones(new), axis, 0)


def test_a_stream_starts_with_zeros_of_the_states_own_dtype() -> None:
    states = zero_states([TAIL, State("count", "count_out", (1,), dtype="int64")])
    assert {name: (array.shape, str(array.dtype), int(array.sum())) for name, array in states.items()} == {
        "tail": ((1, 2), "float32", 0),
        "count": ((1,), "int64", 0),
    }


def test_a_state_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'tail' is \(1, 2\) and 'tail_out' \(1, 3\)"):
        list(walk_states(lambda inputs: {"tail_out": np.zeros((1, 3))}, [TAIL], [{}]))
