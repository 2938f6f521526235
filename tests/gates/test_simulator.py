"""The simulator's verdict: the worst window decides, and outputs that are owed and missing fail."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from contracts.verdicts import Status
from gates.simulator import judge_simulator, judge_simulator_by_original

Floats = NDArray[np.float64]
ONES = np.ones((1, 4))


def window(error: float) -> dict[str, Floats]:
    """Ones, off by `error`: the ratio is -20 log10(error)."""
    return {"samples": ONES + np.array([error, -error, error, -error])}


def test_judge_simulator_passes_when_one_window_reaches_the_threshold() -> None:
    (verdict,) = judge_simulator([{"samples": ONES}], [window(0.001)], 40.0)
    assert (verdict.gate, verdict.status, verdict.threshold, verdict.unit) == ("simulator", Status.PASSED, 40.0, "dB")
    assert verdict.measured == pytest.approx(60.0)


def test_judge_simulator_fails_on_the_worst_window_when_the_mean_would_pass() -> None:
    outputs = [window(0.001), window(0.1), window(0.001)]
    (verdict,) = judge_simulator([{"samples": ONES}] * 3, outputs, 40.0)
    assert verdict.status is Status.FAILED
    assert verdict.measured == pytest.approx(20.0)
    assert "worst of 3 windows; their mean is 46.7 dB (window 2, output 'samples')" in verdict.detail


@pytest.mark.parametrize(
    ("references", "outputs", "reason"),
    [
        ([{"samples": ONES}], [], "there are no outputs of the simulator"),
        ([], [window(0.001)], "there are no reference outputs"),
        ([], [], "there are no reference outputs"),
        ([{"samples": ONES}] * 2, [window(0.001)], "1 windows came back instead of 2"),
        ([{"samples": ONES}], [{}], "0 outputs instead of 1"),
        ([{"samples": ONES}], [{"samples": ONES[0]}], "shape [4] instead of [1, 4]"),
        ([{"samples": ONES}], [{"samples": ONES * math.nan}], "not finite"),
        ([{"samples": ONES}], [{"samples": ONES * 0}], "the output is all zero"),
        ([{"samples": ONES * 0}], [{"samples": ONES * 0}], "proves nothing"),
        ([{"samples": ONES}], [{"samples": ONES * math.inf}], "not finite"),
        ([{"samples": ONES}], [{"samples": ONES[:, :0]}], "shape [1, 0] instead of [1, 4]"),
        ([{"samples": ONES[:, :3]}], [{"samples": ONES}], "shape [1, 4] instead of [1, 3]"),
        ([{"samples": ONES[:, :0]}], [{"samples": ONES[:, :0]}], "holds no values"),
        ([{"samples": ONES}], [{"other": ONES}], "no output named samples"),
        ([{"samples": ONES}], [{"samples": ONES, "more": ONES}], "2 outputs instead of 1"),
        ([{"samples": ONES}] * 2, [window(0.001), {"samples": ONES * 0}], "the output is all zero"),
    ],
)
def test_judge_simulator_fails_with_reason_when_nothing_was_proven(
    references: list[dict[str, Floats]], outputs: list[dict[str, Floats]], reason: str
) -> None:
    (verdict,) = judge_simulator(references, outputs, -math.inf)
    assert verdict.status is Status.FAILED
    assert reason in verdict.detail


RAMP = np.arange(1.0, 33.0).reshape(1, 32) % 7


@pytest.mark.parametrize(
    ("output", "measured_db", "reason"),
    [
        (RAMP / 2, 6.02, "the output is 0.5 times the reference"),  # of cosine 1.0
        (np.roll(RAMP, 1), 3.4, "the output comes 1 element too late"),
        (-RAMP, -6.02, "the output is -1 times the reference"),
    ],
)
def test_judge_simulator_fails_when_the_output_only_looks_right(
    output: Floats, measured_db: float, reason: str
) -> None:
    (verdict,) = judge_simulator([{"samples": RAMP}], [{"samples": output}], 40.0)
    assert verdict.status is Status.FAILED
    assert verdict.measured == pytest.approx(measured_db, abs=0.1)
    assert reason in verdict.detail


def test_judge_simulator_fails_when_two_outputs_of_one_shape_are_swapped() -> None:
    reference, swapped = {"mean": RAMP, "log": RAMP[:, ::-1]}, {"mean": RAMP[:, ::-1], "log": RAMP}
    (verdict,) = judge_simulator([reference], [swapped], 40.0)
    assert verdict.status is Status.FAILED


def test_judge_simulator_names_the_broken_window_when_another_is_merely_bad() -> None:
    outputs = [window(0.5), {"samples": ONES * math.nan}]
    (verdict,) = judge_simulator([{"samples": ONES}] * 2, outputs, 40.0)
    assert "window 2, output 'samples'" in verdict.detail
    assert math.isnan(float(verdict.measured or 0))


def test_judge_simulator_by_original_leaves_padding_out_and_says_what_it_compared() -> None:
    output = {"samples": np.concatenate([RAMP, np.full((1, 8), 1e6)], axis=1)[:, None]}
    (verdict,) = judge_simulator_by_original([{"samples": RAMP}], [output], 40.0)
    assert (verdict.gate, verdict.status, verdict.measured) == ("simulator", Status.PASSED, math.inf)
    assert "the simulator against the unpatched original on one window" in verdict.detail


def test_judge_simulator_by_original_judges_what_is_no_padding() -> None:
    output = {"samples": np.concatenate([RAMP * 0.9, RAMP], axis=1)}
    (verdict,) = judge_simulator_by_original([{"samples": RAMP}], [output], 40.0)
    assert verdict.status is Status.FAILED
    assert verdict.measured == pytest.approx(20.0)  # 1 / 0.1


@pytest.mark.parametrize(
    ("originals", "outputs", "reason"),
    [
        ([{"samples": ONES}], [], "there are no outputs of the simulator"),
        ([{"samples": ONES}], [{"samples": ONES}] * 2, "2 windows came back instead of 1"),
        ([{"samples": ONES}] * 2, [{"samples": ONES}], "1 windows came back instead of 2"),
        ([{"samples": ONES}], [{"samples": ONES[:, :3]}], "shape [1, 3] instead of [1, 4]"),
        ([{"samples": ONES}], [{"samples": ONES, "more": ONES}], "2 outputs instead of 1"),
        ([{"samples": ONES}], [{"other": ONES}], "no output named samples"),
        ([{"samples": ONES}], [{"samples": ONES * math.nan}], "not finite"),
    ],
)
def test_judge_simulator_by_original_fails_with_reason_when_nothing_was_proven(
    originals: list[dict[str, Floats]], outputs: list[dict[str, Floats]], reason: str
) -> None:
    (verdict,) = judge_simulator_by_original(originals, outputs, -math.inf)
    assert verdict.status is Status.FAILED
    assert reason in verdict.detail


def step(audio: float, cache: float) -> dict[str, Floats]:
    """The two outputs of a step, each off by its error."""
    return {"audio": window(audio)["samples"], "cache_out": window(cache)["samples"]}


OWED = {"audio": ONES, "cache_out": ONES}


def test_judge_simulator_judges_an_output_alone_when_it_has_a_bound_of_its_own() -> None:
    verdicts = judge_simulator([OWED], [step(0.01, 0.001)], 40.0, own_db={"audio": 33.0, "cache_out": 60.1})
    found = [(verdict.gate, verdict.status.value, verdict.threshold) for verdict in verdicts]
    assert found == [("simulator.audio", "passed", 33.0), ("simulator.cache_out", "failed", 60.1)]
    assert [verdict.measured for verdict in verdicts] == [pytest.approx(40.0), pytest.approx(60.0)]
    assert "window" not in verdicts[0].detail.partition("(")[2]


def test_judge_simulator_judges_the_other_outputs_by_the_bound_of_all() -> None:
    outputs = [step(0.001, 0.01), step(0.01, 0.001)]
    own, others = judge_simulator([OWED] * 2, outputs, 50.0, own_db={"audio": 39.0})
    assert (own.gate, own.status.value) == ("simulator.audio", "passed")
    assert [own.measured, others.measured] == [pytest.approx(40.0)] * 2
    assert "the worst of 2 windows; their mean is 50.0 dB (window 2, output 'audio')" in own.detail
    assert (others.gate, others.status.value) == ("simulator", "failed")
    assert "(window 1, output 'cache_out')" in others.detail


@pytest.mark.parametrize(
    ("outputs", "own_db", "gate", "reason"),
    [
        ({"audio": ONES}, {"audio": 33.0, "cache_out": 43.0}, "simulator.cache_out", "0 outputs instead of 1"),
        ({"audio": ONES}, {"audio": 33.0}, "simulator", "0 outputs instead of 1"),
        ({**OWED, "more": ONES}, {"audio": 33.0, "cache_out": 43.0}, "simulator", "the reference has no outputs"),
        (OWED, {"sound": 33.0}, "simulator.sound", "the reference has no outputs"),
        ({**OWED, "audio": ONES * math.nan}, {"audio": 33.0}, "simulator.audio", "not finite"),
    ],
)
def test_judge_simulator_fails_when_an_output_with_a_bound_of_its_own_is_missing_or_broken(
    outputs: dict[str, Floats], own_db: dict[str, float], gate: str, reason: str
) -> None:
    verdicts = judge_simulator([OWED], [outputs], 40.0, own_db=own_db)
    (failed,) = [verdict for verdict in verdicts if verdict.status is Status.FAILED]
    assert failed.gate == gate
    assert reason in failed.detail


def test_judge_simulator_by_original_judges_an_output_alone_without_its_padding() -> None:
    outputs = [{"audio": np.concatenate([ONES, ONES], axis=1), "cache_out": ONES}]
    verdicts = judge_simulator_by_original([OWED], outputs, 40.0, {"audio": 33.0, "cache_out": 43.0})
    assert [(verdict.gate, verdict.measured) for verdict in verdicts] == [
        ("simulator.audio", math.inf),
        ("simulator.cache_out", math.inf),
    ]
