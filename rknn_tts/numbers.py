"""Figures as a person reads them."""

from __future__ import annotations

import math
from collections.abc import Sequence

_DIGITS = 4
"""Significant digits that are shown; more only where two figures would look alike and are not."""

_PLAIN_FROM, _PLAIN_TO = 1e-3, 1e15
"""Between these, no exponent."""

KB_PER_MB = BYTES_PER_KB = 1000.0
"""As in `cost.model`."""

BYTES_PER_MB = 10**6

CYCLES_PER_MEGACYCLE = 1e6


def number(value: float | str | None, digits: int = _DIGITS) -> str:
    """`value` in `digits` significant digits, whole numbers whole; a text as it is, None as ""."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, int) or (math.isfinite(value) and value.is_integer() and abs(value) < _PLAIN_TO):
        return str(int(value))
    if not math.isfinite(value):
        return str(value)
    if not _PLAIN_FROM <= abs(value) < _PLAIN_TO:
        return f"{value:.{digits}g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    if abs(value) < 1:  # a cosine of 0.999995 is not 1, and what it lacks is what it says
        decimals = max(decimals, 1 - math.floor(math.log10(1 - abs(value))))
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text


def column(values: Sequence[float], digits: int = _DIGITS) -> list[str]:
    """`values` with as many decimals as show `digits` significant digits of the largest, so that they line up."""
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    decimals = max(0, digits - 1 - math.floor(math.log10(largest))) if largest else 0
    return [f"{value:.{decimals}f}" for value in values]


def figures(measured: float | str | None, threshold: float | str | None) -> tuple[str, str]:
    """Both figures of a verdict, in as many digits as tell them apart (94.9999 is not at least 95)."""
    digits = _DIGITS
    texts = number(measured, digits), number(threshold, digits)
    while texts[0] == texts[1] and measured != threshold and digits < 17:
        digits += 1
        texts = number(measured, digits), number(threshold, digits)
    return texts


def size(size_kb: float) -> str:
    """A size in MB, a small one in KB or bytes."""
    if size_kb < 1:
        return f"{size_kb * BYTES_PER_KB:.0f} bytes"
    return f"{size_kb / KB_PER_MB:.1f} MB" if size_kb >= KB_PER_MB else f"{size_kb:.1f} KB"
