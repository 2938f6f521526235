"""Compares what a page shows of a command's output with what the command prints, figures aside."""

from __future__ import annotations

import re

_FIGURE = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{16,64}\b|\binf\b|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_CUT_OFF = " ..."


def missing_lines(shown: str, printed: str) -> list[str]:
    """The lines of `shown` that `printed` does not hold, in their order; figures count as equal.

    A line `...` stands for any lines, and a line that ends in ` ...` for any that begins so.
    """
    rest = iter([_plain(line) for line in printed.splitlines()])
    missing = []
    for line in shown.splitlines():
        if line.strip() in ("", "..."):
            continue
        wanted = _plain(line.removesuffix(_CUT_OFF))
        cut_off = line.endswith(_CUT_OFF)
        if not any(found.startswith(wanted) if cut_off else found == wanted for found in rest):
            missing.append(line)
            rest = iter([_plain(other) for other in printed.splitlines()])
    return missing


def _plain(line: str) -> str:
    return _FIGURE.sub("#", " ".join(line.split()))
