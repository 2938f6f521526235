"""Which engines a page is of, and what is known of each; one that is stale or broken is one of them, and says so."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from contracts.errors import RknnTtsError, UserInput
from contracts.manifest import SET_SCHEMA, SetManifest, SharedAperture
from contracts.serial import from_json
from rknn_tts.inspection import Inspection, inspect_file

KINDS = "an engine (.rknn), its manifest or a set's (.json), or a folder of engines"

_OF_AN_ENGINE = ("engine", "manifest")


@dataclass(frozen=True)
class Subject:
    """An engine of a page.

    Attributes:
        path: the file that was named, or found: the engine or its manifest.
        name: how the page calls it: its place below the folder that was named, or its own name.
        found: what is known of it; None where it cannot be read.
        fault: why it cannot be read; "".
    """

    path: Path
    name: str
    found: Inspection | None
    fault: str = ""

    @property
    def engine(self) -> Path:
        """The engine's file, there or not."""
        manifest = self.found.manifest if self.found else None
        return self.path.with_name(PurePosixPath(manifest.engine.file).name) if manifest else self.path


@dataclass(frozen=True)
class SetOf:
    """A set of engines.

    Attributes:
        name: its file's name.
        members: the manifests of its engines.
        aperture: what it says of their address space; None: nothing.
    """

    name: str
    members: tuple[Path, ...]
    aperture: SharedAperture | None


@dataclass(frozen=True)
class Subjects:
    """What a page is of.

    Attributes:
        engines: the engines.
        sets: what sets of them say.
        folder: the folder that was named alone; None else.
        compared: whether several were asked for, though there may be one.
    """

    engines: tuple[Subject, ...]
    sets: tuple[SetOf, ...]
    folder: Path | None
    compared: bool


def subjects_at(words: Sequence[str], workdir: Path) -> Subjects:
    """The engines that `words` name, each once, in order.

    Args:
        words: engines, manifests, manifests of sets, folders of engines.
        workdir: where a manifest's `build-logs/` are looked for first.

    Raises:
        UserInput: there is none there, or the only one that is named cannot be read.
        Refusal: it is an ONNX whose external data is missing.
    """
    alone = len(words) == 1 and Path(words[0]).is_file() and _set_in(Path(words[0])) is None
    if alone:
        return Subjects((_subject(Path(words[0]), Path(words[0]).stem, workdir),), (), None, compared=False)
    engines: dict[Path, Subject] = {}
    sets: list[SetOf] = []
    for word in words:
        for path, name in _places(Path(word)):
            shared = _set_in(path)
            if shared is None:
                engines.setdefault(path.resolve(), _tolerant(path, name, workdir))
            else:
                sets.append(SetOf(path.name, tuple(_members(path, shared)), shared.aperture))
    folder = Path(words[0]) if len(words) == 1 and Path(words[0]).is_dir() else None
    return Subjects(tuple(engines.values()), tuple(sets), folder, compared=True)


def _places(path: Path) -> Iterator[tuple[Path, str]]:
    """Engines and sets at `path`, and what they are called.

    Raises:
        UserInput: there is none.
    """
    if path.is_dir():
        engines = sorted(found for found in path.rglob("*.rknn") if found.is_file())
        if not engines:
            raise UserInput(f"{path}: there is no engine in this folder; name {KINDS}.")
        for found in (*engines, *sorted(path.rglob("*.set.json"))):
            yield found, found.relative_to(path).with_suffix("").as_posix()
        return
    if not path.is_file():
        raise UserInput(f"{path}: there is no such file; name {KINDS}.")
    yield path, path.stem
    members = _set_in(path)
    for manifest in _members(path, members) if members else ():
        yield manifest, manifest.stem


def _members(path: Path, shared: SetManifest) -> Iterator[Path]:
    """The manifests of a set, which stand beside its own."""
    for member in shared.members:
        yield path.with_name(PurePosixPath(member).name or "member")


def _tolerant(path: Path, name: str, workdir: Path) -> Subject:
    try:
        return _subject(path, name, workdir)
    except RknnTtsError as error:
        return Subject(path, name, None, str(error))


def _subject(path: Path, name: str, workdir: Path) -> Subject:
    found = inspect_file(path, workdir)
    if found.kind not in _OF_AN_ENGINE:
        raise UserInput(f"{path}: is no engine; name {KINDS}.")
    if found.kind == "manifest" and any(note.startswith("STALE") for note in found.notes):
        # Whatever stands beside it, nothing in this manifest is of that.
        found = replace(found, notes=(*found.notes, "What follows is of the engine that the manifest tells of."))
    return Subject(path, name, found)


def _set_in(path: Path) -> SetManifest | None:
    """The set's manifest in `path`; None where it is anything else."""
    if path.suffix != ".json" or not path.is_file():
        return None
    try:
        data = json.loads(path.read_text("utf-8"))
        if not isinstance(data, dict) or data.get("schema") != SET_SCHEMA:
            return None
        return from_json(SetManifest, data, "set")
    except (OSError, ValueError, RecursionError):
        return None
