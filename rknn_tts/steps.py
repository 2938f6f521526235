"""The cached steps of a conversion: each is found again by the digest of everything that went into it.

export   checkpoint, options, code, libraries              -> model.onnx, host.onnx, export.json
graph    model.onnx, code                                  -> graph.json
build    model.onnx, target, toolkit and its lock, code    -> engine.rknn, lines.log, simulated.npz, build.json
judge    the build, thresholds, accepted keys              -> judged.json
"""

from __future__ import annotations

import atexit
import dataclasses
import json
import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TypeVar

from contracts.serial import from_json, to_json
from contracts.verdicts import Status, Verdict
from engine.cache import StepCache, default_folder, limit_bytes, source_digest, step_key

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("contracts", "converters", "cost", "engine", "gates", "logs", "models", "rknn_tts", "runtime", "surgery")
"""Folders whose code decides results: edited code does not find its earlier ones."""

LIBRARIES = ("numpy", "onnx", "onnx-ir", "onnxruntime", "onnxscript", "onnxslim", "protobuf")

STEPS_FOLDER, CHECKPOINTS_FOLDER = "steps", "checkpoints"

T = TypeVar("T")

_IN_THE_MAKING: set[Path] = set()
"""Folders of steps that are not done, and of those that only this process keeps."""


@dataclass(frozen=True)
class Steps:
    """The cache for one command.

    Attributes:
        cache: the store.
        force: do every step again.
        reused: names of the steps that were found; grows.
    """

    cache: StepCache
    force: bool
    reused: list[str]

    def folder(
        self, name: str, parts: Mapping[str, str], work: Callable[[Path], None], rooms: tuple[str, ...] = ROOMS
    ) -> Path:
        """The folder with the result of the step `name`, found by `parts` or made by `work` in an empty folder.

        A step that raises leaves nothing. `rooms` are those whose code decides the result, besides `parts`. Waits for
        another process that makes it, unless every step is to be done again.
        """
        key = step_key(name, {**parts, "code": code_digest(rooms)})
        with self._claimed(name, key) as found:
            return found or self._made(name, key, work)

    def value(self, name: str, kind: type[T], parts: Mapping[str, str], work: Callable[[], T]) -> T:
        """The result of a step that is a dataclass, kept as JSON, unless it holds a failed verdict.

        What fails may do so for a reason of the moment (no memory for onnxruntime), which no part of its key tells.
        """
        key, file = step_key(name, {**parts, "code": code_digest()}), f"{name}.json"
        with self._claimed(name, key) as folder:
            if folder is not None:
                return from_json(kind, json.loads((folder / file).read_text(encoding="utf-8")), name)
            # Before there is a folder: this may run in a thread that ends with the process.
            value = work()
            text = json.dumps(to_json(value))
            if not _holds_failure(value):
                self._made(name, key, lambda made: (made / file).write_text(text, encoding="utf-8"))
        # As it will be found again: JSON makes a whole number of a float's field a float.
        return from_json(kind, json.loads(text), name)

    @contextmanager
    def _claimed(self, name: str, key: str) -> Iterator[Path | None]:
        """The finished step, or None for the body to make it, while others that need it wait."""
        found = self._found(name, key)
        if found is not None or self.force:
            yield found
            return
        with self.cache.claimed(key, name):
            yield self._found(name, key)  # another process may have made it while we waited

    def _found(self, name: str, key: str) -> Path | None:
        found = None if self.force else self.cache.find(key)
        if found is not None:
            self.reused.append(name)
        return found

    def _made(self, name: str, key: str, work: Callable[[Path], object]) -> Path:
        made = Path(tempfile.mkdtemp(prefix=f"rknn-tts-{name}-"))
        _IN_THE_MAKING.add(made)
        stored: Path | None = None
        try:
            work(made)
            stored = self.cache.store(key, made, given_up=True)
            return stored
        finally:
            if stored != made:  # else nothing is kept, but it is read from there until the command ends
                shutil.rmtree(made, ignore_errors=True)
                _IN_THE_MAKING.discard(made)


def remove_unfinished() -> None:
    """Remove what steps have in the making: of threads that end with the process, nobody else does."""
    for folder in tuple(_IN_THE_MAKING):
        shutil.rmtree(folder, ignore_errors=True)


atexit.register(remove_unfinished)


def _holds_failure(value: object) -> bool:
    if isinstance(value, Verdict):
        return value.status is Status.FAILED
    if dataclasses.is_dataclass(value):
        return any(_holds_failure(getattr(value, field.name)) for field in dataclasses.fields(value))
    return isinstance(value, (tuple, list)) and any(map(_holds_failure, value))


def cache_folder() -> Path:
    """Where finished steps and fetched checkpoints are kept."""
    return default_folder()


def open_steps(force: bool, say: Callable[[str], None]) -> Steps:
    """The steps of one command; `say` is told once if the cache cannot be used, and of every step that is waited for.

    Raises:
        UserInput: the cache's limit, as the environment states it, is no size.
    """
    return Steps(StepCache(cache_folder() / STEPS_FOLDER, limit_bytes(os.environ), say), force, [])


@cache
def code_digest(rooms: tuple[str, ...] = ROOMS) -> str:
    """Digest of our own code in `rooms`, and the versions of the libraries and of the Python it runs on."""
    folders = [ROOT / room for room in rooms if (ROOT / room).is_dir()]
    versions = [f"{name}=={metadata.version(name)}" for name in LIBRARIES]
    return " ".join([source_digest(folders), f"python=={platform.python_version()}", *versions])
