"""What became of a job: the file that it leaves, whether it went well or not."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from contracts.files import write_whole
from contracts.serial import from_json, parse_json, to_json

SCHEMA = "rknn-tts/farm-outcome/1"


class Ended(str, Enum):
    """How a job ended."""

    DONE = "done"
    REFUSED = "refused"
    """Exit code 2: nothing was started (a poisoned checkpoint)."""
    FAILED = "failed"
    """Exit code 1: a gate, the toolkit or rknn-tts itself."""
    MEMORY = "memory"
    """It needs more memory than it may have even alone."""
    DISK = "disk"
    """No room was left where it ran or where it writes."""
    LOST = "lost"
    """Its process, or its node, ended without a word, as often as it was tried."""
    WAITING = "waiting"
    """What it needs was not made, so it was not begun."""


@dataclass(frozen=True)
class MadeFile:
    """A file that a job left: its path relative to the farm's output folder, its digest and size."""

    path: str
    sha256: str
    bytes: int


@dataclass(frozen=True)
class JobOutcome:
    """What became of one job.

    Attributes:
        job: its id.
        ended: how.
        sentence: why it is not done, as the command said it; None where it is.
        node: the name of the machine.
        attempt: which one it was, from 1.
        started_s: when, in seconds since 1970.
        wall_s, cpu_s: time on the clock, and of processors, of its commands (not of the farm around them).
        peak_bytes: most resident memory of all its processes at one time, as sampled.
        files: what it left, in the order of the commands' reports.
        models: of `files`, paths of the graphs that an export is compiled from.
        reused: steps that were found again in the cache, by the commands' reports: such a job measures nothing.
        report: the last command's own JSON object, relative to the farm's output folder; None where it printed none.
    """

    job: str
    ended: Ended
    sentence: str | None
    node: str
    attempt: int
    started_s: float
    wall_s: float
    cpu_s: float
    peak_bytes: int
    files: tuple[MadeFile, ...] = ()
    models: tuple[str, ...] = ()
    reused: tuple[str, ...] = ()
    report: str | None = None
    schema: str = SCHEMA


def write_outcome(outcome: JobOutcome, path: Path) -> None:
    """Write `outcome` to `path`, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(to_json(outcome), indent=1, ensure_ascii=False) + "\n"
    # A path may hold bytes that are no UTF-8, which JSON has an escape for.
    write_whole(path, text.encode("utf-8", errors="backslashreplace"))


def read_outcome(path: Path) -> JobOutcome | None:
    """The outcome in the file `path`; None where there is none, or it is damaged: the job is done again then."""
    try:
        data = parse_json(path.read_text(encoding="utf-8"))
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            return None
        return from_json(JobOutcome, data, "outcome")
    except (OSError, ValueError):
        return None
