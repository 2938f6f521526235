"""The files of a kit: one case after another is added, and `probe.json` written at the end."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rknn_tts_runtime.probing.arrays import npy_bytes
from rknn_tts_runtime.probing.kit import KIT_FILE, Case, CaseInput, CaseOutput, CaseRun, Kit, Subject, kit_text

from contracts.files import Content, sha256_of, write_whole
from contracts.manifest import Manifest
from rknn_tts.carried import Feed, Outputs

Array = NDArray[Any]


@dataclass(frozen=True)
class Draft:
    """A case that is about to be put into a kit.

    Attributes:
        name, kind, what, proves: as of a `Case`.
        manifest: the name of its engine's manifest.
        files: its engine, manifest and twin: files of their own, or what they will hold.
        feeds: inputs.
        expected: for each, the outputs that are compared.
        bounds_db: of each output, the least ratio.
        simulator_db: what the simulator reached; None where that is not known.
    """

    name: str
    kind: str
    what: str
    proves: tuple[str, ...]
    manifest: str
    files: Sequence[tuple[str, Path | Content]]
    feeds: Sequence[Feed]
    expected: Sequence[Outputs]
    bounds_db: Mapping[str, float]
    simulator_db: float | None

    @property
    def bound_db(self) -> float:
        """The least of its bounds."""
        return min(self.bounds_db[name] for outputs in self.expected for name in outputs)


@dataclass
class KitFolder:
    """A kit in the making.

    Attributes:
        folder: where it is written.
        cases: those that were added.
    """

    folder: Path
    cases: list[Case] = field(default_factory=list)

    def add(self, draft: Draft) -> None:
        """Write the files and the arrays of `draft`.

        Raises:
            ValueError: an array is none that a kit holds.
            OSError: the folder cannot be written.
        """
        for name, content in draft.files:
            if isinstance(content, Path):
                _take(content, self.folder / name)
            else:
                write_whole(self.folder / name, content)
        several = len(draft.feeds) > 1
        runs = tuple(
            self._run(draft, f"{draft.name}.{number}" if several else draft.name, feed, outputs)
            for number, (feed, outputs) in enumerate(zip(draft.feeds, draft.expected, strict=True), start=1)
        )
        self.cases.append(Case(draft.name, draft.kind, draft.what, draft.manifest, runs, draft.proves))

    def _run(self, draft: Draft, stem: str, feed: Feed, outputs: Outputs) -> CaseRun:
        # Numbered: a tensor's own name may hold what no file's may.
        inputs = [CaseInput(name, self._put(f"{stem}.in{at}.npy", feed[name])) for at, name in enumerate(feed)]
        owed = [
            CaseOutput(name, self._put(f"{stem}.out{at}.npy", outputs[name]), draft.bounds_db[name])
            for at, name in enumerate(outputs)
        ]
        return CaseRun(tuple(inputs), tuple(owed))

    def _put(self, name: str, array: Array) -> str:
        (self.folder / name).write_bytes(npy_bytes(np.asarray(array)))
        return name

    def finish(self, subject: Manifest) -> Kit:
        """Write `probe.json` of a kit that is about the engine of `subject`.

        Raises:
            OSError: the folder cannot be written.
        """
        files = {path.name: sha256_of(path) for path in sorted(self.folder.iterdir())}
        told = Subject(
            family=subject.family,
            stage=subject.stage,
            role=subject.role,
            target=subject.target,
            toolkit=subject.toolkit.version,
            engine_sha256=subject.engine.sha256,
            engine_file=subject.engine.file,
        )
        kit = Kit(told, tuple(self.cases), files)
        write_whole(self.folder / KIT_FILE, kit_text(kit).encode())
        return kit


def _take(path: Path, place: Path) -> None:
    """Make `place` a second name of the file `path`, or a copy where the file system has no links.

    Whoever writes engines and twins puts new files in their places, so the second name keeps what it has.
    """
    try:
        os.link(path.resolve(), place)
    except OSError:
        shutil.copyfile(path, place)
