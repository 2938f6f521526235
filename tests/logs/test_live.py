"""The log of a running build."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.verdicts import failed
from logs.judge import judge_log
from logs.lines import LineSplitter, clean_lines
from logs.live import LiveJudge
from logs.regtask import RegtaskKey
from tests.logs.build_logs import (
    END,
    NEW_FIELD,
    NO_KERNEL,
    RANDOM_WEIGHTS,
    REPORTED,
    STAMP,
    START,
    STRIDE,
    UNKNOWN_TARGET,
    WIDE_ADDRESS,
    ZERO_TENSOR,
    regtask,
)

NEW_KEY = RegtaskKey("v2", 0x7ABC, 0, 3)
LINES = [
    START,
    END,
    UNKNOWN_TARGET,
    WIDE_ADDRESS,
    STRIDE,
    NEW_FIELD,
    regtask("f2", "0x1090", "0x3fff", "0x5d48"),
    RANDOM_WEIGHTS,
    NO_KERNEL,
    ZERO_TENSOR,
    f"E {STAMP} REGTASK: new\n",
    f"E {STAMP} new\n",
    "E build: Traceback (most recent call last):\n",
    "KeyError: 'cond'\n",
    f"D {STAMP} RKNN is invoked\n",
]


def stop_at(log: str, accepted: tuple[RegtaskKey, ...] = ()) -> tuple[int, str] | None:
    """The number of the line at which a build with `log` is stopped, and the reason."""
    live = LiveJudge(accepted)
    for number, line in enumerate(clean_lines(log)):
        if reason := live.feed(line):
            return number, reason
    return None


@pytest.mark.parametrize(
    ("name", "number", "words"),
    [
        ("log_stride_field", 1, "v2:0x1014:0:0x7 with value 0xf"),
        ("log_wide_window", 1, "v2:0x4030:0:0x1fff with value 0x7800"),
        ("log_wide_conv", 1, "v2:0x1028:0:0x3fff"),
        ("log_new_field", 1, "nothing is known"),
        ("log_flood", 100_001, "More than 100000"),
        ("log_random_weights", 0, "'w'"),
        ("log_no_kernel", 0, "Atan"),
        ("log_zero_tensor", 0, "size: 0"),
    ],
)
def test_live_stops_at_the_line_that_settles_it(name: str, number: int, words: str) -> None:
    stop = stop_at(REPORTED[name])
    assert stop is not None
    assert stop[0] == number
    assert words in stop[1]
    assert stop[1].endswith(".")


@pytest.mark.parametrize(
    "name",
    [
        "log_clean",
        "log_unknown_target",
        "log_ansi",
        "log_fallback",
        "log_kokoro_rk3566",
        "log_piper_2_5_0",
        "log_cut_off",
    ],
)
def test_live_lets_a_build_run_when_its_log_can_still_pass(name: str) -> None:
    assert stop_at(REPORTED[name]) is None


def test_live_keeps_its_first_reason() -> None:
    live = LiveJudge()
    first = live.feed(STRIDE.strip())
    assert first is not None
    assert live.feed(NO_KERNEL.strip()) == first
    assert live.feed(END.strip()) == first


def test_live_sees_a_line_that_arrives_in_two_chunks() -> None:
    splitter, live = LineSplitter(), LiveJudge()
    data = STRIDE.encode()
    assert splitter.feed(data[:40]) == []
    (line,) = splitter.feed(data[40:])
    assert live.feed(line) is not None


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (
            ["E build: Traceback (most recent call last):", "  File x", "KeyError: 'cond'"],
            "The toolkit raised KeyError: 'cond'.",
        ),
        (
            ["E build: Traceback (most recent call last):", "  File x", "W build: WARN"],
            "The toolkit raised an exception.",
        ),
        (["Traceback (most recent call last):", "  File x", "KeyError: 'cond'"], None),
    ],
)
def test_live_names_the_exception_when_an_error_line_begins_a_traceback(lines: list[str], reason: str | None) -> None:
    live = LiveJudge()
    assert [live.feed(line) for line in lines] == [None, None, reason]


@given(st.lists(st.sampled_from(LINES), max_size=12), st.booleans())
def test_live_stops_exactly_when_the_judge_fails_for_more_than_an_early_end(lines: list[str], accept: bool) -> None:
    # The last line ends a traceback that the log may have begun.
    log, accepted = "".join([*lines, "D base_optimize ...\n"]), (NEW_KEY,) if accept else ()
    fails = [verdict.gate for verdict in failed(judge_log(clean_lines(log), accepted).verdicts)]
    assert (stop_at(log, accepted) is not None) == bool(set(fails) - {"log.complete"})
