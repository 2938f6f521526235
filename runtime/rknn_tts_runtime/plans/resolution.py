"""Where the files are that a plan names.

A name is looked for under the model's folder and must be found there, behind all symbolic links; only an absolute path,
which the operator wrote, names a file anywhere.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from pathlib import Path

from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.plans.wording import shown


def model_folder(plan: Path, model: Path | None) -> Path:
    """The folder that names resolve under.

    Args:
        plan: the plan's file.
        model: the model's folder, or a file in it; None: the plan's own folder.

    Raises:
        BadInput: there is no such model.
    """
    if model is None:
        return plan.parent
    try:
        if model.is_dir():
            return model
        if model.is_file():
            return model.parent
    except OSError as error:
        raise BadInput(f"--model {model!s:.300}: cannot be looked at ({error.strerror}).") from error
    raise BadInput(f"{model}: there is no such model; name its folder, or a file in it.")


def resolve_artifact(text: str, ladder: bool, folder: Path, where: str) -> tuple[Path, ...]:
    """The files that an artifact names, all of them there.

    Args:
        text: what the plan says: a file, or of a ladder several with commas between.
        ladder: whether commas part names. They always do then: a file of a ladder has none in its name.
        folder: the model's folder.
        where: what the sentences begin with: file, option, component and role.

    Raises:
        BadInput: a name is empty, leaves the folder, is there twice, or no file is found.
    """
    names = [name.strip() for name in (text.split(",") if ladder else [text])]
    if not all(names):
        raise BadInput(f"{where} has an empty name in {shown(text)}; name a file{', or several' if ladder else ''}.")
    files = [_resolve(name, folder, where) for name in names]
    for name, file in zip(names, files):
        if files.count(file) > 1:
            raise BadInput(f"{where} names {shown(name)} twice; each step of a ladder is another engine.")
    return tuple(files)


def _resolve(name: str, folder: Path, where: str) -> Path:
    if not name.isprintable():  # it could not even be told of
        raise BadInput(f"{where} names {shown(name)}, which is no file's name: a character in it cannot be printed.")
    try:
        if Path(name).is_absolute():
            return _checked(Path(name), name, where)
        root = folder.resolve()
        # Behind links too: what is opened is what was looked at.
        file = (root / name).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a name that is too long
        raise BadInput(f"{where} names {shown(name)}, which is no file's name ({error}).") from error
    if root != file and root not in file.parents:
        raise BadInput(
            f"{where} names {shown(name)}, which leads out of {folder}; give a file elsewhere by its absolute path."
        )
    return _checked(file, name, where)


def _checked(file: Path, name: str, where: str) -> Path:
    try:
        if file.is_file():
            return file
        is_there = file.exists()
    except OSError as error:
        raise BadInput(f"{where} names {shown(name)}, which cannot be looked at ({error.strerror}).") from error
    if is_there:
        raise BadInput(f"{where} names {shown(name)}, which is no file but something else: {file!s:.300}.")
    hint = " The role takes one file: commas part no names here." if "," in name else ""
    raise BadInput(
        f"{where} names {shown(name)}, and there is no file {file!s:.300}; copy it there, or name another.{hint}"
    )
