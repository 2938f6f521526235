"""`rknn-tts plan`: the execution plan that places what was built."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.json_keys import read_json
from rknn_tts_runtime.plans.definition import SUFFIX, family_of_option
from rknn_tts_runtime.plans.reading import SESSION_OPTIONS

from contracts.contract import RANDOM
from contracts.errors import UserInput
from contracts.files import write_whole
from rknn_tts.places import ANOTHER_PLACE, make_folder
from rknn_tts.plan_engines import Built, built_at
from rknn_tts.plan_placing import session_options, trimmed
from rknn_tts.progress import Say
from rknn_tts.request import Request

NAME = "plan.json"
"""Of a plan's file beside the engines, where --output names none."""


@dataclass(frozen=True)
class WrittenPlan:
    """A plan that was written.

    Attributes:
        file: its file.
        plan: what it holds.
        notes: what is to be known of it, as sentences.
    """

    file: str
    plan: dict[str, object]
    notes: tuple[str, ...]


def write_plan(request: Request, say: Say) -> WrittenPlan:
    """Write the plan of the engines that `request` names.

    Raises:
        UserInput: they have no plan together, names in it would lead out of its folder, or something else stands where
            it goes.
    """
    if not request.engines:
        raise UserInput(
            "plan needs ENGINES: engines, their manifests or a set's, or a folder of engines; or --schema, which "
            "prints the JSON Schema."
        )
    say.step("reading what was built")
    built = built_at(request.engines)
    place = _place(request.output, built)
    options = session_options(built, lambda file: _name(file, place, request.absolute), request.reference)
    plan: dict[str, object] = {SESSION_OPTIONS: options}
    _check_replaced(place)
    make_folder(place.parent)
    write_whole(place, plan_text(plan).encode())
    return WrittenPlan(str(place), plan, tuple(_notes(built, options, request.reference)))


def plan_text(plan: object) -> str:
    """The plan as the text of its file."""
    return json.dumps(plan, indent=2, ensure_ascii=False) + "\n"


def _place(output: str | None, built: tuple[Built, ...]) -> Path:
    if output is not None:
        chosen = Path(output)
        if output.endswith("/") or chosen.is_dir() or not chosen.suffix:
            return chosen / NAME
        if chosen.suffix == ".json":
            return chosen
        raise UserInput(f"--output {output}: a folder or a file ending in .json is expected.")
    folders = list(dict.fromkeys(one.engine.parent for one in built))
    if len({folder.resolve() for folder in folders}) > 1:
        raise UserInput(
            f"The engines stand in several folders ({folders[0]} and {folders[1]}); --output says where the plan goes."
        )
    return folders[0] / NAME


def _name(file: Path, place: Path, absolute: bool) -> str:
    """How the plan in `place` calls `file`: under its own folder, so that the two can be copied together."""
    if absolute:
        return os.path.abspath(file)  # noqa: PTH100 - links stay as the operator made them
    try:
        return file.resolve().relative_to(place.parent.resolve()).as_posix()
    except ValueError as error:
        raise UserInput(
            f"{file}: stands outside of {place.parent}, and names of a plan lead nowhere else; --output puts the plan "
            "beside the engines, or --absolute writes whole paths."
        ) from error


def _check_replaced(place: Path) -> None:
    """See that nothing but an earlier plan is replaced."""
    if not os.path.lexists(place):
        return
    try:
        data = read_json(place, "a plan")
    except BadInput:
        data = None
    options = data.get(SESSION_OPTIONS, data) if isinstance(data, dict) else None
    if not isinstance(options, dict) or not any(str(name).endswith(SUFFIX) for name in options):
        raise UserInput(f"{place}: is no plan, and would be replaced; {ANOTHER_PLACE}.")


def _notes(built: tuple[Built, ...], options: dict[str, dict[str, dict[str, object]]], reference: bool) -> list[str]:
    notes = []
    drawn = [one.engine.name for one in built if one.manifest.source.kind == RANDOM]
    if drawn:
        notes.append(f"{', '.join(drawn)}: made of random weights, so what it speaks is noise.")
    beyond = [
        f"{component} {role}"
        for option, components in options.items()
        for component, placed in components.items()
        for role in _beyond(option, component, placed["artifacts"])
    ]
    if beyond:
        notes.append(f"The reference application does not know {', '.join(beyond)}; --reference leaves that out.")
    told_place = ", ".join(one.engine.name for one in trimmed(built))
    if told_place:
        does = "they are left out" if reference else "--reference leaves them out"
        notes.append(
            f"The reference application does not tell trimmed engines where their window stands ({told_place}): {does}."
        )
    return notes


def _beyond(option: str, component: str, artifacts: object) -> list[str]:
    """Roles of `artifacts` that are this project's alone."""
    family = family_of_option(option)
    definition = family.component(component) if family else None
    assert definition is not None
    assert isinstance(artifacts, dict)
    roles = [role for one in definition.implementations for role in one.roles if role.name in artifacts]
    return [
        role.name + (" of several files" if role.beyond_ladder else "")
        for role in roles
        if role.beyond or (role.beyond_ladder and "," in artifacts[role.name])
    ]
