"""The checkpoints of a matrix, found: what each is called, its digest, its size and its language."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from contracts.contract import NAME_ADVICE, RANDOM, is_file_name
from contracts.errors import RknnTtsError, UserInput
from contracts.files import sha256_of_bytes
from contracts.serial import parse_json
from converters.hub_places import HUB
from converters.stages import Checkpoint, Stage
from farm.jobs import Unplanned
from farm.matrix import PACKAGE, Matrix, is_language, place_named
from farm.places import FarmPlaces
from rknn_tts.farm_rows import RowStage
from rknn_tts.hub import is_reference
from rknn_tts.known_files import KnownFiles
from rknn_tts.many_voices import Locate, find_voices, found_note, size_bytes
from rknn_tts.packaged import checkpoint_folder
from rknn_tts.places import voice_name
from rknn_tts.steps import CHECKPOINTS_FOLDER, cache_folder

_LONGEST_JSON_BYTES = 1 << 20
"""Of a voice's JSON: Piper's largest, with all of its phonemes, has some 20 kB."""

_WORD = re.compile(r"[a-z][a-z0-9-]*")
"""What a stand-in is called; a file has an ending, and a folder's name is seldom of this kind."""


@dataclass(frozen=True)
class FoundCheckpoint:
    """A checkpoint of a row, for one stage.

    Attributes:
        voice: what it is called.
        word: what `--checkpoint` names; None: the stage's package.
        digest: of all that it holds; of a place on a hub, of its name.
        bytes: its size.
        language: as it says, or the matrix; None where neither does.
        extras: locks that opening it needs, beyond the stage's.
    """

    voice: str
    word: str | None
    digest: str
    bytes: int
    language: str | None
    extras: frozenset[str] = frozenset()


@dataclass(frozen=True)
class FoundCheckpoints:
    """What the checkpoints of a row stand for, and what is no checkpoint after all; sentences for the user."""

    found: tuple[FoundCheckpoint, ...]
    unplanned: tuple[Unplanned, ...]
    notes: tuple[str, ...]


class _Fetches(Exception):
    """A stage wants to fetch from a hub: it can."""


def checkpoints_of(matrix: Matrix, asked: RowStage, known: KnownFiles) -> FoundCheckpoints:
    """The checkpoints of a row for one of its stages.

    Raises:
        UserInput: a pattern stands for nothing, or the stage has no such checkpoint at all.
    """
    where = f"{matrix.file}: {asked.row.place}"
    found: list[FoundCheckpoint] = []
    unplanned: list[Unplanned] = []
    notes: list[str] = []
    for text in asked.row.checkpoints:
        if text == PACKAGE and not os.path.lexists(matrix.folder / text):
            found.append(_packaged(asked, where))
        elif text.startswith(HUB):
            found.append(_on_hub(asked, text, where))
            if "@" not in text:
                notes.append(f"{text}: names no revision, so what changes there is not noticed; name one with @.")
        elif _is_stand_in(asked.stage, text):
            found.append(_one(asked, text, known))
        else:
            paths = tuple(_paths(matrix, asked, text, where, notes))
            for path in paths:
                try:
                    found.append(_one(asked, str(path), known))
                except (RknnTtsError, OSError) as error:
                    sentence = _plain(error) if isinstance(error, RknnTtsError) else _unreadable(path, error)
                    unplanned.append(Unplanned(str(path), asked.stage.family, asked.stage.name, sentence))
    return FoundCheckpoints(tuple(found), tuple(unplanned), tuple(notes))


def _packaged(asked: RowStage, where: str) -> FoundCheckpoint:
    wanted = asked.stage.default_checkpoint
    if wanted is None:
        raise UserInput(
            f"{where}: no package carries a checkpoint for {asked.stage.family} {asked.stage.name}; it takes "
            f"{asked.stage.checkpoints}."
        )
    path = checkpoint_folder(wanted, cache_folder() / CHECKPOINTS_FOLDER) / wanted.file
    beside = [path.with_name(Path(member.path).name) for member in wanted.companions]
    language = _language(beside) or asked.row.language
    return FoundCheckpoint(wanted.parts[0].package, None, wanted.sha256, size_bytes(path), language)


def _on_hub(asked: RowStage, text: str, where: str) -> FoundCheckpoint:
    """A place on a hub, as it is called; what it holds is fetched by its own job."""
    if not is_reference(text):
        raise UserInput(f"{where}: {text:.200}: a place on the hub is written {HUB}OWNER/REPO or {HUB}OWNER/REPO@REV.")

    def fetches(reference: str, patterns: Sequence[str]) -> Path:
        raise _Fetches

    try:
        (asked.stage.locate or _no_hub)(text, fetches)
    except _Fetches:
        pass
    except RknnTtsError as error:
        raise UserInput(f"{where}: {_plain(error)}") from error
    voice = text.removeprefix(HUB).partition("@")[0].partition("/")[2]
    return FoundCheckpoint(voice, text, sha256_of_bytes(text.encode()), 0, asked.row.language, frozenset({"hub"}))


def _no_hub(text: str, fetch: object) -> Checkpoint:
    raise UserInput(f"{text:.200}: is a place on a hub, and this family's checkpoints are not fetched from one.")


def _is_stand_in(stage: Stage, text: str) -> bool:
    """Whether `text` is the word for seeded random weights of `stage`."""
    if stage.locate is None or not _WORD.fullmatch(text):
        return False
    try:
        return stage.locate(text, _nothing_fetched).source.kind == RANDOM
    except (RknnTtsError, OSError):
        return False


def _nothing_fetched(reference: str, patterns: Sequence[str]) -> Path:
    raise UserInput(f"{reference:.200}: is a place on a hub, for which no pattern stands; name it alone.")


def _paths(matrix: Matrix, asked: RowStage, text: str, where: str, notes: list[str]) -> Iterator[Path]:
    """The path, or those that the pattern `text` stands for."""
    path = place_named(text, matrix.folder)
    if os.path.lexists(path) or not glob.has_magic(text):
        yield path
        return
    pattern = str(place_named(text, Path(glob.escape(str(matrix.folder)))))
    locate = asked.stage.locate
    located: Locate | None = None if locate is None else lambda name: locate(name, _nothing_fetched)
    try:
        found = find_voices(pattern, located, FarmPlaces(matrix.output).made)
    except UserInput as error:
        raise UserInput(f"{where}: {_plain(error)}") from error
    notes.append(found_note(text, found))
    yield from (voice.path for voice in found.voices)


def _one(asked: RowStage, text: str, known: KnownFiles) -> FoundCheckpoint:
    """One checkpoint, located as its command will locate it.

    Raises:
        RknnTtsError, OSError: it is none.
    """
    stage = asked.stage
    if stage.locate is not None:
        checkpoint = stage.locate(text, _nothing_fetched)
    else:
        from rknn_tts.checkpoint_to_onnx import file_given

        checkpoint = file_given(text)
    name = checkpoint.source.name
    if not is_file_name(name):
        raise UserInput(f"{text:.300}: {NAME_ADVICE}")
    files = _files_of(stage, checkpoint, known)
    parts = [checkpoint.source.sha256, name, *(f"{said}:{known.sha256(file)}" for said, file in files)]
    return FoundCheckpoint(
        voice=voice_name(name),
        word=text,
        digest=sha256_of_bytes("\n".join(parts).encode("utf-8", "surrogateescape")),
        bytes=sum(size_bytes(file) for file in dict.fromkeys((*checkpoint.read, *(file for _, file in files)))),
        language=_language(file for _, file in files) or asked.row.language,
        extras=checkpoint.extras,
    )


def _files_of(stage: Stage, checkpoint: Checkpoint, known: KnownFiles) -> list[tuple[str, Path]]:
    """What is read of a checkpoint and what belongs to it, each as it is seen from its folder."""
    from rknn_tts.checkpoint_to_onnx import belonging, seen_from

    def external(path: Path) -> tuple[Path, ...]:
        try:
            return known.external(path)
        except RknnTtsError:  # no ONNX: its own command says so
            return ()

    found = belonging(stage, checkpoint, external, known.named_after)
    return [(seen_from(file, checkpoint.folder), file) for file in found]


def _language(files: Iterator[Path] | Sequence[Path]) -> str | None:
    """The language that a voice's JSON among `files` tells, as Piper writes it: its code, or espeak's voice."""
    for file in files:
        if file.suffix != ".json":
            continue
        with suppress(OSError, ValueError):
            if file.stat().st_size <= _LONGEST_JSON_BYTES:
                data = parse_json(file.read_text(encoding="utf-8"))
                for place, key in (("language", "code"), ("espeak", "voice")):
                    part = data.get(place) if isinstance(data, dict) else None
                    told = part.get(key) if isinstance(part, dict) else None
                    if isinstance(told, str) and is_language(told.replace("_", "-")):
                        return told.replace("_", "-")
    return None


def _plain(error: RknnTtsError) -> str:
    """A sentence about `--checkpoint`, which a matrix has not."""
    return str(error).removeprefix("--checkpoint ")


def _unreadable(path: Path, error: OSError) -> str:
    return f"{error.filename or path}: cannot be read ({error.strerror or error})."
