"""What the runner reads of the JSON object that a command of rknn-tts prints (rknn_tts/report.py)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from contracts.errors import Shortage
from contracts.serial import from_json, parse_json


@dataclass(frozen=True)
class CommandReport:
    """Of a command's object.

    Attributes:
        error: its sentence; None where it went well.
        shortage: what the machine had too little of, where that is why.
        files: what it wrote, or found to be there already.
        models: of these, what `compile` takes of an export.
        reused: steps found again in the cache.
    """

    error: str | None
    shortage: Shortage | None
    files: tuple[Path, ...]
    models: tuple[Path, ...]
    reused: tuple[str, ...]


@dataclass(frozen=True)
class _Told:
    exit_code: int
    error: str | None
    files: tuple[str, ...]
    models: tuple[str, ...]
    reused: tuple[str, ...]
    shortage: Shortage | None


_SILENT: dict[str, object] = {"error": None, "files": [], "models": [], "reused": [], "shortage": None}


def read_command_report(path: Path, folder: Path) -> CommandReport | None:
    """What the file `path` holds of a command that ran in `folder`; None where it is no such object.

    Raises:
        OSError: it cannot be read.
    """
    try:
        data = parse_json(path.read_text(encoding="utf-8"))
        if not isinstance(data, dict):
            return None
        told = from_json(_Told, {**_SILENT, **data}, "report")
    except ValueError:
        return None
    files, models = (tuple(folder / name for name in names) for names in (told.files, told.models))
    return CommandReport(told.error, told.shortage, files, models, told.reused)
