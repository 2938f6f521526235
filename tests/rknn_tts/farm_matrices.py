"""Matrices for tests of the farm's planner; a checkpoint is planned without being opened, so any bytes will do."""

from __future__ import annotations

from pathlib import Path

from farm.jobs import Job, Kind, Plan
from farm.matrix import Matrix, read_matrix
from rknn_tts.farm_jobs import plan_of
from rknn_tts.known_files import KnownFiles

PIPER = 'family = "piper"\ncheckpoints = ["voices/*.onnx"]'


def touch(folder: Path, *names: str) -> None:
    """Files of different content below `folder`."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def matrix(folder: Path, *rows: str, top: str = 'targets = ["rk3588", "rk3566"]') -> Matrix:
    """The matrix of these `[[voices]]` in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n".join([top, *(f"[[voices]]\n{row}" for row in rows)])
    (folder / "m.toml").write_text(text, encoding="utf-8")
    return read_matrix(folder / "m.toml")


def planned(folder: Path, *rows: str, top: str = 'targets = ["rk3588", "rk3566"]') -> Plan:
    """The plan of such a matrix."""
    return plan_of(matrix(folder, *rows, top=top), KnownFiles()).plan


def of_kind(plan: Plan, kind: Kind) -> list[Job]:
    """Its jobs of this kind."""
    return [job for job in plan.jobs if job.kind is kind]
