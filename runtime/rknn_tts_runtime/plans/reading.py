"""Reads execution plans and checks every word of them against the definition.

A file holds one of these, where PLAN is an object, or a JSON text of one:

    {"session_options": {"piper_tts.exec_plan": PLAN, ...}}
    {"piper_tts.exec_plan": PLAN, ...}
    PLAN, where the caller says of which family it is

Plans are data of somebody else: sizes are checked before anything is read, and nothing in them is run.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping

from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.plans.definition import (
    DEFAULT,
    FAMILIES,
    RKNN,
    SUFFIX,
    ComponentDefinition,
    FamilyDefinition,
    Implementation,
    Param,
    ParamValue,
    family_of,
    family_of_option,
)
from rknn_tts_runtime.plans.json_text import object_in, read_text
from rknn_tts_runtime.plans.plan import Component, Plan
from rknn_tts_runtime.plans.resolution import model_folder, resolve_artifact
from rknn_tts_runtime.plans.wording import did_you_mean, listed, shown

SESSION_OPTIONS = "session_options"

FIELDS = ("impl", "backend", "artifacts", "params")
"""Of a component."""

_LIKENESS = 0.8
"""From which on another session option is taken for a misspelt plan: `piper_tts.exec_pln` has 0.97."""


def read_plans(path: Path, model: Path | None = None, family: str | None = None) -> dict[str, Plan]:
    """The plans in the file `path`, by family.

    Args:
        path: the file.
        model: the model's folder (or a file in it), under which names resolve; the plan's own folder by default.
        family: the family whose plan alone is wanted; where the file holds the value of one option, it is that one's.

    Raises:
        BadInput: the file, or anything that it says, is not as the definition has it, or a file that it names is
            missing.
    """
    data = object_in(read_text(path), str(path))
    folder = model_folder(path, model)
    if family is not None and not _names_options(data):
        definition = family_of(family)
        if definition is None:
            known = [one.family for one in FAMILIES]
            raise BadInput(f"No plan is of the family {shown(family)}; {listed(known)} have one.")
        return {family: _plan(path, definition, data, folder)}
    plans = {}
    for definition, value in _options(path, data):
        plans[definition.family] = _plan(path, definition, value, folder)
    if family is not None and family not in plans:
        raise BadInput(f"{path}: has no plan of {family}; it has those of {listed(plans) or 'no family'}.")
    return plans if family is None else {family: plans[family]}


def _names_options(data: Mapping[str, Any]) -> bool:
    return SESSION_OPTIONS in data or any(name.endswith(SUFFIX) for name in data)


def _options(path: Path, data: dict[str, Any]) -> list[tuple[FamilyDefinition, object]]:
    """The plans that `data` has, each with its family."""
    known = [one.option for one in FAMILIES]
    if SESSION_OPTIONS not in data:
        for name in data:
            if name not in known:
                raise BadInput(f"{path}: {_unknown_option(name, known)}")
        return _of_options(data)
    others = [name for name in data if name != SESSION_OPTIONS]
    if others:
        raise BadInput(
            f"{path}: has {shown(others[0])} beside {SESSION_OPTIONS}; a plan's file has {SESSION_OPTIONS} alone, or "
            f"the options alone."
        )
    options = data[SESSION_OPTIONS]
    if not isinstance(options, dict):
        raise BadInput(f"{path}: {SESSION_OPTIONS} is {shown(options)}, expected an object.")
    for name in options:
        # Other session options are the host application's, unless one was meant as a plan.
        if name not in known and (name.endswith(SUFFIX) or did_you_mean(name, known, _LIKENESS)):
            raise BadInput(f"{path}: {_unknown_option(name, known)}")
    return _of_options(options)


def _of_options(options: Mapping[str, Any]) -> list[tuple[FamilyDefinition, object]]:
    found = [(family_of_option(name), value) for name, value in options.items()]
    return [(definition, value) for definition, value in found if definition is not None]


def _unknown_option(name: str, known: list[str]) -> str:
    components = {part.name for one in FAMILIES for part in one.components}
    if name in components:
        return (
            f"has the component {name!r} where a session option is expected; put it under its option "
            f"({listed(known)}), or say of which family the plan is."
        )
    return (
        f"{shown(name)} is no session option that holds a plan; those are {listed(known)}.{did_you_mean(name, known)}"
    )


def _plan(path: Path, family: FamilyDefinition, value: object, folder: Path) -> Plan:
    where = f"{path}: {family.option}"
    data = object_in(value, where) if isinstance(value, str) else value
    if not isinstance(data, dict):
        raise BadInput(f"{where} is {shown(data)}, expected an object, or a JSON text of one.")
    known = [one.name for one in family.components]
    components: dict[str, Component] = {}
    left: list[str] = []
    for name in data:
        if name not in known:
            raise BadInput(
                f"{where} has no component {shown(name)}; it has {listed(known)}.{did_you_mean(name, known)}"
            )
    for definition in family.components:
        if definition.name not in data:
            continue
        at = f"{where}: {definition.name}"
        fields = _fields(data[definition.name], at)
        implementation = _implementation(definition, fields, at)
        component = _component(definition, implementation, fields, folder, at)
        if implementation.name == RKNN:
            components[definition.name] = component
        else:
            left.append(f"{definition.name} ({implementation.name})")
    return Plan(path, family.family, components, tuple(left))


def _fields(value: object, at: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadInput(f"{at} is {shown(value)}, expected an object with {listed(FIELDS)}.")
    for name in value:
        if name not in FIELDS:
            raise BadInput(f"{at} has no field {shown(name)}; it has {listed(FIELDS)}.{did_you_mean(name, FIELDS)}")
    return value


def _implementation(definition: ComponentDefinition, fields: Mapping[str, Any], at: str) -> Implementation:
    name = fields.get("impl", DEFAULT)
    found = definition.implementation(name) if isinstance(name, str) else None
    if found is None:
        known = [one.name for one in definition.implementations]
        hint = did_you_mean(name, known) if isinstance(name, str) else ""
        raise BadInput(f"{at}: impl is {shown(name)}; {definition.name} runs as {listed(known)}.{hint}")
    return found


def _component(
    definition: ComponentDefinition, implementation: Implementation, fields: Mapping[str, Any], folder: Path, at: str
) -> Component:
    if "backend" in fields:
        _check_backend(implementation, fields["backend"], at)
    artifacts = _artifacts(definition, implementation, _table(fields, "artifacts", at), folder, at)
    params = _params(implementation, _table(fields, "params", at), at)
    return Component(definition.name, artifacts, params)


def _check_backend(implementation: Implementation, backend: object, at: str) -> None:
    if not implementation.backends:
        raise BadInput(
            f"{at}: backend is {shown(backend)}, but impl {implementation.name} chooses the NPU itself; leave backend "
            "out."
        )
    if backend not in implementation.backends:
        hint = did_you_mean(backend, implementation.backends) if isinstance(backend, str) else ""
        raise BadInput(
            f"{at}: backend is {shown(backend)}; impl {implementation.name} runs on "
            f"{listed(implementation.backends)}.{hint}"
        )


def _artifacts(
    definition: ComponentDefinition, implementation: Implementation, given: Mapping[str, Any], folder: Path, at: str
) -> dict[str, tuple[Path, ...]]:
    roles = {role.name: role for role in implementation.roles}
    for name in given:
        if name in roles:
            continue
        if roles:
            raise BadInput(
                f"{at}: artifacts has no role {shown(name)}; impl {implementation.name} takes {listed(roles)}."
                f"{did_you_mean(name, roles)}"
            )
        rknn = definition.implementation(RKNN) is not None
        hint = ' Files alone do not choose rknn: write "impl": "rknn" too.' if rknn else ""
        raise BadInput(
            f"{at}: artifacts names {shown(name)}, but impl {implementation.name} takes no files; leave it out.{hint}"
        )
    for group in implementation.needs:
        if not any(name in given for name in group):
            raise BadInput(f"{at}: artifacts lacks {' or '.join(group)}, which impl {implementation.name} needs.")
    found = {}
    for name, role in roles.items():
        if name not in given:
            continue
        text, there = given[name], f"{at}: artifacts.{name}"
        if not isinstance(text, str):
            several = " (of several files, one text with commas between)" if role.ladder else ""
            raise BadInput(f"{there} is {shown(text)}, expected a file's name as a text{several}.")
        found[name] = resolve_artifact(text, role.ladder, folder, there)
    return found


def _params(implementation: Implementation, given: Mapping[str, Any], at: str) -> dict[str, ParamValue]:
    params = {param.name: param for param in implementation.params}
    for name in given:
        if name not in params:
            takes = f"takes {listed(params)}" if params else "takes none"
            raise BadInput(
                f"{at}: params has no {shown(name)}; impl {implementation.name} {takes}.{did_you_mean(name, params)}"
            )
    return {name: _param(param, given.get(name, param.default), at) for name, param in params.items()}


def _param(param: Param, value: object, at: str) -> ParamValue:
    if param.kind == "boolean":
        if not isinstance(value, bool):
            raise BadInput(f"{at}: params.{param.name} is {shown(value)}, expected true or false.")
        return value
    if isinstance(value, bool) or not isinstance(value, int) or value < param.least:
        raise BadInput(f"{at}: params.{param.name} is {shown(value)}, expected a whole number from {param.least}.")
    return value


def _table(fields: Mapping[str, Any], name: str, at: str) -> dict[str, Any]:
    value = fields.get(name, {})
    if not isinstance(value, dict):
        raise BadInput(f"{at}: {name} is {shown(value)}, expected an object.")
    return value
