"""Compares what a page shows of a command's output with what the command prints.

Figures may differ, for times, digests and the last digits do; the few that a page is read for are held.
"""

from __future__ import annotations

import math
import re

_FIGURE = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{16,64}\b|\binf\b|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_CUT_OFF = " ..."

_HELD = (
    re.compile(r"\w+ (?:\w+\.)?simulator (\S+) "),
    re.compile(r"size: (\S+) MB"),
    re.compile(r"time: (\S+) ms a run(?: for (\S+) ms)?"),
    re.compile(r"modelled time ms/frame (\S+) (\S+)"),
)
"""Lines whose figures are held: the simulator's dB, the engine's size, the modelled time of a run and of a frame."""

TOLERANCE = 0.02
"""Relative: builds are the same byte for byte, so what differs is rounding (of 49 dB, 1 dB; of 30 ms, 0.6)."""


def missing_lines(shown: str, printed: str) -> list[str]:
    """The lines of `shown` that `printed` does not hold, in their order; figures count as equal but for those held.

    A line `...` stands for any lines, and a line that ends in ` ...` for any that begins so.
    """
    rest = iter(printed.splitlines())
    missing = []
    for line in shown.splitlines():
        if line.strip() in ("", "..."):
            continue
        if not any(_shows(line, found) for found in rest):
            missing.append(line)
            rest = iter(printed.splitlines())
    return missing


def _shows(line: str, found: str) -> bool:
    wanted, plain = _plain(line.removesuffix(_CUT_OFF)), _plain(found)
    same = plain.startswith(wanted) if line.endswith(_CUT_OFF) else plain == wanted
    return same and all(_close(*pair) for pair in zip(_held(line), _held(found), strict=False))


def _close(shown: float, printed: float) -> bool:
    return math.isclose(shown, printed, rel_tol=TOLERANCE)


def _held(line: str) -> list[float]:
    matches = [pattern.match(_words(line)) for pattern in _HELD]
    return [float(figure) for match in matches if match for figure in match.groups() if figure]


def _plain(line: str) -> str:
    return _FIGURE.sub("#", _words(line))


def _words(line: str) -> str:
    return " ".join(line.split())
