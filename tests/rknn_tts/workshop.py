"""Runs the commands in a folder and a cache of the test's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from contracts.files import sha256_of
from rknn_tts import pipeline
from rknn_tts.outcome import Outcome
from rknn_tts.request import Request
from rknn_tts.steps import Steps, open_steps

ENGINE = "engines/rk3588/mini/piper-decoder-w109"
LOG = "build-logs/mini-piper-decoder-w109-rk3588"
"""Where `build` of the small voice (conftest) puts what it makes: the beginnings of the names."""

_OTHER_ENGINES = {"window", "windows", "context", "decoder_mask", "stage", "all"}

COMMANDS: dict[str, Callable[[Request, Any], Outcome]] = {
    "engine": pipeline.engine,
    "export": pipeline.export,
    "compile": pipeline.compile_onnx,
}


@dataclass
class Heard:
    """What a command said while it ran."""

    steps: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def step(self, text: str) -> None:
        self.steps.append(text)

    def note(self, text: str) -> None:
        self.notes.append(text)


@dataclass(frozen=True)
class Workshop:
    """A working directory, and the cache that its commands use."""

    folder: Path
    cache: Path

    def run(self, command: str, said: Heard | None = None, **options: Any) -> Outcome:
        """The command with `options`, run in the folder; of piper's decoder with the one window of `ENGINE`, unless
        they choose another, or a ladder.
        """
        of_one = options.get("family") == "piper" and not options.keys() & _OTHER_ENGINES
        options = {**({"window": 109} if of_one else {}), **options}
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.folder)
            patch.setenv("RKNN_TTS_CACHE", str(self.cache))
            return COMMANDS[command](Request(command=command, **options), said or Heard())

    def build(self, said: Heard | None = None, **options: Any) -> Outcome:
        """`engine piper --target rk3588`."""
        return self.run("engine", said, family="piper", target="rk3588", **options)

    def beside(self, name: str) -> Workshop:
        """Another folder with the same cache."""
        folder = self.folder.parent / name
        folder.mkdir(exist_ok=True)
        return Workshop(folder, self.cache)

    def fresh(self, name: str) -> Workshop:
        """Another folder with an empty cache."""
        return Workshop(self.beside(name).folder, self.folder.parent / f"{name}-cache")

    def json(self, path: str) -> Any:
        """The JSON in the file `path` of the folder."""
        return json.loads((self.folder / path).read_text(encoding="utf-8"))

    def digest(self, path: str) -> str:
        """Of the file `path` of the folder."""
        return sha256_of(self.folder / path)

    def files(self) -> set[str]:
        """Every file in the folder."""
        return {path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*") if path.is_file()}


def fresh_steps(force: bool = False) -> Steps:
    """The steps as another command opens them; that the cache cannot be used fails the test."""
    return open_steps(force, lambda text: pytest.fail(text))


def new_workshop(factory: pytest.TempPathFactory) -> Workshop:
    """An empty one."""
    root = factory.mktemp("workshop")
    (root / "work").mkdir()
    return Workshop(root / "work", root / "cache")
