"""What a command came to, however it ended, and its JSON form for `--json`."""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from contracts.errors import EXIT_DONE, EXIT_FAILED, GateFailure, RknnTtsError, ToolFailure
from contracts.serial import Json, to_json
from contracts.verdicts import Verdict
from rknn_tts.outcome import Outcome
from rknn_tts.request import Request

SCHEMA = "rknn-tts/result/1"

EXIT_INTERRUPTED = 130
"""What shells report of a program ended by SIGINT: 128 + 2."""

TRACEBACK_VARIABLE = "RKNN_TTS_TRACEBACK"

NOTHING = Outcome(files=(), manifest=None, verdicts=(), measurements=(), notes=(), reused=())

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})

_MACHINE_ERRORS = _FULL | {errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ENAMETOOLONG, errno.ELOOP}
"""What the machine refuses, and no bug is."""


@dataclass(frozen=True)
class Report:
    """The end of any command.

    Attributes:
        request: what was asked, as far as it could be understood.
        exit_code: how the command ends.
        error: why it did not do what was asked, as a sentence; None where it did.
        outcome: what was built, and the verdicts; of a failed command, those reached until then.
        subject: what was worked on: `family.stage`, or the stem of the file.
        extra: what the other commands found, by the key under which the JSON object holds it.
    """

    request: Request
    exit_code: int = EXIT_DONE
    error: str | None = None
    outcome: Outcome = NOTHING
    subject: str = "rknn-tts"
    extra: Mapping[str, Any] = field(default_factory=dict)


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
    return Report(request, exit_code, sentence, outcome, subject)


def report_json(report: Report) -> str:
    """The one JSON object of `--json`, on one line; non-finite numbers are strings."""
    outcome = report.outcome
    data: dict[str, Json] = {
        "schema": SCHEMA,
        "request": to_json(report.request),
        "exit_code": report.exit_code,
        "error": report.error,
        "files": to_json(outcome.files),
        "verdicts": to_json(outcome.verdicts),
        "measurements": to_json(outcome.measurements),
        "notes": to_json(outcome.notes),
        "reused": to_json(outcome.reused),
        "log": outcome.log,
        "manifest": to_json(outcome.manifest),
        **({"members": [_member_json(member) for member in outcome.members]} if outcome.members else {}),
        **{key: to_json(value) for key, value in report.extra.items()},
    }
    # ASCII: a name may hold what the stream's encoding, or UTF-8 itself, cannot carry.
    return json.dumps(data, allow_nan=False) + "\n"


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
    if error.errno in _FULL and not error.filename:  # in the middle of a write, which tells no name
        return (
            f"The disk is full ({error.strerror}): free some space, or move what is in the making with TMPDIR and the "
            "finished steps with RKNN_TTS_CACHE."
        )
    return f"{error.filename or 'A file'!s:.300}: cannot be written or read ({error.strerror})."
