"""The checkpoints that a pattern stands for (`voices/*.onnx`), and the command for each of them."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from contracts.errors import RknnTtsError, UserInput
from rknn_tts.places import ANOTHER_PLACE, ANOTHER_SAMPLE_PLACE, check_folder, voice_name
from rknn_tts.request import Request, options

if TYPE_CHECKING:
    from converters.stages import Checkpoint  # `commands` has no need of it for a --help

ENDINGS = (".onnx", ".pt", ".pth", ".safetensors")
"""Of files that families convert; what else a pattern finds (a voice's JSON, a README) is left out."""

_REMEDY = "rename one, or build them by two commands with an --output each"


@dataclass(frozen=True)
class Voice:
    """One checkpoint of many; `name` is that of its folder in `engines/TARGET/`."""

    name: str
    path: Path


@dataclass(frozen=True)
class Found:
    """What a pattern stands for.

    Attributes:
        voices: sorted by their paths.
        others: how many files and folders are left out that are nothing like a checkpoint.
        twins: how many further names of the same voices.
        folders: why folders are left out that stand beside voices, a sentence each.
        extras: what opening them needs beside what their stage always does (`Checkpoint.extras`).
    """

    voices: tuple[Voice, ...]
    others: int
    twins: int
    folders: tuple[str, ...] = ()
    extras: frozenset[str] = frozenset()


Locate = Callable[[str], "Checkpoint"]
"""What a `--checkpoint` names, of a stage where that may be a folder or several files (`Stage.locate`)."""


def is_pattern(checkpoint: str | None) -> bool:
    """Whether `checkpoint` stands for several: it has `*`, `?` or `[..]`, and no file or folder is called so."""
    return (
        checkpoint is not None
        and glob.has_magic(checkpoint)
        and "://" not in checkpoint
        and not os.path.lexists(checkpoint)
    )


def find_voices(pattern: str, locate: Locate | None, without: Sequence[Path] = ()) -> Found:
    """The voices that `pattern` stands for, sorted by their paths.

    Args:
        pattern: as a shell reads it: `**` stands for any folders, `~` for the user's.
        locate: the stage's; None: every file is a checkpoint by itself, and no folder is.
        without: folders in which nothing is looked for: where the exports of these very voices go.

    Raises:
        UserInput: there is none, or two would be called alike.
    """
    # As a shell reads it: from the root too, and with `..` in it, which Path.glob refuses.
    expanded = os.path.expanduser(pattern)  # noqa: PTH111
    found = (Path(match) for match in sorted(glob.glob(expanded, recursive=True)))  # noqa: PTH207
    left_out = [folder.absolute() for folder in without]
    matches = [path for path in found if not any(path.absolute().is_relative_to(folder) for folder in left_out)]
    files = [_Match.of(path, locate) for path in matches if path.suffix in ENDINGS and _seen(path.is_file, True)]
    folders = [_Match.of(path, locate) for path in _innermost(matches)] if locate else []
    # A folder beside voices may hold more of them, and be none; where all are folders, each is told what it lacks.
    none = [folder for folder in folders if folder.fault and files]
    wanted = [*files, *(folder for folder in folders if folder not in none)]
    if not wanted:
        there = f"none of the {len(matches)} it matches is one" if matches else "it matches nothing"
        kinds = ", ".join((*ENDINGS, *(("a folder",) if locate else ())))
        raise UserInput(f"--checkpoint {pattern:.300}: there is no checkpoint: {there} (what is looked for: {kinds}).")
    voices = _each_once(wanted)
    _check_names(voices)
    others, twins = len(matches) - len(wanted) - len(none), len(wanted) - len(voices)
    extras = frozenset[str]().union(*(match.extras for match in wanted))
    return Found(voices, others, twins, tuple(folder.fault for folder in none), extras)


def found_note(pattern: str, found: Found) -> str:
    """What is told of a pattern before anything is built."""
    parts = [_counted(len(found.voices), "checkpoint")]
    if found.others:
        parts.append(f"{_counted(found.others, 'other file')} left out")
    if found.twins:
        parts.append(f"{_counted(found.twins, 'further name')} of the same voices left out")
    if found.folders:
        more = " and so on" if len(found.folders) > 1 else ""
        parts.append(f"{_counted(len(found.folders), 'folder')} left out ({found.folders[0].rstrip('.')}{more})")
    return f"{pattern}: {', '.join(parts)}."


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count > 1)}"


def check_many(request: Request) -> None:
    """See that `request`, whose checkpoint is a pattern, names folders that can be written, and no single file.

    Raises:
        UserInput: it names something else.
    """
    if request.save_checkpoint is not None:
        raise UserInput("--save-checkpoint names one file, and a pattern stands for several checkpoints: name one.")
    places = (("--output", request.output, ANOTHER_PLACE), ("--sample", request.sample, ANOTHER_SAMPLE_PLACE))
    for option, text, remedy in places:
        if text is None:
            continue
        path = Path(text)
        named_file = option == "--output" and path.suffix and not text.endswith("/") and not path.is_dir()
        if named_file or (path.exists() and not path.is_dir()):
            raise UserInput(f"{option} {text}: each voice gets a folder of its own there; name a folder.")
        check_folder(path, remedy)


def request_for(request: Request, voice: Voice) -> Request:
    """The command for one voice of those that `request` asks for; it prints its report as JSON."""
    return replace(
        request,
        checkpoint=str(voice.path),
        output=_below(request.output, voice),
        sample=_below(request.sample, voice),
        jobs=None,
        json=True,
        junit=None,
    )


def words_of(request: Request) -> list[str]:
    """The command line that means `request`."""
    words = [request.command]
    for option in options(request.command):
        value = getattr(request, option.name)
        if value == option.default:
            continue
        if option.positional:
            words.append(value)
        elif option.kind is bool:
            words.append(option.flag)
        else:  # `--flag=value`: a value may begin with a dash
            words += [f"{option.flag}={one}" for one in (value if option.many else [value])]
    return words


def size_bytes(path: Path) -> int:
    """The size of a checkpoint: of a folder, that of all files in it; 0 where it cannot be told."""
    files = path.rglob("*") if path.is_dir() else [path]
    try:
        return sum(file.stat().st_size for file in files if file.is_file())
    except OSError:
        return 0


@dataclass(frozen=True)
class _Match:
    """What a pattern found that may be a voice.

    Attributes:
        voice: as it is called alone, where its engine goes.
        files: which files it is, whatever they are called.
        fault: why it is no checkpoint; empty where it is one.
        extras: what opening it needs.
    """

    voice: Voice
    files: frozenset[object]
    fault: str = ""
    extras: frozenset[str] = frozenset()

    @classmethod
    def of(cls, path: Path, locate: Locate | None) -> _Match:
        name, files, fault, extras = path.name, [path], "", frozenset[str]()
        if locate is not None:
            try:
                found = locate(str(path))
                name, files, extras = found.source.name, list(found.read), found.extras
            except (RknnTtsError, OSError) as error:  # its own command tells the same
                fault = str(error)
        return cls(Voice(voice_name(name), path), frozenset(map(_identity, files)), fault, extras)


def _identity(path: Path) -> object:
    try:
        status = path.stat()
    except OSError:  # it has gone meanwhile
        return path
    return status.st_dev, status.st_ino


def _seen(look: Callable[[], bool], unseen: bool) -> bool:
    """What `look` sees of a file; `unseen` where its folder lets nobody look, which its own command tells."""
    try:
        return look()
    except PermissionError:
        return unseen


def _innermost(matches: Sequence[Path]) -> list[Path]:
    """The folders among `matches`, but none around another match: of a folder and what lies in it, the latter."""
    around = {folder for path in matches for folder in path.parents}
    return [path for path in matches if path not in around and _seen(path.is_dir, False)]


def _each_once(found: Iterable[_Match]) -> tuple[Voice, ...]:
    """Each voice by one name, sorted; a file's own goes before links to it, beside which its JSON may not stand."""
    first: dict[frozenset[object], Voice] = {}
    for match in sorted(found, key=lambda match: (_seen(match.voice.path.is_symlink, False), match.voice.path)):
        first.setdefault(match.files, match.voice)
    return tuple(sorted(first.values(), key=lambda voice: voice.path))


def _check_names(voices: Iterable[Voice]) -> None:
    taken: dict[str, Path] = {}
    for voice in voices:
        if (other := taken.setdefault(voice.name, voice.path)) != voice.path:
            raise UserInput(f"{other} and {voice.path} would both go to a folder {voice.name}; {_REMEDY}.")


def _below(folder: str | None, voice: Voice) -> str | None:
    """The voice's own folder; its name may look like a file's, so that it ends as a folder's."""
    return None if folder is None else f"{Path(folder) / voice.name}/"
