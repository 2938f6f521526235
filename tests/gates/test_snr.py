"""The comparison: right ratios, and every way in which nothing was proven fails with its reason."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from contracts.verdicts import Status
from gates.snr import Comparison, compare, compare_outputs, snr_db, worst

Array = NDArray[Any]
SIGNAL = np.sin(np.arange(64) * 0.7).astype(np.float32).reshape(1, 64)


def with_value(value: float) -> Array:
    changed: Array = SIGNAL.copy()
    changed[0, 5] = value
    return changed


@pytest.mark.parametrize(
    ("reference", "measured", "expected_db"),
    [
        ([2.0, 0.0], [2.0, 0.0], math.inf),
        ([10.0, 0.0], [10.0, 1.0], 20.0),
        ([10.0, 0.0], [10.0, -1.0], 20.0),
        ([3.0, 4.0], [3.0, 4.5], 20.0),
        ([1.0, 2.0], [0.5, 1.0], 20 * math.log10(2)),
        ([1.0, 2.0], [0.0, 0.0], 0.0),
        ([1.0, 2.0], [-1.0, -2.0], -20 * math.log10(2)),
        ([0.001], [1.001], -60.0),
    ],
)
def test_snr_db_matches_hand_calculation_when_finite(
    reference: list[float], measured: list[float], expected_db: float
) -> None:
    assert snr_db(np.array(reference), np.array(measured)) == pytest.approx(expected_db, abs=1e-9)


def test_snr_db_sums_in_float64_when_values_are_float32() -> None:
    reference = np.full(10_000_000, 1.0, np.float32)
    measured = reference.copy()
    measured[0] = 2.0
    assert snr_db(reference, measured) == pytest.approx(70.0, abs=1e-6)


@pytest.mark.parametrize(
    ("reference", "measured"),
    [
        ([0.0, 0.0], [0.0, 0.0]),
        ([0.0, 0.0], [1.0, 0.0]),
        ([math.nan, 1.0], [1.0, 1.0]),
        ([1.0, 1.0], [math.nan, 1.0]),
        ([1.0, 1.0], [math.inf, 1.0]),
        ([math.inf, 1.0], [math.inf, 1.0]),
        ([1e200], [2e200]),
        ([], []),
    ],
)
def test_snr_db_is_nan_when_nothing_can_be_said(reference: list[float], measured: list[float]) -> None:
    assert math.isnan(snr_db(np.array(reference), np.array(measured)))


def test_snr_db_raises_when_shapes_differ() -> None:
    with pytest.raises(ValueError, match=r"\(2,\) and \(1, 2\)"):
        snr_db(np.zeros(2), np.zeros((1, 2)))


@pytest.mark.parametrize(
    ("measured", "reason"),
    [
        ({}, "0 outputs instead of 1 (y)"),
        ({"y": SIGNAL, "z": SIGNAL}, "2 outputs instead of 1"),
        ({"z": SIGNAL}, "no output named y (there are: z)"),
        ({"y": SIGNAL[0]}, "output 'y'): shape [64] instead of [1, 64]"),
        ({"y": SIGNAL[:, :-1]}, "shape [1, 63] instead of [1, 64]"),
        ({"y": SIGNAL[:, :0]}, "shape [1, 0] instead of [1, 64]"),
        ({"y": with_value(math.nan)}, "the output has 1 values that are not finite, the first nan at [0, 5]"),
        ({"y": with_value(math.inf)}, "the first inf at [0, 5]"),
        ({"y": with_value(-math.inf)}, "the first -inf at [0, 5]"),
        ({"y": np.full_like(SIGNAL, np.nan)}, "64 values that are not finite"),
        ({"y": np.zeros_like(SIGNAL)}, "the output is all zero and the reference is not"),
        ({"y": SIGNAL / 2}, "the output is 0.5 times the reference"),
        ({"y": -SIGNAL}, "the output is -1 times the reference"),
        ({"y": np.roll(SIGNAL, 1)}, "the output comes 1 element too late"),
        ({"y": np.roll(SIGNAL, -3)}, "the output comes 3 elements too early"),
        ({"y": with_value(9.0)}, "the largest difference is 9 instead of "),
        ({"y": SIGNAL.astype(np.complex64)}, "complex64 values, which are not compared"),
    ],
)
def test_compare_fails_with_reason_when_output_is_wrong(measured: dict[str, Array], reason: str) -> None:
    verdict = compare("g", {"y": SIGNAL}, measured, 20.0, "one run")
    assert verdict.status is Status.FAILED
    assert verdict.detail.startswith("one run")
    assert reason in verdict.detail
    assert (verdict.threshold, verdict.unit) == (20.0, "dB")


@pytest.mark.parametrize("threshold_db", [-math.inf, -100.0, 0.0])
@pytest.mark.parametrize(
    "measured", [np.zeros_like(SIGNAL), with_value(math.nan), with_value(math.inf), SIGNAL[:, :-1], SIGNAL[0]]
)
def test_compare_fails_when_nothing_is_proven_whatever_the_threshold(measured: Array, threshold_db: float) -> None:
    assert compare("g", {"y": SIGNAL}, {"y": measured}, threshold_db, "").status is Status.FAILED


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ({"y": np.zeros_like(SIGNAL)}, "the reference is all zero, so the comparison proves nothing"),
        ({"y": np.zeros((0, 4), np.float32)}, "shape [0, 4] holds no values"),
        ({"y": with_value(math.nan)}, "the reference has 1 values that are not finite"),
        ({}, "the reference has no outputs"),
    ],
)
def test_compare_fails_when_reference_proves_nothing_even_against_itself(
    reference: dict[str, Array], reason: str
) -> None:
    verdict = compare("g", reference, reference, 0.0, "")
    assert verdict.status is Status.FAILED
    assert reason in verdict.detail


def test_compare_measures_half_amplitude_as_six_db_when_threshold_allows_it() -> None:
    verdict = compare("g", {"y": SIGNAL}, {"y": SIGNAL / 2}, 6.0, "")
    assert verdict.status is Status.PASSED
    assert verdict.measured == pytest.approx(6.0206, abs=1e-4)


def test_compare_passes_with_inf_when_identical() -> None:
    verdict = compare("fp32.x", {"y": SIGNAL}, {"y": SIGNAL.copy()}, 95.0, "one run")
    assert (verdict.gate, verdict.status, verdict.measured) == ("fp32.x", Status.PASSED, math.inf)


def test_compare_fails_when_threshold_is_nan() -> None:
    assert compare("g", {"y": SIGNAL}, {"y": SIGNAL}, math.nan, "").status is Status.FAILED


def test_compare_passes_when_ratio_equals_threshold() -> None:
    verdict = compare("g", {"y": np.array([10.0, 0])}, {"y": np.array([10.0, 1])}, 20.0, "")
    assert verdict.status is Status.PASSED


def test_compare_names_the_worst_output_when_there_are_several() -> None:
    reference = {"a": SIGNAL, "b": SIGNAL, "c": SIGNAL}
    verdict = compare("g", reference, {"c": SIGNAL, "b": SIGNAL / 2, "a": SIGNAL * 0.9}, 30.0, "")
    assert verdict.measured == pytest.approx(6.0206, abs=1e-4)
    assert "output 'b'" in verdict.detail


def test_compare_fails_when_two_outputs_of_one_shape_are_swapped() -> None:
    other = np.cos(np.arange(64) * 0.7).astype(np.float32).reshape(1, 64)
    verdict = compare("g", {"a": SIGNAL, "b": other}, {"a": other, "b": SIGNAL}, 20.0, "one run")
    assert verdict.status is Status.FAILED
    assert "output 'a'" in verdict.detail or "output 'b'" in verdict.detail


def test_compare_fails_when_only_one_output_of_several_is_all_zero() -> None:
    measured = {"a": SIGNAL, "b": np.zeros_like(SIGNAL)}
    verdict = compare("g", {"a": SIGNAL, "b": SIGNAL}, measured, -100.0, "one run")
    assert verdict.status is Status.FAILED
    assert "(output 'b'): the output is all zero and the reference is not" in verdict.detail


def test_compare_reports_shape_before_finiteness_when_two_outputs_are_wrong() -> None:
    measured = {"a": with_value(math.nan), "b": SIGNAL[0]}
    assert compare_outputs({"a": SIGNAL, "b": SIGNAL}, measured).where == "output 'b'"


@pytest.mark.parametrize(("dtype", "expected"), [(np.int64, math.inf), (np.bool_, math.inf), (np.float16, math.inf)])
def test_compare_passes_when_integers_booleans_or_halves_agree(dtype: Any, expected: float) -> None:
    values = np.array([1, 0, 3]).astype(dtype)
    assert compare("g", {"y": values}, {"y": values.copy()}, 95.0, "").measured == expected


def test_worst_prefers_a_problem_when_a_ratio_is_smaller() -> None:
    items = [Comparison(-5.0, "a"), Comparison(math.nan, "b", "broken"), Comparison(3.0, "c")]
    assert worst(items).where == "b"


def test_worst_is_a_problem_when_there_is_nothing_to_compare() -> None:
    assert "nothing to compare" in worst([]).problem
