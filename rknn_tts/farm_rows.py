"""The rows of a matrix against what there is: families, stages, their options, targets, toolkits."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contracts.errors import RknnTtsError, UserInput
from contracts.files import sha256_of, sha256_of_bytes
from contracts.targets import TARGETS
from converters.registry import STAGES
from converters.stages import Stage, StageOptions, find_stage
from engine.targets import ALIASES, resolve_target
from environments.locks import DEFAULT_TOOLKIT, toolkit_versions
from farm.matrix import ALL, Matrix, Voices, Width, place_named
from rknn_tts.hints import did_you_mean
from rknn_tts.request import EXPECTED, Option, options
from rknn_tts.steps import ROOT

FILES = frozenset({"config", "calibration"})
"""Options whose value is a file: relative ones count from the matrix, and what they hold decides."""

LONGEST_LABEL = 80
"""Characters of a width's label, which is a folder: a name may have 255 bytes, and files stand below it."""

_NO_NAME = re.compile(r"[^A-Za-z0-9.,+-]+")


@dataclass(frozen=True)
class Geometry:
    """One width of a row, for a stage.

    Attributes:
        label: what it is called, and its folder; "" the stage's own.
        words: the options of `export` that ask for it.
        options: the same, as the stage takes them.
        decides: the same as what decides a result: files by their digests.
    """

    label: str
    words: tuple[str, ...]
    options: StageOptions
    decides: tuple[str, ...]


@dataclass(frozen=True)
class RowStage:
    """A stage that a row asks for, its geometries and targets."""

    row: Voices
    stage: Stage
    geometries: tuple[Geometry, ...]
    targets: tuple[str, ...]


def toolkit_of(matrix: Matrix) -> str:
    """The toolkit that a matrix asks for.

    Raises:
        UserInput: there is no such version here.
    """
    toolkit = matrix.toolkit or DEFAULT_TOOLKIT
    versions = toolkit_versions(ROOT)
    if toolkit not in versions:
        raise UserInput(f"{matrix.file}: toolkit is {toolkit!r:.60}; there are {', '.join(versions)}.")
    return toolkit


def rows_of(matrix: Matrix) -> tuple[RowStage, ...]:
    """What `matrix` asks for, row by row and stage by stage.

    Raises:
        UserInput: there is no such family, stage, option or target.
    """
    found = []
    for row in matrix.voices:
        where = f"{matrix.file}: {row.place}"
        targets = _targets(row.targets or matrix.targets, where)
        for stage in _stages(row, where):
            geometries = tuple(_geometry(width, stage, matrix.folder, where) for width in row.widths)
            _check_labels(geometries, where)
            found.append(RowStage(row, stage, geometries, targets))
    return tuple(found)


def _targets(names: tuple[str, ...], where: str) -> tuple[str, ...]:
    if not names:
        raise UserInput(f'{where}: no targets: give the matrix, or this row, targets = ["rk3588"], or "{ALL}".')
    if names == (ALL,):
        return TARGETS
    try:
        return tuple(dict.fromkeys(resolve_target(name) for name in names))
    except UserInput as error:
        wrong = next(name for name in names if name.strip().lower() not in (*TARGETS, *ALIASES))
        hint = did_you_mean(wrong, (*TARGETS, *ALIASES))
        raise UserInput(f"{where}: {error}{hint}") from error


def _stages(row: Voices, where: str) -> tuple[Stage, ...]:
    families = list(dict.fromkeys(stage.family for stage in STAGES))
    if row.family not in families:
        hint = did_you_mean(row.family, families) or f" There are {', '.join(families)}."
        raise UserInput(f"{where}: there is no family {row.family!r:.60}.{hint}")
    mine = {stage.name: stage for stage in STAGES if stage.family == row.family}
    if not row.stages:
        return (find_stage(STAGES, row.family, None),)
    if row.stages == (ALL,):
        return tuple(mine.values())
    for name in row.stages:
        if name not in mine:
            hint = did_you_mean(name, mine) or f" There are {', '.join(mine)}."
            raise UserInput(f"{where}: {row.family} has no stage {name!r:.60}.{hint}")
    return tuple(mine[name] for name in row.stages)


def _geometry(width: Width, stage: Stage, folder: Path, where: str) -> Geometry:
    values = {name: _value(_option_of(stage, name, where), value, folder, where) for name, value in width.items()}
    given = {name: value for name, value in values.items() if value is not False}
    chosen = StageOptions(**given)
    try:
        stage.roles(chosen)
    except RknnTtsError as error:
        raise UserInput(f"{where}: widths: {error}") from error
    words, decides, label = [], [], []
    for name, value in given.items():
        option = _option_of(stage, name, where)
        words.append(option.flag if option.kind is bool else f"{option.flag}={value}")
        decides.append(f"{option.flag}={_digest(value, name, where)}" if name in FILES else words[-1])
        label.append(_label(name, Path(value).stem if name in FILES else value))
    return Geometry(_short("-".join(label)), tuple(words), chosen, tuple(decides))


def _option_of(stage: Stage, name: str, where: str) -> Option:
    known = {option.name: option for option in options("export") if option.name in stage.options}
    if name in known:
        return known[name]
    hint = did_you_mean(name, known) or f" It has {', '.join(known) or 'none'}."
    raise UserInput(
        f"{where}: widths: {stage.family} {stage.name} has no option {name!r:.60}.{hint} Where another stage of the "
        "row has it, give the two a row each."
    )


def _value(option: Option, value: object, folder: Path, where: str) -> Any:
    """The value of `option`: a number may stand for a text of one, and a file counts from `folder`."""
    if option.kind is str and isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    if type(value) is not option.kind or value == "":
        expected = "true or false" if option.kind is bool else EXPECTED[option.kind]
        raise UserInput(f"{where}: widths: {option.name} is {value!r:.60}; expected is {expected}.")
    return str(place_named(str(value), folder)) if option.name in FILES else value


def _digest(path: str, name: str, where: str) -> str:
    try:
        return sha256_of(Path(path))
    except OSError as error:
        raise UserInput(f"{where}: widths: {name}: {path}: cannot be read ({error.strerror}).") from error


def _label(name: str, value: object) -> str:
    text = name.replace("_", "-") + ("" if value is True else f"-{value}")
    return _NO_NAME.sub("-", text).strip("-.")


def _short(label: str) -> str:
    if len(label) <= LONGEST_LABEL:
        return label
    return f"{label[: LONGEST_LABEL - 9]}-{sha256_of_bytes(label.encode())[:8]}"


def _check_labels(geometries: tuple[Geometry, ...], where: str) -> None:
    labels = [geometry.label for geometry in geometries]
    for label in labels:
        if labels.count(label) > 1:
            called = f"be called {label}" if label else "be the stage's own"
            raise UserInput(f"{where}: widths: two of them would {called}; leave one out.")
