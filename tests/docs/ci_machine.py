"""A machine of a CI service: an empty folder, a shell, an environment that holds nothing of ours."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.docs.pages import ROOT

CONVERTER = "RKNN_TTS_CONVERTER_PYTHON"
_TIMEOUT_S = 300


@dataclass
class Machine:
    """A fresh machine.

    Attributes:
        folder: where the jobs run.
        settings: variables that the machine itself has set.
        output: what was printed so far, both streams.
    """

    folder: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    output: str = ""

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)

    def run(self, script: str, options: str, env: Mapping[str, str]) -> int:
        """Run `script` in bash with `options`, as the service does; its exit code."""
        ours = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", CONVERTER) if name in os.environ}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", *options.split(), "-c", script],
            cwd=self.folder,
            env={**ours, "CI": "true", **env, **self.settings},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        self.output += done.stdout
        return done.returncode

    def check_out_tool(self, place: str) -> None:
        """Have this checkout at `place`, its environments ready."""
        (self.folder / place).symlink_to(ROOT)


def copy_folder(source: Path, target: Path) -> None:
    """Have what is in `source` in `target`, beside what is there."""
    shutil.copytree(source, target, dirs_exist_ok=True)


def copy_paths(folder: Path, paths: list[str], target: Path) -> bool:
    """Copy files and folders of `folder` to their places below `target`; whether there was any file."""
    for path in paths:
        if (folder / path).is_dir():
            copy_folder(folder / path, target / path)
        elif (folder / path).is_file():
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(folder / path, target / path)
    return any(path.is_file() for path in target.rglob("*"))
