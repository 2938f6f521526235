"""Holds docs/plans.md and the definition of plans together."""

from __future__ import annotations

import json
import re

import pytest
from rknn_tts_runtime.plans.definition import (
    DEFAULT,
    FAMILIES,
    RKNN,
    ComponentDefinition,
    FamilyDefinition,
    Implementation,
    Param,
    Role,
)

from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs" / "plans.md"
TEXT = PAGE.read_text(encoding="utf-8")


def row(family: FamilyDefinition, component: ComponentDefinition) -> str:
    names = ", ".join(f"`{one.name}`" for one in component.implementations)
    rknn = component.implementation(RKNN) or Implementation(RKNN)
    roles = ", ".join(map(role_text, rknn.roles))
    params = ", ".join(f"`{param.name}`" for param in rknn.params)
    cells = (f"{family.family} `{component.name}`", f"`{family.option}`", names, roles, params)
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


def role_text(role: Role) -> str:
    marks = ["ladder"] * role.ladder + ["*ours*"] * (role.beyond or role.beyond_ladder)
    return f"`{role.name}`" + (f" ({', '.join(marks)})" if marks else "")


def test_the_table_is_the_definition() -> None:
    rows = [row(family, component) for family in FAMILIES for component in family.components]
    head = TEXT.index("| Component |")
    assert TEXT[head:].split("\n\n")[0].splitlines()[2:] == rows


def test_every_role_and_param_is_explained() -> None:
    every = [one for family in FAMILIES for part in family.components for one in part.implementations]
    explained = set(re.findall(r"^\| `(\w+)` \|", TEXT, re.MULTILINE))
    assert explained == {role.name for one in every for role in one.roles} | {param.name for param in params()}


def params() -> list[Param]:
    every = [one for family in FAMILIES for part in family.components for one in part.implementations]
    return [param for one in every for param in one.params]


@pytest.mark.parametrize("param", params(), ids=lambda param: param.name)
def test_a_param_is_as_the_page_says(param: Param) -> None:
    kind = {"integer": f"whole number from {param.least}", "boolean": "true or false"}[param.kind]
    assert f"| `{param.name}` | {kind} | {json.dumps(param.default)} | {param.meaning}" in TEXT


def test_main_alone_is_required_as_the_page_says() -> None:
    needs = {
        part.name: one.needs
        for family in FAMILIES
        for part in family.components
        for one in part.implementations
        if one.name == RKNN
    }
    assert needs.pop("flow_estimator") == (("step", "main"),)
    assert set(needs.values()) == {(("main",),)}


def test_every_backend_is_on_the_page() -> None:
    every = [one for family in FAMILIES for part in family.components for one in part.implementations]
    (default,) = {one.backends for one in every if one.name == DEFAULT}
    assert ", ".join(f"`{name}`" for name in default) in TEXT


def test_what_the_example_writes_is_a_plan() -> None:
    output = next(block.output for block in blocks(PAGE) if block.output)
    plan = json.loads(output[: output.index("plan:")])
    assert list(plan["session_options"]) == ["piper_tts.exec_plan"]
