"""The figures of the table of issue 10: what a run costs per emitted frame or code, ours over the reference's."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from contracts.manifest import Layers

FIGURES = {"mcycles": "megacycles", "rw_mb": "MB of traffic", "modelled_ms": "modelled ms"}
"""What is held, and how it is written."""

SNR_WITHIN_DB = 1.0
"""How far ours may lie below the reference in the simulator."""


@dataclass(frozen=True)
class Side:
    """An engine, as one of the two that are compared.

    Attributes:
        name: which.
        units: frames or codes that a run emits.
        mcycles, rw_mb, modelled_ms: of a run.
        layers: how many there are; cpu: those on the CPU besides inputs and outputs.
        snr_db: in the toolkit's simulator against the original; None where that was not run.
        utterance_ms: modelled time of the runs that five seconds take; None where that was not counted.
        runs: how many those are.
    """

    name: str
    units: int
    mcycles: float
    rw_mb: float
    modelled_ms: float
    layers: int
    cpu: int
    snr_db: float | None = None
    utterance_ms: float | None = None
    runs: int | None = None

    def per_unit(self, figure: str) -> float:
        """`figure` per emitted frame or code."""
        return float(getattr(self, figure)) / self.units


def side_of(
    name: str,
    units: int,
    layers: Layers,
    snr_db: float | None = None,
    utterance_ms: float | None = None,
    runs: int | None = None,
) -> Side:
    """An engine whose layer table comes to `layers`."""
    return Side(
        name, units, layers.cycles / 1e6, layers.rw_kb / 1e3, layers.modelled_ms, layers.count, len(layers.cpu), snr_db,
        utterance_ms, runs,
    )  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A stage of the table.

    Attributes:
        stage: which.
        unit: "frame" or "code".
        ours, theirs: our default engine for five seconds, and the reference's graph and window.
        bounds: of ours over theirs per unit, by figure.
        most_cpu: layers of ours on the CPU, at most.
        missed: bounds that are known not to be met, and what limits it.
        snr_of: what the two dB are of.
    """

    stage: str
    unit: str
    ours: Side
    theirs: Side
    bounds: Mapping[str, float]
    most_cpu: int
    snr_of: str
    missed: Mapping[str, str] = field(default_factory=dict)

    def ratio(self, figure: str) -> float:
        """Ours over theirs per frame or code."""
        return self.ours.per_unit(figure) / self.theirs.per_unit(figure)

    @property
    def faults(self) -> list[str]:
        """What is not as the issue has it."""
        found = [
            f"{self.stage}: {FIGURES[figure]} per {self.unit} are {self.ratio(figure):.3f} of the reference's, "
            f"{bound:g} at most" + (f": {self.missed[figure]}" if figure in self.missed else "")
            for figure, bound in self.bounds.items()
            if self.ratio(figure) > bound
        ]
        if self.ours.cpu > self.most_cpu:
            found.append(f"{self.stage}: {self.ours.cpu} layers on the CPU, {self.most_cpu} at most")
        ours, theirs = self.ours.snr_db, self.theirs.snr_db
        if ours is None or theirs is None or not ours >= theirs - SNR_WITHIN_DB:
            found.append(f"{self.stage}: {_db(ours)} in the simulator, the reference {_db(theirs)} ({self.snr_of})")
        return found


def lines_of(row: Row) -> list[str]:
    """A stage, for the person."""
    lines = [f"{row.stage}: {row.ours.name} over {row.theirs.name}, per emitted {row.unit}"]
    for figure, unit in FIGURES.items():
        ours, theirs, ratio = row.ours.per_unit(figure), row.theirs.per_unit(figure), row.ratio(figure)
        verdict = f"<= {row.bounds[figure]:.2f} {'met' if ratio <= row.bounds[figure] else 'NOT MET'}"
        lines.append(f"  {unit:20}{ours:12.4f}{theirs:12.4f}{ratio:8.3f}  {verdict}")
    lines.append(f"  {'on the CPU':20}{row.ours.cpu:12d}{row.theirs.cpu:12d}{'':8}  <= {row.most_cpu}")
    lines.append(f"  {'simulator':20}{_db(row.ours.snr_db):>12}{_db(row.theirs.snr_db):>12}{'':8}  {row.snr_of}")
    if row.ours.utterance_ms is not None and row.theirs.utterance_ms is not None:
        ours, theirs = row.ours.utterance_ms, row.theirs.utterance_ms
        runs = f"{row.ours.runs} runs and {row.theirs.runs}"
        lines.append(f"  {'5 s, modelled ms':20}{ours:12.1f}{theirs:12.1f}{ours / theirs:8.3f}  {runs}")
    return lines


def page_line(row: Row) -> str:
    """A stage as a row of the table in docs/cost.md."""
    ratios = [
        f"{row.ratio(figure):.2f}{'' if row.ratio(figure) <= row.bounds[figure] else ' (missed)'}" for figure in FIGURES
    ]
    five = "-"
    if row.ours.utterance_ms is not None and row.theirs.utterance_ms is not None:
        five = f"{row.ours.utterance_ms:.0f}, {row.theirs.utterance_ms:.0f}"
    decibels = f"{_db(row.ours.snr_db)}, {_db(row.theirs.snr_db)}".replace(" dB", "")
    cells = [
        row.stage,
        f"`{row.ours.name}`, {row.ours.units}",
        row.theirs.name,
        *ratios,
        str(row.ours.cpu),
        decibels,
        five,
    ]
    return f"| {' | '.join(cells)} |"


def write_rows(report: Path, rows: Sequence[Row]) -> None:
    """All figures into the file `report`, beside those of other stages that it has already."""
    report.parent.mkdir(exist_ok=True)
    known = read_stages(report)
    for row in rows:
        ratios = {figure: row.ratio(figure) for figure in FIGURES}
        known[row.stage] = {**asdict(row), "ratios": ratios, "faults": row.faults, "page": page_line(row)}
    text = json.dumps({"stages": known, "load_average": os.getloadavg()}, indent=1)
    report.write_text(f"{text}\n", encoding="utf-8")


def read_stages(report: Path) -> dict[str, dict[str, Any]]:
    """What `write_rows` wrote into the file `report`, by stage; nothing where there is none."""
    if not report.is_file():
        return {}
    stages: dict[str, dict[str, Any]] = json.loads(report.read_text(encoding="utf-8"))["stages"]
    return stages


def _db(measured: float | None) -> str:
    return "not run" if measured is None else f"{measured:.1f} dB"
