"""Compares arrays by their signal-to-noise ratio, and says why they cannot be compared.

    snr_db = 10 log10( sum(reference^2) / sum((measured - reference)^2) )       in float64, over all elements

Larger is better: inf where the two are identical, 6.02 dB for a copy of half the amplitude, 0 dB for an output of
zeros, negative where the error is stronger than the signal. The order of the checks is count, names, shapes,
finiteness, values; whatever cannot be compared fails with its reason and never passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contracts.verdicts import Status, Verdict, at_least
from gates.mismatch import explain
from gates.sentences import listed

Array = NDArray[Any]

ALL_ZERO = "the reference is all zero, so the comparison proves nothing"


@dataclass(frozen=True)
class Comparison:
    """One comparison: its ratio, or why there is none.

    Attributes:
        snr_db: the ratio in dB; NaN where the two could not be compared.
        where: what was compared (an output, a feed, a window), for sentences.
        problem: why this fails whatever the threshold; empty where `snr_db` decides.
        hint: says how the two differ; called only for a failed verdict, because it costs more than the comparison.
    """

    snr_db: float
    where: str
    problem: str = ""
    hint: Callable[[], str] = field(default=str, compare=False)

    def at(self, place: str) -> Comparison:
        """The same comparison, said to be of `place` too."""
        where = ", ".join(text for text in (place, self.where) if text)
        return replace(self, where=where)


def snr_db(reference: Array, measured: Array) -> float:
    """Signal-to-noise ratio of `measured` against `reference` in dB, over all elements, in float64.

    Returns:
        inf where they are identical; NaN where nothing can be said: an empty, all-zero or non-finite reference, a
        non-finite `measured`.

    Raises:
        ValueError: the shapes differ.
    """
    if reference.shape != measured.shape:
        raise ValueError(f"arrays of shape {reference.shape} and {measured.shape} cannot be compared")
    signal = reference.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        noise = measured.astype(np.float64) - signal
        signal_power, noise_power = float(np.sum(signal * signal)), float(np.sum(noise * noise))
    if signal_power == 0 or not math.isfinite(signal_power) or not math.isfinite(noise_power):
        return math.nan
    return math.inf if noise_power == 0 else 10 * math.log10(signal_power / noise_power)


def compare_arrays(reference: Array, measured: Array, where: str) -> Comparison:
    """Compare two arrays: shapes, finiteness, values, in this order.

    A reference of zeros proves nothing, so it fails even where `measured` is zero too.
    """
    problem = _shape_problem(reference, measured) or _finiteness_problem(reference, measured)
    if not problem and not np.any(reference):
        problem = ALL_ZERO
    if problem:
        return Comparison(math.nan, where, problem)
    ratio = snr_db(reference, measured)
    if math.isnan(ratio):
        return Comparison(ratio, where, "the values are too large for a ratio in float64")
    if not np.any(measured):
        return Comparison(ratio, where, "the output is all zero and the reference is not")
    return Comparison(ratio, where, hint=partial(explain, reference, measured))


def compare_outputs(reference: Mapping[str, Array], measured: Mapping[str, Array]) -> Comparison:
    """Compare named outputs; the worst one is returned and named.

    The checks run over all outputs in their order: count, names, then the shapes of all, the finiteness of all, values.
    """
    problem = _name_problem(reference, measured)
    if problem:
        return Comparison(math.nan, "", problem)
    for check in (_shape_problem, _finiteness_problem):
        for name, array in reference.items():
            problem = check(array, measured[name])
            if problem:
                return Comparison(math.nan, f"output '{name}'", problem)
    return worst(compare_arrays(array, measured[name], f"output '{name}'") for name, array in reference.items())


def worst(comparisons: Iterable[Comparison]) -> Comparison:
    """The comparison that decides: the first with a problem, else the one with the smallest ratio.

    No comparison at all is a problem of its own.
    """
    ranked = list(comparisons)
    if not ranked:
        return Comparison(math.nan, "", "there is nothing to compare")
    return next((item for item in ranked if item.problem), min(ranked, key=lambda item: item.snr_db))


def verdict_of(gate: str, comparison: Comparison, threshold_db: float, detail: str) -> Verdict:
    """The verdict that `comparison` reaches at least `threshold_db`; a NaN on either side fails."""
    reached = at_least(gate, comparison.snr_db, threshold_db, "dB")
    holds = reached.status is Status.PASSED and not comparison.problem
    place = f" ({comparison.where})" if comparison.where else ""
    reason = "" if holds else comparison.problem or comparison.hint()
    detail = f"{detail}{place}" + (f": {reason}" if reason else "")
    return replace(reached, status=Status.PASSED if holds else Status.FAILED, detail=detail)


def compare(
    gate: str, reference: Mapping[str, Array], measured: Mapping[str, Array], threshold_db: float, detail: str
) -> Verdict:
    """Verdict that every output of `measured` reaches `threshold_db` against `reference`; the worst one is named.

    Args:
        gate: the gate's name.
        reference: outputs by name, as they should be.
        measured: outputs by name, as they are.
        threshold_db: the least ratio that passes, in dB.
        detail: what is compared on what, for the verdict's sentence.
    """
    return verdict_of(gate, compare_outputs(reference, measured), threshold_db, detail)


def _name_problem(reference: Mapping[str, Array], measured: Mapping[str, Array]) -> str:
    if not reference:
        return "there is nothing to compare: the reference has no outputs"
    if len(reference) != len(measured):
        return f"{len(measured)} outputs instead of {len(reference)} ({listed(reference)})"
    missing = [name for name in reference if name not in measured]
    return f"no output named {listed(missing)} (there are: {listed(measured)})" if missing else ""


def _shape_problem(reference: Array, measured: Array) -> str:
    if reference.shape != measured.shape:
        return f"shape {list(measured.shape)} instead of {list(reference.shape)}"
    return f"shape {list(reference.shape)} holds no values" if reference.size == 0 else ""


def _finiteness_problem(reference: Array, measured: Array) -> str:
    for what, array in (("the reference", reference), ("the output", measured)):
        if array.dtype.kind not in "fiub" and array.dtype.name != "bfloat16":
            return f"{what} holds {array.dtype} values, which are not compared"
        finite = np.isfinite(array)
        if not finite.all():
            first = np.unravel_index(int(np.argmin(finite)), array.shape)
            index = [int(i) for i in first]
            return f"{what} has {int((~finite).sum())} values that are not finite, the first {array[first]} at {index}"
    return ""
