"""The checkpoints that a pattern stands for (`voices/*.onnx`), and the command for each of them."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from contracts.errors import UserInput
from rknn_tts.places import voice_name
from rknn_tts.request import Request, options

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
    """What a pattern stands for: its voices, how many other files and folders, and how many names of one file."""

    voices: tuple[Voice, ...]
    others: int
    twins: int


def is_pattern(checkpoint: str | None) -> bool:
    """Whether `checkpoint` stands for several: it has `*`, `?` or `[..]`, and no file or folder is called so."""
    return (
        checkpoint is not None
        and glob.has_magic(checkpoint)
        and "://" not in checkpoint
        and not os.path.lexists(checkpoint)
    )


def find_voices(pattern: str, folders: bool) -> Found:
    """The voices that `pattern` stands for, sorted by their paths.

    Args:
        pattern: as a shell reads it; `**` stands for any folders.
        folders: whether a folder may be a checkpoint.

    Raises:
        UserInput: there is none, or two would be called alike.
    """
    # As a shell reads it: from the root too, and with `..` in it, which Path.glob refuses.
    matches = [Path(match) for match in sorted(glob.glob(pattern, recursive=True))]  # noqa: PTH207
    wanted = _checkpoints(matches, folders)
    if not wanted:
        there = f"none of the {len(matches)} it matches is one" if matches else "it matches nothing"
        kinds = ", ".join((*ENDINGS, *(("a folder",) if folders else ())))
        raise UserInput(f"--checkpoint {pattern:.300}: there is no checkpoint: {there} (what is looked for: {kinds}).")
    each = _each_once(wanted)
    voices = tuple(Voice(voice_name(path.name), path) for path in each)
    _check_names(voices)
    return Found(voices, len(matches) - len(wanted), len(wanted) - len(each))


def found_note(pattern: str, found: Found) -> str:
    """What is told of a pattern before anything is built."""
    count = len(found.voices)
    parts = [f"{count} checkpoint{'s' * (count > 1)}"]
    if found.others:
        parts.append(f"{found.others} other file{'s' * (found.others > 1)} left out")
    if found.twins:
        parts.append(f"{found.twins} further name{'s' * (found.twins > 1)} of the same files left out")
    return f"{pattern}: {', '.join(parts)}."


def check_many(request: Request) -> None:
    """See that `request`, whose checkpoint is a pattern, names no single file to write.

    Raises:
        UserInput: it does.
    """
    if request.save_checkpoint is not None:
        raise UserInput("--save-checkpoint names one file, and a pattern stands for several checkpoints: name one.")
    for option, text in (("--output", request.output), ("--sample", request.sample)):
        if text is None or Path(text).is_dir():
            continue
        if Path(text).exists() or (option == "--output" and Path(text).suffix and not text.endswith("/")):
            raise UserInput(f"{option} {text}: each voice gets a folder of its own there; name a folder.")


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


def _checkpoints(matches: Sequence[Path], folders: bool) -> list[Path]:
    """The files and folders among `matches` that are converted: of a folder and what lies in it, the latter."""
    files = [path for path in matches if path.is_file() and path.suffix in ENDINGS]
    if not folders:
        return files
    around = {folder for path in matches for folder in path.parents}
    return sorted([*files, *(path for path in matches if path.is_dir() and path not in around)])


def _each_once(paths: Iterable[Path]) -> list[Path]:
    """One name of each file, sorted; a file's own name goes before links to it, beside which its JSON may not stand."""
    first: dict[tuple[int, int], Path] = {}
    for path in sorted(paths, key=lambda path: (path.is_symlink(), path)):
        status = path.stat()
        first.setdefault((status.st_dev, status.st_ino), path)
    return sorted(first.values())


def _check_names(voices: Iterable[Voice]) -> None:
    taken: dict[str, Path] = {}
    for voice in voices:
        if (other := taken.setdefault(voice.name, voice.path)) != voice.path:
            raise UserInput(f"{other} and {voice.path} would both go to a folder {voice.name}; {_REMEDY}.")


def _below(folder: str | None, voice: Voice) -> str | None:
    """The voice's own folder; its name may look like a file's, so that it ends as a folder's."""
    return None if folder is None else f"{Path(folder) / voice.name}/"
