"""What the workflow and its runner are told, beside the plan: one small file that every node reads."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from contracts.errors import UserInput
from contracts.files import write_whole
from contracts.serial import from_json, parse_json, to_json
from farm.core_slots import PREFIX

ATTEMPTS = 3
"""How often a job is tried that died for memory, for room or without a word: once beside others and twice alone, of
which one may meet with another node's fault."""


@dataclass(frozen=True)
class Settings:
    """Of one run of a farm.

    Attributes:
        program: what runs the jobs' commands: rknn-tts itself, or a test's stand-in.
        python: of the farm's own environment; it runs the runner (farm/run_job.py).
        memory_bytes: what all jobs on a machine may take together, and a job that is alone; 0 where each node of a
            cluster has its own.
        attempts: how often a job is tried at most.
        processors: by which names runners take processors (farm.core_slots): all farms of a user by the same.
    """

    program: str
    python: str
    memory_bytes: int
    attempts: int = ATTEMPTS
    processors: str = PREFIX


def write_settings(settings: Settings, path: Path) -> None:
    """Write `settings` to `path`, whole or not at all."""
    write_whole(path, (json.dumps(to_json(settings), indent=1) + "\n").encode())


def read_settings(path: Path) -> Settings:
    """The settings in the file `path`.

    Raises:
        UserInput: it cannot be read, or holds none.
    """
    try:
        return from_json(Settings, parse_json(path.read_text(encoding="utf-8")), "settings")
    except OSError as error:
        raise UserInput(f"{path}: cannot be read ({error.strerror}).") from error
    except ValueError as error:
        raise UserInput(f"{path}: is damaged ({error}); run `rknn-tts farm MATRIX.toml` again.") from error
