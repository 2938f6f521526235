"""Ratios of one run, in a table and a file: what two things cost that took turns on the same machine."""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROUNDS = 9
"""Of which the median counts."""


@dataclass(frozen=True)
class Figure:
    """A line of the table; `bound` is of the ratio of `ours` to `theirs`, None where none is held."""

    name: str
    unit: str
    ours: float
    theirs: float
    bound: float | None = None

    @property
    def ratio(self) -> float:
        """How many times as much."""
        return self.ours / self.theirs


@dataclass
class Table:
    """The figures of a bench."""

    figures: list[Figure] = field(default_factory=list)

    def add(self, *figures: Figure) -> None:
        """Take them in, and hold each to its bound."""
        self.figures += figures
        over = [figure for figure in figures if figure.bound is not None and not figure.ratio < figure.bound]
        assert over == [], "\n".join(lines_of(over))

    def written(self, report: Path) -> str:
        """It as text, after it was written to the file `report`."""
        rows = [{**asdict(figure), "ratio": figure.ratio} for figure in self.figures]
        report.parent.mkdir(exist_ok=True)
        text = json.dumps({"figures": rows, "load_average": os.getloadavg()}, indent=1)
        report.write_text(f"{text}\n", encoding="utf-8")
        return "\n".join(["", *lines_of(self.figures), f"All figures: {report}", ""])


def lines_of(figures: Sequence[Figure]) -> list[str]:
    """The figures as lines."""
    return [f"{'':84}{'this':>10}{'over':>10}{'ratio':>8}  bound", *map(_line, figures)]


def in_turn(*works: Callable[[], object], rounds: int = ROUNDS) -> list[float]:
    """The median time of each of `works` in ms; they take turns, so that a slow spell of the machine hits all."""
    times = [[ms_of(work) for work in works] for _ in range(rounds)]
    return [statistics.median(column) for column in zip(*times, strict=True)]


def ms_of(work: Callable[[], object]) -> float:
    """The time that `work` takes."""
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1e3


def _line(figure: Figure) -> str:
    bound = "-" if figure.bound is None else f"< {figure.bound:g}"
    name = f"{figure.name}, {figure.unit}"
    return f"{name:84}{figure.ours:10.3f}{figure.theirs:10.3f}{figure.ratio:8.3f}  {bound}"
