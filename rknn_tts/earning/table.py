"""The table of what was weighed, `weighed.json` beside this module: the choices of an engine, by stage and target.

`python -m rknn_tts.earning.record` writes it. An engine that is not in it takes after the nearest one of its stage:
that of the same name, else of the same role, else of the nearest width.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from contracts.choices import BY_THE_TABLE, Choice
from contracts.contract import Contract
from contracts.files import write_whole
from contracts.serial import from_json, parse_json, to_json

PLACE = Path(__file__).with_name("weighed.json")


@dataclass(frozen=True)
class Entry:
    """One engine that was weighed.

    Attributes:
        family, stage, role: which of a stage's engines.
        stem: its file's stem (`piper-decoder-w109`).
        frames: the width of its window; None where it has none.
        target, toolkit: for which chip, and by which version of rknn-toolkit2.
        source: what its weights came from.
        choices: what was kept.
    """

    family: str
    stage: str
    role: str | None
    stem: str
    frames: int | None
    target: str
    toolkit: str
    source: str
    choices: tuple[Choice, ...]

    @property
    def key(self) -> tuple[str, ...]:
        """What there is one entry of, and what they are sorted by."""
        return (
            self.family,
            self.stage,
            self.target,
            self.toolkit,
            self.role or "",
            f"{self.frames or 0:06}",
            self.stem,
        )


@dataclass(frozen=True)
class Table:
    """The file."""

    entries: tuple[Entry, ...]


def read_table(place: Path = PLACE) -> tuple[Entry, ...]:
    """What is in the file `place`; it belongs to the code, so a fault in it is ours."""
    return from_json(Table, parse_json(place.read_text(encoding="utf-8")), place.name).entries


def write_table(entries: Sequence[Entry], place: Path = PLACE) -> None:
    """Put `entries` into `place`, in the place of those of the same engines."""
    there = read_table(place) if place.is_file() else ()
    merged = {entry.key: entry for entry in (*there, *entries)}
    table = Table(tuple(merged[key] for key in sorted(merged)))
    write_whole(place, (json.dumps(to_json(table), indent=1) + "\n").encode())


@cache
def _table() -> tuple[Entry, ...]:
    return read_table()


def entries_for(family: str, stage: str, target: str | None, toolkit: str) -> tuple[Entry, ...]:
    """What was weighed of a stage for a target; nothing for a graph that is for all targets."""
    wanted = (family, stage, target, toolkit)
    return tuple(entry for entry in _table() if (entry.family, entry.stage, entry.target, entry.toolkit) == wanted)


def nearest(entries: Sequence[Entry], stem: str, contract: Contract) -> Entry | None:
    """Of `entries`, all of one stage and target, the one that an engine takes after; None where there is none.

    Args:
        entries: what was weighed.
        stem: of the engine's file.
        contract: the engine's.
    """
    frames = contract.window.frames if contract.window is not None else 0
    ranked = sorted(
        entries,
        key=lambda entry: (entry.stem != stem, entry.role != contract.role, abs((entry.frames or 0) - frames)),
    )
    return ranked[0] if ranked else None


def as_taken_over(choice: Choice) -> Choice:
    """`choice` as another engine has it."""
    return replace(choice, basis=BY_THE_TABLE)


def weighed_text(stem: str, target: str, toolkit: str) -> str:
    """What an engine was weighed as, in words."""
    return f"{stem} for {target} by rknn-toolkit2 {toolkit}"
