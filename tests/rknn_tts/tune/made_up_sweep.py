"""A sweep that builds nothing, in the place of the real one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

from contracts.contract import Source
from contracts.manifest import Layers, Memory
from rknn_tts.tune.candidates import Candidate
from rknn_tts.tune.rows import COSTED, FAILED, PASSED, Row, Size
from rknn_tts.tune.sweep import Swept

SOURCE: Any = SimpleNamespace(contract=SimpleNamespace(source=Source("mini.json", "ab" * 32, "checkpoint")))
"""What is asked of a graph that there is none of."""

UNITS = {"plain": 0.0, "masked": 1.0, "trimmed": -1.0}

FAULT = "fp32.noise: 59 dB, and 95 is the bound"


@dataclass
class MadeUp:
    """A window of W frames with one of context costs W ms, one more where it is masked, one less where it is trimmed.

    Attributes:
        failing: names of windows that fail a gate.
        refused: of those that the stage refuses.
        rate: frames in a second of audio.
        proved: those that were proven, in order.
    """

    failing: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()
    rate: float | None = 2.0
    proved: list[str] = field(default_factory=list)
    notes: tuple[str, ...] = ("a note",)

    def check_toolkit(self) -> None:
        """It needs none."""

    def opened(self, candidate: Candidate) -> list[Swept]:
        roles = ("full", "short") if candidate.knob == "window" else ("",)
        return [self._opened(candidate, role) for role in roles]

    def costed(self, swept: Sequence[Swept]) -> list[Swept]:
        return [one if one.source is None else replace(one, row=_with_cost(one.row)) for one in swept]

    def proven(self, swept: Swept) -> Swept:
        self.proved.append(swept.row.name)
        if swept.row.name in self.failing:
            return replace(swept, row=replace(swept.row, status=FAILED, reason=FAULT))
        found = replace(_with_cost(swept.row), status=PASSED, engine_bytes=1000, simulator_db=44.04, fp32_db=101.0)
        return replace(swept, row=found)

    def _opened(self, candidate: Candidate, role: str) -> Swept:
        name = f"{candidate.name} {role}".rstrip()
        short = candidate.form == "masked" or role == "short"
        row = Row(name, candidate.value, candidate.form, candidate.context, role, short, COSTED)
        if name in self.refused:
            return Swept(candidate, replace(row, status=FAILED, reason="the stage refuses it."), None)
        width, context = int(candidate.value.rstrip("mt")), candidate.context or 1
        emitted = width - 2 * context
        trim = emitted if candidate.form == "trimmed" else None
        seconds = emitted / self.rate if self.rate else None
        size = Size("frame", width, emitted, context, context, trim, seconds, self.rate)
        return Swept(candidate, replace(row, size=size), SOURCE)


def _with_cost(row: Row) -> Row:
    assert row.size is not None
    width = row.size.width
    layers = Layers(9, 1000, 1.0, width + UNITS.get(row.form, 0.0), (), None)
    return replace(row, layers=layers, memory=Memory(40.0 * width, 1000.0))
