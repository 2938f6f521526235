"""The JSON Schema of a plan's file, made of the definition; `docs/execution-plan.schema.json` is its text.

What a schema cannot say is checked by `reading` alone: files that are there, names that stay under the model's folder,
keys that stand once, the plan within a JSON text, and the value of one option alone, whose family the caller says.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import json
from typing import Any, Dict

from rknn_tts_runtime.plans.definition import (
    DEFAULT,
    FAMILIES,
    SUFFIX,
    ComponentDefinition,
    FamilyDefinition,
    Implementation,
    Param,
    Role,
)
from rknn_tts_runtime.plans.reading import SESSION_OPTIONS

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_NAME = r"[^,]*[^,\s][^,]*"
"""A name in a ladder: something other than blanks, and no comma."""

Schema = Dict[str, Any]


def schema_text() -> str:
    """The schema as the text of its file."""
    return json.dumps(plan_schema(), indent=2) + "\n"


def plan_schema() -> Schema:
    """The schema of a file that names its options (draft 2020-12); `$defs` has that of each option's value."""
    options = {family.option: {"$ref": f"#/$defs/{family.option}"} for family in FAMILIES}
    known = list(options)
    plans: Schema = {"type": "object", "properties": options, "additionalProperties": False}
    # Other session options are the host application's, but none of them holds a plan.
    others = {"anyOf": [{"enum": known}, {"not": {"pattern": SUFFIX.replace(".", r"\.") + "$"}}]}
    session = {
        "type": "object",
        "properties": {SESSION_OPTIONS: {"type": "object", "properties": options, "propertyNames": others}},
        "required": [SESSION_OPTIONS],
        "additionalProperties": False,
    }
    return {
        "$schema": DIALECT,
        "title": "Execution plans of speech models",
        "description": "Which implementation runs each component of a model, of which files, with which settings.",
        "anyOf": [session, plans],
        "$defs": {**{family.option: _option(family) for family in FAMILIES}, **_shared()},
    }


def _shared() -> Schema:
    """The implementations that take no files: they are alike in every component."""
    parts = [part for family in FAMILIES for part in family.components]
    every = [one for part in parts for one in part.implementations if not one.roles]
    return {one.name: _implementation(one) for one in every}


def _option(family: FamilyDefinition) -> Schema:
    components = {part.name: _component(part) for part in family.components}
    plan: Schema = {"type": "object", "properties": components, "additionalProperties": False}
    text = {"type": "string", "minLength": 1, "description": "JSON text of the object"}
    return {"description": f"Plan of {family.family}", "anyOf": [plan, text]}


def _component(definition: ComponentDefinition) -> Schema:
    every = definition.implementations
    return {"anyOf": [_implementation(one) if one.roles else {"$ref": f"#/$defs/{one.name}"} for one in every]}


def _implementation(implementation: Implementation) -> Schema:
    required = [] if implementation.name == DEFAULT else ["impl"]
    properties: Schema = {"impl": {"const": implementation.name}}
    if implementation.backends:
        properties["backend"] = {"enum": list(implementation.backends)}
    roles = {role.name: _role(role) for role in implementation.roles}
    artifacts: Schema = {"type": "object", "properties": roles, "additionalProperties": False}
    if implementation.needs:
        artifacts["allOf"] = [{"anyOf": [{"required": [name]} for name in group]} for group in implementation.needs]
        required.append("artifacts")
    params = {param.name: _param(param) for param in implementation.params}
    properties["artifacts"] = artifacts
    properties["params"] = {"type": "object", "properties": params, "additionalProperties": False}
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _role(role: Role) -> Schema:
    pattern = f"^{_NAME}(,{_NAME})*$" if role.ladder else r"\S"
    return {"type": "string", "pattern": pattern, "description": role.meaning}


def _param(param: Param) -> Schema:
    schema: Schema = {"type": param.kind, "default": param.default, "description": param.meaning}
    return {**schema, "minimum": param.least} if param.kind == "integer" else schema
