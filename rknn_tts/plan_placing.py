"""Puts engines into an execution plan: each into the role of its component that it was made for."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from rknn_tts_runtime.plans.definition import (
    FAMILIES,
    RKNN,
    FamilyDefinition,
    Implementation,
    ParamValue,
    Role,
    family_of,
)

from contracts.errors import UserInput
from rknn_tts.plan_engines import Built
from rknn_tts.roles import stage_text

Components = dict[str, dict[str, object]]


def session_options(
    built: Sequence[Built], name: Callable[[Path], str], reference: bool = False
) -> dict[str, Components]:
    """The session options that place `built`, those of every family, in the order of the definition.

    Args:
        built: the engines.
        name: how the plan calls a file.
        reference: leave out what the reference application does not know.

    Raises:
        UserInput: an engine has no place in a plan, two do not belong together, or one that is needed is missing.
    """
    _check_one_target(built)
    for one in built:
        _check_place(one)
    placed = {}
    for family in FAMILIES:
        mine = [one for one in built if one.manifest.family == family.family]
        components = _family(family, mine, name, reference) if mine else {}
        if components:
            placed[family.option] = components
    if not placed:
        raise UserInput(
            f"{built[0].engine}: has no place in a plan for the reference application; leave --reference out."
        )
    return placed


def _check_one_target(built: Sequence[Built]) -> None:
    first = built[0]
    for other in built[1:]:
        if other.manifest.target != first.manifest.target:
            raise UserInput(
                f"{other.engine}: is for {other.manifest.target}, and {first.engine} for {first.manifest.target}; a "
                "plan is for one board: name the engines for that."
            )


def _check_place(one: Built) -> None:
    """See that plans have the engine's stage."""
    manifest = one.manifest
    if manifest.family is None:
        raise UserInput(f"{one.engine}: is made of a foreign ONNX, and no plan has a place for one; leave it out.")
    family = family_of(manifest.family)
    component = family.component(manifest.stage or "") if family else None
    if component is None or component.implementation(RKNN) is None:
        raise UserInput(
            f"{one.engine}: is of {stage_text(manifest.family, manifest.stage, None)}, and no plan has a place for "
            "that; leave it out."
        )


def _family(
    family: FamilyDefinition, built: Sequence[Built], name: Callable[[Path], str], reference: bool
) -> Components:
    if family.one_source:
        _check_one_source(built, f"engines of one {family.family} voice")
    placed: Components = {}
    for component in family.components:
        mine = [one for one in built if one.manifest.stage == component.name]
        implementation = component.implementation(RKNN)
        if not mine or implementation is None:
            continue
        what = f"{family.family} {component.name}"
        if reference:
            mine = _untrimmed(mine, what)
        _check_roles(implementation.roles, mine, what)
        _check_one_source(mine, f"engines of {what}")
        _check_one_state(mine, f"engines of {what}")
        roles = [role for role in implementation.roles if not (reference and role.beyond)]
        if not roles:
            continue
        artifacts = _artifacts(roles, mine, name, reference, what)
        _check_needs(implementation, artifacts, mine, what)
        params = _params(implementation, mine)
        placed[component.name] = {"impl": RKNN, "artifacts": artifacts, **({"params": params} if params else {})}
    return placed


def trimmed(built: Sequence[Built]) -> list[Built]:
    """Those that are told where in an utterance their window stands, which the reference application does not tell."""
    return [one for one in built if one.manifest.trim is not None]


def _untrimmed(built: Sequence[Built], what: str) -> list[Built]:
    """Those that the reference application can run."""
    left = [one for one in built if one not in trimmed(built)]
    if not left:
        raise UserInput(
            f"{built[0].engine}: is trimmed: it takes where in an utterance its window stands, which the reference "
            f"application does not tell. A {what} for it is built with --window, or with a masked or plain width in "
            "--windows."
        )
    return left


def _params(implementation: Implementation, built: Sequence[Built]) -> dict[str, ParamValue]:
    """What a plan sets, beyond the defaults; frames that windows share are fewer than each of them emits."""
    emitted = [one.manifest.window.emitted for one in built if one.manifest.window is not None]
    planned = {param.name: param.planned for param in implementation.params if param.planned is not None}
    return {name: value for name, value in planned.items() if all(value < frames for frames in emitted)}


def _check_one_source(built: Sequence[Built], what: str) -> None:
    first = built[0]
    for other in built[1:]:
        if other.manifest.source.sha256 != first.manifest.source.sha256:
            raise UserInput(
                f"{other.engine}: is made of another checkpoint ({other.manifest.source.name}) than {first.engine} "
                f"({first.manifest.source.name}), and {what} are made of one; name those of one."
            )


def _check_one_state(built: Sequence[Built], what: str) -> None:
    """See that those that keep a state keep the same, so that each may go on where another ended."""
    keeping = [(one, state) for one in built if (state := _state(one))]
    for other, state in keeping[1:]:
        first, wanted = keeping[0]
        if state != wanted:
            raise UserInput(
                f"{other.engine}: lays its state out in another way than {first.engine}, and {what} take turns with "
                "one; build them in one run."
            )


def _state(one: Built) -> object:
    """How an engine lays out what goes from step to step; nothing where it keeps none."""
    shapes = {tensor.name: tensor.shape for tensor in one.manifest.inputs}
    carried = [(state.input, shapes.get(state.input), state.axis) for state in one.manifest.state]
    return one.manifest.cache or carried


def _artifacts(
    roles: Sequence[Role], built: Sequence[Built], name: Callable[[Path], str], reference: bool, what: str
) -> dict[str, str]:
    """What a component's `roles` name, those of them that there is something for."""
    found: dict[str, str] = {}
    for role in roles:
        if role.made_for is None:
            files = _hosts(built, what)
        else:
            files = _engines(role, [one for one in built if _fits(role, one)], reference, what)
        names = [name(file) for file in files]
        for file, called in zip(files, names, strict=True):
            if role.ladder and "," in called:
                raise UserInput(f"{file}: has a comma in its path, which parts a ladder's names in a plan; rename it.")
        if names:
            found[role.name] = ",".join(names)
    return found


def _check_roles(roles: Sequence[Role], built: Sequence[Built], what: str) -> None:
    """See that each engine was made for one of `roles`."""
    for one in built:
        if not any(_fits(role, one) for role in roles):
            said = f"has the role {one.manifest.role}" if one.manifest.role else "has no role"
            raise UserInput(f"{one.engine}: {said}, and a plan's {what} has no place for that; leave it out.")


def _check_needs(implementation: Implementation, found: Iterable[str], built: Sequence[Built], what: str) -> None:
    """See that none is missing that the implementation needs."""
    for group in implementation.needs:
        if not set(group) & set(found):
            needed = " or ".join(f"{role.name} ({role.meaning})" for role in implementation.roles if role.name in group)
            raise UserInput(
                f"{built[0].engine}: is not enough for {what}, which needs {needed}; name that engine too, or build it."
            )


def _fits(role: Role, one: Built) -> bool:
    return role.takes(one.manifest.role)


def _engines(role: Role, built: Sequence[Built], reference: bool, what: str) -> list[Path]:
    """The files of one role, those of a ladder from the narrowest on."""
    if role.ladder and not (reference and role.beyond_ladder):
        ordered = sorted(built, key=_width)
        for one, other in itertools.pairwise(ordered):
            if _width(one) == _width(other):
                raise UserInput(f"{one.engine}: is as wide as {other.engine}, and {what} needs one of them; name that.")
        return [one.engine for one in ordered]
    if len(built) > 1:
        raise UserInput(
            f"{built[1].engine}: has the same role as {built[0].engine}, and a plan's {what} has room for one "
            f"as {role.name}; name one of them."
        )
    return [one.engine for one in built]


def _width(one: Built) -> int:
    """Tokens, frames or codes that an engine of a ladder takes: in its role, else its window's."""
    digits = re.search(r"\d+", one.manifest.role or "")
    if digits:
        return int(digits[0])
    return one.manifest.window.frames if one.manifest.window else 0


def _hosts(built: Sequence[Built], what: str) -> list[Path]:
    """The host half of a component: one file, or none."""
    halves = [(one, one.manifest.host, one.host) for one in built]
    found = [(one, told.sha256, path) for one, told, path in halves if told is not None and path is not None]
    for one, sha256, path in found[1:]:
        if sha256 != found[0][1]:
            raise UserInput(
                f"{one.engine}: has another host half ({path}) than {found[0][0].engine} ({found[0][2]}), and engines "
                f"of {what} share one; build them in one run."
            )
    return [found[0][2]] if found else []
