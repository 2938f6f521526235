"""What an output is against what was expected: the signal-to-noise ratio, as the toolchain's gates have it.

    snr_db = 10 log10( sum(expected^2) / sum((output - expected)^2) )       in float64, over all elements

inf where the two are identical, 0 dB for an output of zeros. Shapes are compared before finiteness, and that before
values; what cannot be compared fails with its reason.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Iterable

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class OutputFigure:
    """One output against what was expected. Field names are keys of the result's JSON.

    Attributes:
        name: the output.
        snr_db: the ratio in dB; None where the two cannot be compared.
        bound_db: the least that passes.
        max_abs: the largest difference of two elements, in the output's unit; None where they cannot be compared.
        problem: why it fails whatever the bound, as a sentence's part; "" where the ratio decides.
    """

    name: str
    snr_db: float | None
    bound_db: float
    max_abs: float | None
    problem: str = ""

    @property
    def passed(self) -> bool:
        """Whether the bound is reached."""
        return not self.problem and self.snr_db is not None and self.snr_db >= self.bound_db

    @property
    def margin_db(self) -> float:
        """How far above its bound it is; -inf where it cannot be compared."""
        return -math.inf if self.problem or self.snr_db is None else self.snr_db - self.bound_db


def compared(name: str, expected: Array, output: Array, bound_db: float) -> OutputFigure:
    """The figure of one output."""
    problem = _problem(expected, output)
    if problem:
        return OutputFigure(name, None, bound_db, None, problem)
    signal = expected.astype(np.float64)
    noise = output.astype(np.float64) - signal
    signal_power, noise_power = float(np.sum(signal * signal)), float(np.sum(noise * noise))
    ratio = math.inf if noise_power == 0 else 10 * math.log10(signal_power / noise_power)
    zero = "it is all zero, and what is expected is not" if not np.any(output) else ""
    return OutputFigure(name, ratio, bound_db, float(np.max(np.abs(noise))), zero)


def worst(figures: Iterable[OutputFigure]) -> OutputFigure:
    """That of `figures` (at least one) which decides: the least above its bound, the first of equals."""
    return min(figures, key=lambda figure: figure.margin_db)


def _problem(expected: Array, output: Array) -> str:
    if expected.shape != output.shape:
        return f"its shape is {list(output.shape)}, not {list(expected.shape)}"
    if expected.size == 0:
        return "what is expected holds no values"
    for what, array in (("what is expected", expected), ("it", output)):
        unfinite = array.size - int(np.count_nonzero(np.isfinite(array)))
        if unfinite:
            return f"{what} has {unfinite} of {array.size} values that are not finite"
    return "" if np.any(expected) else "what is expected is all zero, so it proves nothing"
