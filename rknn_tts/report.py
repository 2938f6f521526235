"""What a command came to, however it ended, and its JSON form for `--json`."""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from contracts.errors import EXIT_DONE, EXIT_FAILED, FULL, GateFailure, RknnTtsError, Shortage, ToolFailure
from contracts.serial import Json, from_json, parse_json, to_json
from contracts.verdicts import Verdict
from rknn_tts.outcome import Outcome
from rknn_tts.request import Request

SCHEMA = "rknn-tts/result/1"

EXIT_INTERRUPTED = 130
"""What shells report of a program ended by SIGINT: 128 + 2."""

TRACEBACK_VARIABLE = "RKNN_TTS_TRACEBACK"

NOTHING = Outcome(files=(), manifest=None, verdicts=(), measurements=(), notes=(), reused=())

_MACHINE_ERRORS = FULL | {
    *(errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ENAMETOOLONG, errno.ELOOP),
    *(errno.EISDIR, errno.ENOTDIR),
}
"""What the machine refuses, or stands in the way on the disk, and no bug is."""


@dataclass(frozen=True)
class Report:
    """The end of any command.

    Attributes:
        request: what was asked, as far as it could be understood.
        exit_code: how the command ends.
        error: why it did not do what was asked, as a sentence; None where it did.
        shortage: what the machine had too little of, where that is why.
        outcome: what was built, and the verdicts; of a failed command, those reached until then.
        subject: what was worked on: `family.stage`, or the stem of the file.
        extra: what the other commands found, by the key under which the JSON object holds it.
        parts: of a command for many checkpoints, what each of them came to.
    """

    request: Request
    exit_code: int = EXIT_DONE
    error: str | None = None
    outcome: Outcome = NOTHING
    subject: str = "rknn-tts"
    extra: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    shortage: Shortage | None = None


@dataclass(frozen=True)
class Part:
    """What one checkpoint of many came to.

    Attributes:
        voice: its name.
        report: of the command for it alone.
        seconds: how long that took.
        peak_bytes: resident memory of all its processes at one time, as sampled; 0 where it ended before a sample.
    """

    voice: str
    report: Report
    seconds: float
    peak_bytes: int


def report_of_failure(request: Request, error: BaseException, subject: str = "rknn-tts") -> Report:
    """The report of a command that `error` ended: an error for the user, an interrupt, or a bug."""
    verdicts: tuple[Verdict, ...] = ()
    log: Path | None = None
    if isinstance(error, GateFailure):
        verdicts, log = error.verdicts, error.log
    elif isinstance(error, ToolFailure):
        log = error.log
    sentence, exit_code = _sentence(error)
    outcome = replace(NOTHING, verdicts=verdicts, log=str(log) if log else None)
    return Report(request, exit_code, sentence, outcome, subject, shortage=shortage_of_error(error))


def shortage_of_error(error: BaseException) -> Shortage | None:
    """What `error` says the machine had too little of; None where it says nothing of the kind."""
    if isinstance(error, ToolFailure) and error.shortage is not None:
        return error.shortage
    if isinstance(error, MemoryError):
        return Shortage.MEMORY
    if isinstance(error, OSError) and error.errno in FULL:
        return Shortage.DISK
    # What raised an error of ours (a file that could not be put in its place) tells why.
    return shortage_of_error(error.__cause__) if error.__cause__ is not None else None


def report_json(report: Report) -> str:
    """The one JSON object of `--json`, on one line; non-finite numbers are strings."""
    # ASCII: a name may hold what the stream's encoding, or UTF-8 itself, cannot carry.
    return json.dumps(_report_data(report), allow_nan=False) + "\n"


def read_report(text: str, request: Request) -> Report:
    """The report of the command `request` from the object in `text`, which `report_json` wrote.

    Raises:
        ValueError: it is no such object.
    """
    data = parse_json(text)
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise ValueError(f"its schema is not {SCHEMA}")
    empty = to_json(NOTHING)
    assert isinstance(empty, dict)
    members = [{**empty, **member} for member in data.get("members", [])]
    told = from_json(_Told, data, "report")
    outcome = from_json(Outcome, {**empty, **data, "members": members})
    return Report(request, told.exit_code, told.error, outcome, shortage=told.shortage)


@dataclass(frozen=True)
class _Told:
    """What an object of `report_json` says beside the outcome."""

    exit_code: int
    error: str | None
    shortage: Shortage | None = None


def _report_data(report: Report) -> dict[str, Json]:
    outcome = report.outcome
    return {
        "schema": SCHEMA,
        "request": to_json(report.request),
        "exit_code": report.exit_code,
        "error": report.error,
        **({"shortage": report.shortage.value} if report.shortage else {}),
        "files": to_json(outcome.files),
        "verdicts": to_json(outcome.verdicts),
        "measurements": to_json(outcome.measurements),
        "notes": to_json(outcome.notes),
        "reused": to_json(outcome.reused),
        "log": outcome.log,
        "manifest": to_json(outcome.manifest),
        **({"models": to_json(outcome.models)} if outcome.models else {}),
        **({"members": [_member_json(member) for member in outcome.members]} if outcome.members else {}),
        **({"aperture": to_json(outcome.aperture)} if outcome.aperture else {}),
        **({"results": [_part_data(part) for part in report.parts]} if report.parts else {}),
        **{key: to_json(value) for key, value in report.extra.items()},
    }


def _part_data(part: Part) -> Json:
    """The object that the command for this checkpoint alone prints, and what is known of it besides."""
    known: dict[str, Json] = {"voice": part.voice, "seconds": part.seconds, "peak_memory_bytes": part.peak_bytes}
    return {**_report_data(part.report), **known}


def _member_json(member: Outcome) -> Json:
    """One engine of a set; its verdicts and measurements stand in its manifest."""
    return {"files": to_json(member.files), "log": member.log, "manifest": to_json(member.manifest)}


def _sentence(error: BaseException) -> tuple[str, int]:
    if isinstance(error, RknnTtsError):
        return str(error), error.exit_code
    if isinstance(error, KeyboardInterrupt):
        return "Interrupted: the command was stopped before it was done.", EXIT_INTERRUPTED
    if isinstance(error, OSError) and error.errno in _MACHINE_ERRORS:
        return _machine_sentence(error), EXIT_FAILED
    what = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".: ")
    again = f"Run the command again with {TRACEBACK_VARIABLE}=1 to see where."
    return f"rknn-tts itself failed ({what}); this is a bug. {again}", EXIT_FAILED


def _machine_sentence(error: OSError) -> str:
    if error.errno in FULL and not error.filename:  # in the middle of a write, which tells no name
        return (
            f"The disk is full ({error.strerror}): free some space, or move what is in the making with TMPDIR and the "
            "finished steps with RKNN_TTS_CACHE."
        )
    return f"{error.filename or 'A file'!s:.300}: cannot be written or read ({error.strerror})."
