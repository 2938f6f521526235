"""A folder that looks like the checkout to the commands of the pages, with a cache of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from rknn_tts.steps import CHECKPOINTS_FOLDER
from tests.docs.pages import ROOT
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import write_voice

ENGINE_COMMAND = "make engine FAMILY=piper TARGET=rk3588"
"""The first command of the README."""

ONE_WINDOW_COMMAND = f"{ENGINE_COMMAND} WINDOW=109"
"""Another one of it, whose engine most pages look at."""

DURATIONS_COMMAND = "make engine FAMILY=piper STAGE=duration_encoder TARGET=rk3588 WIDTHS=128,192"
"""The command of docs/piper-durations.md."""

USERS_VOICE = Path("voices/my-voice.onnx")
"""How the pages call a voice of the reader's own."""

CHOIR = Path("voices/choir.onnx")
"""How they call one of several speakers."""

CHOIR_RECIPE = Recipe(speakers=2)

_LINKED = ("rknn-tts", "Makefile", ".venv", "environments", "mkdocs.yml", "docs")
_COPIED = ("examples",)
"""Matrices there name places beside themselves, which would be the checkout's own through a link."""
_TIMEOUT_S = 300
_FROM_OUTER_MAKE = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES", "RKNN_TTS_MAKE_OVERRIDES")


@dataclass(frozen=True)
class Ran:
    """What a script came to: its exit code, and both its streams as they were written."""

    code: int
    output: str


@dataclass(frozen=True)
class Workplace:
    """A working copy made of links, so that outputs land in it and nothing is installed again."""

    folder: Path
    cache: Path

    def run(self, script: str, timeout_s: float = _TIMEOUT_S) -> Ran:
        """Run `script` in a shell that stops at the first failing command."""
        kept = {name: value for name, value in os.environ.items() if name not in _FROM_OUTER_MAKE}
        done = subprocess.run(
            ["/bin/sh", "-eu", "-c", script],
            cwd=self.folder,
            env={**kept, "RKNN_TTS_CACHE": str(self.cache), "COLUMNS": "200"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        return Ran(done.returncode, done.stdout)


def make_workplace(folder: Path, fetched_voice: Path) -> Workplace:
    """A workplace in the empty `folder`, with the default voice at hand and two small voices as the reader's own."""
    for name in _LINKED:
        if (ROOT / name).exists():
            (folder / name).symlink_to(ROOT / name)
    for name in _COPIED:
        shutil.copytree(ROOT / name, folder / name)
    cache = folder / "cache"
    shutil.copytree(fetched_voice, cache / CHECKPOINTS_FOLDER / fetched_voice.name)
    (folder / USERS_VOICE).parent.mkdir()
    write_voice(folder / USERS_VOICE)
    write_voice(folder / CHOIR, CHOIR_RECIPE)
    return Workplace(folder, cache)
