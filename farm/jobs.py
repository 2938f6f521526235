"""What a farm does: its jobs, each one or more commands of rknn-tts, and the file of all of them.

A job's id is its kind and the digest of all that decides its result, so a job whose outcome is at hand has nothing left
to do: a checkpoint that changes, or code that does, makes another job.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from contracts.errors import UserInput
from contracts.files import write_whole
from contracts.serial import from_json, parse_json, to_json

SCHEMA = "rknn-tts/farm/1"

EXPORTS = "@exports"
"""A word of a command in whose place the exported graphs of the job's need stand, one word each."""

ENGINES = "@engines"
"""Likewise the engines (.rknn) of the job's need."""


class Kind(str, Enum):
    """The real steps, one rule of the workflow each, in their order."""

    EXPORT = "export"
    """A checkpoint and a geometry to ONNX, for every target (or for one, where the matrix asks for its own cuts)."""
    COMPILE = "compile"
    """What was exported to engines for one target."""
    PAGE = "page"
    """The page of these engines."""
    TWICE = "twice"
    """The same engines once more from the checkpoint, nothing found again, on another node where there is one."""


@dataclass(frozen=True)
class Job:
    """One job.

    Attributes:
        id: `KIND-DIGEST`, 16 hex digits.
        kind: its rule.
        commands: the command lines of rknn-tts, in order; each ends with --json.
        folder: where they are run and what they make goes, relative to the farm's output folder.
        needs: ids of jobs whose outcomes it starts from.
        family, stage, voice, width, target, toolkit: of what; `width` is the geometry's label, "" the stage's own;
            `target` is None for an export for all.
        language: of the voice, as its checkpoint or the matrix says (BCP 47); None where neither does.
        checkpoint: what `--checkpoint` names; None for the stage's package.
        checkpoint_bytes: its size, by which memory is estimated until one was measured.
    """

    id: str
    kind: Kind
    commands: tuple[tuple[str, ...], ...]
    folder: str
    needs: tuple[str, ...]
    family: str
    stage: str
    voice: str
    width: str
    target: str | None
    toolkit: str
    language: str | None = None
    checkpoint: str | None = None
    checkpoint_bytes: int = 0


@dataclass(frozen=True)
class Unplanned:
    """A checkpoint of the matrix that no job was made of, and why."""

    checkpoint: str
    family: str
    stage: str
    sentence: str


@dataclass(frozen=True)
class Plan:
    """All jobs of a matrix.

    Attributes:
        matrix: the file's name.
        jobs: needs first.
        unplanned: what is left out, each with its sentence: the farm fails, and does all the rest.
    """

    matrix: str
    jobs: tuple[Job, ...]
    unplanned: tuple[Unplanned, ...] = ()
    schema: str = SCHEMA


def write_plan(plan: Plan, path: Path) -> None:
    """Write `plan` to `path`, whole or not at all."""
    text = json.dumps(to_json(plan), indent=1, ensure_ascii=False) + "\n"
    # A path may hold bytes that are no UTF-8, which JSON has an escape for.
    write_whole(path, text.encode("utf-8", errors="backslashreplace"))


def read_plan(path: Path) -> Plan:
    """The plan in the file `path`.

    Raises:
        UserInput: it cannot be read, or is no plan of this schema.
    """
    try:
        data = parse_json(path.read_text(encoding="utf-8"))
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA}")
        return from_json(Plan, data, "plan")
    except OSError as error:
        raise UserInput(f"{path}: cannot be read ({error.strerror}).") from error
    except ValueError as error:
        raise UserInput(f"{path}: is no plan of a farm ({error}); run `rknn-tts farm MATRIX.toml` again.") from error
