"""Orders of the channels: found where there are any, by the definitions of the relations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgery.channel_orders import Order, Orders, Parts, Relation, Turned, identity, inverse, start_of

FLIP: Order = (3, 2, 1, 0)
HALF: Order = (1, 0)


def solved(relations: list[Relation[str]], pinned: str = "", **sizes: int) -> dict[str, Order] | None:
    return Orders(sizes, set(pinned), relations).solve()


@given(st.permutations(range(6)))
def test_inverse_takes_an_order_back(order: list[int]) -> None:
    there = np.arange(10, 16)[order]
    np.testing.assert_array_equal(there[list(inverse(tuple(order)))], np.arange(10, 16))


@given(st.permutations(range(4)), st.permutations(range(4)))
def test_turned_hands_an_order_on_in_both_directions(first: list[int], second: list[int]) -> None:
    before_x = np.arange(4)  # x is pinned, so that it is the same after
    turns = [Turned("x", "y", tuple(first)), Turned("y", "z", tuple(second))]
    found = solved(list(turns), "x", x=4, y=4, z=4)
    assert found is not None
    np.testing.assert_array_equal(before_x[list(found["z"])], before_x[first][second])
    back = solved(list(turns), "z", x=4, y=4, z=4)
    assert back is not None
    assert tuple(np.array(back["x"])[first][second]) == identity(4)


@pytest.mark.parametrize(
    ("order", "start", "size", "wanted"),
    [(FLIP, 0, 2, 2), (FLIP, 1, 2, 1), (FLIP, 0, 3, 1), ((0, 2, 1, 3), 0, 2, None), ((0, 2, 1, 3), 1, 2, 1)],
)
def test_start_of_is_none_when_a_block_is_torn(order: Order, start: int, size: int, wanted: int | None) -> None:
    assert start_of(order, start, size) == wanted


def test_solve_gives_each_half_the_order_within_it_when_the_whole_is_turned() -> None:
    relations: list[Relation[str]] = [Turned("x", "y", FLIP), Parts("y", ((0, "a"), (2, "b")), fixed=True)]
    found = solved(relations, "x", x=4, y=4, a=2, b=2)
    assert found == {"x": identity(4), "y": FLIP, "a": HALF, "b": HALF}


@pytest.mark.parametrize("fixed", [False, True])
def test_solve_has_no_answer_for_parts_that_would_lie_elsewhere_only_when_they_are_fixed(fixed: bool) -> None:
    relations: list[Relation[str]] = [Turned("x", "y", FLIP), Parts("y", ((0, "a"), (1, "b")), fixed=fixed)]
    assert (solved(relations, "x", x=4, y=4, a=1, b=3) is None) == fixed


@pytest.mark.parametrize("flips", range(5))
def test_solve_has_an_answer_between_pinned_ends_when_the_flips_are_even(flips: int) -> None:
    """A flow: flip, split, one half goes on alone, the other through an addition, and both together again."""
    relations: list[Relation[str]] = []
    sizes = {"z0": 4}
    for n in range(flips):
        names = f"y{n}", f"a{n}", f"b{n}", f"c{n}", f"z{n + 1}"
        y, a, b, c, z = names
        sizes |= dict(zip(names, (4, 2, 2, 2, 4), strict=True))
        relations += [Turned(f"z{n}", y, FLIP), Parts(y, ((0, a), (2, b)), fixed=True), Turned(b, c, identity(2))]
        relations.append(Parts(z, ((0, a), (2, c))))
    pinned = {"z0", f"z{flips}"}
    found = Orders(sizes, pinned, relations).solve()
    assert (found is not None) == (flips % 2 == 0)
    assert Orders(sizes, {"z0"}, relations).solve() is not None


def test_solve_leaves_a_whole_as_it_was_when_only_its_parts_are_known() -> None:
    relations: list[Relation[str]] = [Turned("x", "a", HALF), Parts("w", ((0, "a"), (2, "b")))]
    assert solved(relations, "xb", x=2, a=2, b=2, w=4) == {"x": (0, 1), "a": HALF, "b": (0, 1), "w": (1, 0, 2, 3)}


def test_solve_has_no_answer_when_overlapping_parts_disagree() -> None:
    relations: list[Relation[str]] = [Turned("x", "a", HALF), Parts("w", ((0, "a"), (1, "b")))]
    assert solved(relations, "xb", x=2, a=2, b=2, w=4) is None


def test_solve_keeps_the_order_of_what_nothing_determines() -> None:
    assert solved([Turned("x", "y", FLIP)], x=4, y=4) == {"x": identity(4), "y": FLIP}


@pytest.mark.parametrize(("order", "known"), [((1, 0, 3, 2), True), (FLIP, False)])
def test_solve_has_an_answer_only_when_channels_stay_in_their_blocks(order: Order, known: bool) -> None:
    asked = Orders({"x": 4, "y": 4}, {"x"}, [Turned("x", "y", order)], {"y": {2}})
    assert (asked.solve() is not None) == known


def test_tied_to_takes_apart_what_has_no_value_in_common_but_pinned_ones() -> None:
    relations: list[Relation[str]] = [
        Turned("a", "b", HALF),
        Turned("b", "c", HALF),
        Turned("a", "d", HALF),
        Turned("e", "f", HALF),
        Parts("g", ((0, "f"),)),
    ]
    asked = Orders(dict.fromkeys("abcdefg", 2), {"a", "c"}, relations)
    sets = asked.tied_to([relations[1], relations[2], relations[0]])
    assert [one.relations for one in sets] == [relations[:2], relations[2:3]]
    assert [list(one.sizes) for one in sets] == [["a", "b", "c"], ["a", "d"]]
