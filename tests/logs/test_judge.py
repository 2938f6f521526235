"""The verdicts on whole logs."""

from __future__ import annotations

import time

import pytest

from contracts.manifest import LogSummary, RegtaskCount
from contracts.verdicts import Status, Verdict, failed
from logs.judge import LogJudgement, judge_log
from logs.lines import clean_lines
from logs.regtask import RegtaskKey
from tests.logs.build_logs import (
    END,
    FALLBACK_TEXT,
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
    whole,
)

GATES = [
    "log.complete",
    "log.random_weights",
    "log.kernels",
    "log.memory",
    "log.regtask",
    "log.regtask_count",
    "log.unknown_errors",
    "log.fallback",
    "log.unknown_target",
]
NEW_KEY = RegtaskKey("v2", 0x7ABC, 0, 3)


def judge(log: str, accepted: tuple[RegtaskKey, ...] = ()) -> LogJudgement:
    return judge_log(clean_lines(log), accepted)


def the(judgement: LogJudgement, gate: str) -> Verdict:
    (verdict,) = [verdict for verdict in judgement.verdicts if verdict.gate == gate]
    return verdict


def failing(log: str) -> list[str]:
    return [verdict.gate for verdict in failed(judge(log).verdicts)]


@pytest.mark.parametrize("name", ["log_clean", "log_unknown_target", "log_ansi", "log_fallback"])
def test_judge_log_passes_every_gate_when_the_log_is_harmless(name: str) -> None:
    verdicts = judge(REPORTED[name]).verdicts
    assert [verdict.gate for verdict in verdicts] == GATES
    assert {verdict.status for verdict in verdicts} == {Status.PASSED}


@pytest.mark.parametrize(("name", "count"), [("log_clean", 0), ("log_unknown_target", 5), ("log_ansi", 1)])
def test_judge_log_counts_unknown_targets(name: str, count: int) -> None:
    judgement = judge(REPORTED[name])
    assert the(judgement, "log.unknown_target").measured == count
    assert judgement.summary == LogSummary(unknown_target=count)


def test_judge_log_reports_a_fallback_without_its_time() -> None:
    judgement = judge(REPORTED["log_fallback"])
    assert FALLBACK_TEXT in the(judgement, "log.fallback").detail
    assert judgement.summary.fallback == (FALLBACK_TEXT,)


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("log_kokoro_rk3566", [RegtaskCount("lite", "0x1028", 0, "0x7ff", "0x1e01", 176)]),
        (
            "log_piper_2_5_0",
            [
                RegtaskCount("v2", "0x4038", 0, "0x1fff", "0x3d58", 4),
                RegtaskCount("v2", "0x4038", 16, "0x1fff", "0x3d58", 4),
                RegtaskCount("v2", "0x5048", 19, "0x1fff", "0x3d58", 4),
            ],
        ),
    ],
)
def test_judge_log_is_unproven_when_running_engines_print_the_field(name: str, fields: list[RegtaskCount]) -> None:
    judgement = judge(REPORTED[name])
    assert not failed(judgement.verdicts)
    unproven = [verdict for verdict in judgement.verdicts if verdict.status is Status.UNPROVEN]
    assert len(unproven) == len(fields)
    for verdict, field in zip(unproven, fields, strict=True):
        assert (verdict.gate, verdict.measured, verdict.threshold) == ("log.regtask", field.max_value, field.limit)
        for text in (field.target, field.offset, field.limit, field.max_value, str(field.count)):
            assert text in verdict.detail
    assert judgement.summary.regtask == tuple(fields)


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("log_stride_field", RegtaskCount("v2", "0x1014", 0, "0x7", "0xf", 12)),
        ("log_wide_window", RegtaskCount("v2", "0x4030", 0, "0x1fff", "0x7800", 88)),
        ("log_wide_conv", RegtaskCount("v2", "0x1028", 0, "0x3fff", "0x7801", 88)),
        ("log_new_field", RegtaskCount("v2", "0x7abc", 0, "0x3", "0x5", 1)),
    ],
)
def test_judge_log_fails_with_field_limit_and_value_when_the_field_is_fatal_or_new(
    name: str, field: RegtaskCount
) -> None:
    judgement = judge(REPORTED[name])
    (verdict,) = failed(judgement.verdicts)
    assert verdict.gate == "log.regtask"
    for text in (field.target, field.offset, field.limit, field.max_value, str(field.count)):
        assert text in verdict.detail
    assert judgement.summary.regtask == (field,)


@pytest.mark.parametrize(
    ("name", "gate", "words"),
    [
        ("log_random_weights", "log.random_weights", ["'w'", "random"]),
        ("log_no_kernel", "log.kernels", ["Atan", "'at'"]),
        ("log_zero_tensor", "log.memory", ["size: 0"]),
        ("log_cut_off", "log.complete", ["cut off", "RKNN is invoked"]),
        ("log_flood", "log.regtask_count", ["100001"]),
    ],
)
def test_judge_log_fails_one_gate_with_its_reason(name: str, gate: str, words: list[str]) -> None:
    (verdict,) = failed(judge(REPORTED[name]).verdicts)
    assert verdict.gate == gate
    assert all(word in verdict.detail for word in words)


def test_judge_log_takes_no_longer_a_line_when_a_flood_is_ten_times_as_long() -> None:
    """CPU time of this thread; each the best of three, so that a busy machine does not decide."""

    def cost_s(lines: list[str]) -> float:
        costs_s = []
        for _ in range(3):
            start_s = time.thread_time()
            judge_log(lines)
            costs_s.append(time.thread_time() - start_s)
        return min(costs_s)

    flood = list(clean_lines(REPORTED["log_flood"]))
    assert cost_s(flood) < 3 * 10 * cost_s(flood[::10])  # three times what is linear


@pytest.mark.parametrize(
    ("log", "gates"),
    [
        pytest.param(whole(WIDE_ADDRESS * 100_000), [], id="exactly_as_many_as_allowed"),
        pytest.param(whole(WIDE_ADDRESS * 10_000 + STRIDE + WIDE_ADDRESS), ["log.regtask"], id="fatal_one_hidden"),
        pytest.param(whole(regtask("v2", "0x1014", "0x7", "0xF", shift=9)), ["log.regtask"], id="other_shift"),
        pytest.param(whole(regtask("v2", "0X4030", "0x1FFF", "0x7800")), ["log.regtask"], id="uppercase_hex"),
        pytest.param(whole(STRIDE.replace("\n", "\r"), UNKNOWN_TARGET), ["log.regtask"], id="joined_by_cr"),
        pytest.param(whole(STRIDE.strip() + UNKNOWN_TARGET), ["log.regtask"], id="joined_by_nothing"),
        pytest.param(whole("0" + STRIDE), ["log.regtask"], id="glued_to_text"),
        pytest.param(whole(STRIDE[:90] + "\n"), ["log.unknown_errors"], id="regtask_cut_short"),
        pytest.param(whole(f"E {STAMP} REGTASK: new\n"), ["log.unknown_errors"], id="regtask_of_another_form"),
        pytest.param(whole(f"E {STAMP} what is this\n"), ["log.unknown_errors"], id="unknown_error"),
        pytest.param(whole("E load_onnx: what is this\n"), ["log.unknown_errors"], id="unknown_python_error"),
        pytest.param(START, ["log.complete"], id="start_without_end"),
        pytest.param("", ["log.complete"], id="empty"),
        pytest.param(START + f"D {STAMP} {END}", ["log.complete"], id="end_inside_another_line"),
        pytest.param(START + END + START, ["log.complete"], id="second_build_cut_off"),
        pytest.param(START + END.strip(), [], id="end_without_line_end"),
        pytest.param(START + END + NO_KERNEL, ["log.kernels"], id="missing_kernel_printed_after_the_end"),
        pytest.param(
            START + RANDOM_WEIGHTS + NO_KERNEL + ZERO_TENSOR + STRIDE,
            ["log.complete", "log.random_weights", "log.kernels", "log.memory", "log.regtask"],
            id="everything_at_once",
        ),
    ],
)
def test_judge_log_fails_these_gates(log: str, gates: list[str]) -> None:
    assert failing(log) == gates


def test_judge_log_counts_malformed_regtask_lines_into_the_flood() -> None:
    log = whole(WIDE_ADDRESS * 100_000 + f"E {STAMP} REGTASK: new\n")
    assert failing(log) == ["log.regtask_count", "log.unknown_errors"]


def test_judge_log_keeps_the_largest_value_of_a_field() -> None:
    log = whole(*(regtask("v2", "0x4038", "0x1fff", value) for value in ("0x2000", "0x10000", "0x9fff")))
    assert judge(log).summary.regtask == (RegtaskCount("v2", "0x4038", 0, "0x1fff", "0x10000", 3),)


def test_judge_log_orders_fields_by_key_however_they_were_printed() -> None:
    lines = [regtask("v2", "0x5048", "0x1fff", "0x2000"), regtask("lite", "0x4038", "0x1fff", "0x2000"), NEW_FIELD]
    assert judge(whole(*lines)) == judge(whole(*reversed(lines)))
    assert [field.offset for field in judge(whole(*lines)).summary.regtask] == ["0x4038", "0x5048", "0x7abc"]


def test_judge_log_is_unproven_and_says_who_when_a_new_field_is_accepted() -> None:
    judgement = judge(REPORTED["log_new_field"], (NEW_KEY,))
    verdict = the(judgement, "log.regtask")
    assert verdict.status is Status.UNPROVEN
    assert "accepted by the user" in verdict.detail
    assert "--accept-regtask v2:0x7abc:0:0x3" in verdict.detail
    assert judgement.summary.accepted == ("v2:0x7abc:0:0x3",)


def test_judge_log_names_a_known_fault_when_a_fatal_field_is_accepted() -> None:
    verdict = the(judge(REPORTED["log_stride_field"], (RegtaskKey("v2", 0x1014, 0, 7),)), "log.regtask")
    assert verdict.status is Status.UNPROVEN
    assert "known to be wrong" in verdict.detail


@pytest.mark.parametrize(
    "near", [RegtaskKey("v2", 0x7ABC, 1, 3), RegtaskKey("f2", 0x7ABC, 0, 3), RegtaskKey("v2", 0x7ABC, 0, 7)], ids=str
)
def test_judge_log_fails_when_only_a_neighbour_is_accepted(near: RegtaskKey) -> None:
    judgement = judge(REPORTED["log_new_field"], (near,))
    assert the(judgement, "log.regtask").status is Status.FAILED
    assert judgement.summary.accepted == ()


def test_judge_log_fails_by_count_when_the_flooding_field_is_accepted() -> None:
    judgement = judge(REPORTED["log_flood"], (RegtaskKey("v2", 0x4038, 0, 0x1FFF),))
    assert [verdict.gate for verdict in failed(judgement.verdicts)] == ["log.regtask_count"]


def test_judge_log_quotes_the_exception_that_ends_a_traceback() -> None:
    log = START + (
        "E build: Traceback (most recent call last):\n"
        '  File "rknn/api/rknn_base.py", line 1990, in build\n'
        "KeyError: 'cond'\n"
        "W build: ===================== WARN(3) =====================\n"
        "E rknn-toolkit2 version: 2.3.2\n"
    )
    (_, verdict) = failed(judge(log).verdicts)
    assert verdict.gate == "log.unknown_errors"
    assert verdict.measured == 1
    assert verdict.detail.startswith("The toolkit raised KeyError: 'cond'.")


def test_judge_log_quotes_a_few_different_lines_and_counts_the_rest() -> None:
    log = whole(*(f"E {STAMP} error {number % 7}\n" for number in range(700)))
    verdict = the(judge(log), "log.unknown_errors")
    assert verdict.measured == 700
    assert "`error 4`" in verdict.detail
    assert "error 5" not in verdict.detail
    assert len(judge(whole(f"E {STAMP} {'x' * 5000}\n")).verdicts[6].detail) < 500
