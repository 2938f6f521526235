"""What a tally counts, and at which line it says that a log cannot pass."""

from __future__ import annotations

import pytest

from logs.known_texts import LineClass
from logs.regtask import RegtaskKey
from logs.tally import KEPT_EXAMPLES, QUOTED_CHARS, Tally, quoted
from tests.logs.build_logs import NO_KERNEL, START, STRIDE, UNKNOWN_TARGET, regtask

STRIDE_KEY = RegtaskKey("v2", 0x1014, 0, 0x7)
UNPROVEN = regtask("lite", "0x1028", "0x7ff", "0x1e01")
TRACEBACK = (
    "E build: Traceback (most recent call last):",
    '  File "rknn/api.py", line 1, in build',
    "KeyError: 'cond'",
)


def settled(tally: Tally, *lines: str) -> list[str | None]:
    return [tally.add(line.strip("\n")) for line in lines]


def test_tally_keeps_the_first_different_lines_of_a_class_and_counts_all() -> None:
    tally = Tally()
    settled(tally, *[UNKNOWN_TARGET] * 3, *[UNKNOWN_TARGET.replace(": 0", f": {i}") for i in range(1, 10)])
    seen = tally.seen(LineClass.UNKNOWN_TARGET)
    assert seen.count == 12
    assert [line.message for line in seen.kept] == [f"Unkown op target: {i}" for i in range(KEPT_EXAMPLES)]
    assert tally.seen(LineClass.FALLBACK).count == 0


def test_tally_counts_regtask_lines_by_key_with_the_largest_value() -> None:
    tally = Tally()
    reasons = settled(tally, STRIDE, STRIDE.replace("0xf", "0x1e"), UNPROVEN, STRIDE)
    assert [reason is not None for reason in reasons] == [True, False, False, False]
    assert "value 0xf" in (reasons[0] or "")
    assert tally.regtask_lines == 4
    assert (tally.fields[STRIDE_KEY].count, tally.fields[STRIDE_KEY].max_value) == (3, 0x1E)


def test_tally_settles_nothing_when_the_key_is_accepted() -> None:
    tally = Tally(accepted=frozenset({STRIDE_KEY}))
    assert settled(tally, STRIDE) == [None]
    assert not tally.fails(STRIDE_KEY)


def test_tally_settles_at_the_exception_when_a_traceback_comes() -> None:
    tally = Tally()
    assert settled(tally, *TRACEBACK) == [None, None, "The toolkit raised KeyError: 'cond'."]
    assert tally.exception == "KeyError: 'cond'"


@pytest.mark.parametrize(
    ("lines", "done"),
    [
        ([], False),
        ([START], False),
        ([START, "I rknn building done."], True),
        ([START, "I rknn building done.", START], False),
    ],
)
def test_tally_is_done_when_the_last_build_came_to_its_end(lines: list[str], done: bool) -> None:
    tally = Tally()
    settled(tally, *lines)
    assert tally.done is done


def test_tally_remembers_the_last_line_that_says_something() -> None:
    tally = Tally()
    settled(tally, "one", "", "two", "")
    assert tally.last == "two"


def test_tally_says_what_has_no_kernel() -> None:
    assert settled(Tally(), NO_KERNEL) == ["The board has no kernel for operator Atan (node 'at')."]


def test_quoted_cuts_a_long_line() -> None:
    assert quoted("x" * QUOTED_CHARS) == "x" * QUOTED_CHARS
    assert quoted("x" * (QUOTED_CHARS + 1)) == "x" * QUOTED_CHARS + " ..."
