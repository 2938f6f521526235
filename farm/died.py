"""The note that an attempt leaves which another one may mend: for that one, for a later run, and for the catalogue."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from contracts.files import write_whole
from contracts.serial import from_json, parse_json, to_json
from farm.outcomes import Ended


@dataclass(frozen=True)
class Died:
    """How an attempt ended.

    Attributes:
        job: its id.
        attempt: which one it was, from 1.
        ended: MEMORY, DISK or LOST.
        sentence: why.
        node: the name of the machine.
        peak_bytes: most resident memory of all its processes at one time, as sampled.
    """

    job: str
    attempt: int
    ended: Ended
    sentence: str
    node: str
    peak_bytes: int


def write_died(died: Died, path: Path) -> None:
    """Write `died` to `path`, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, (json.dumps(to_json(died), indent=1) + "\n").encode())


def read_died(path: Path) -> Died | None:
    """The note in the file `path`; None where there is none, or it is damaged."""
    try:
        return from_json(Died, parse_json(path.read_text(encoding="utf-8")), "note")
    except (OSError, ValueError):
        return None
