"""Holds docs/manifest.md and the manifest's dataclasses together."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator
from typing import Any

from contracts.manifest import ENGINE_SCHEMA, SET_SCHEMA, Manifest
from farm import catalogue, jobs, outcomes
from rknn_tts.carried import CARRIED_KEYS
from rknn_tts.failing import FAILED_SCHEMA
from rknn_tts.report import SCHEMA
from tests.docs.pages import ROOT, table_rows

PAGE = ROOT / "docs" / "manifest.md"
SCHEMAS = {SET_SCHEMA, FAILED_SCHEMA, SCHEMA, catalogue.SCHEMA, jobs.SCHEMA, outcomes.SCHEMA}


def keys(kind: type, prefix: str = "") -> Iterator[str]:
    """Every key of the dataclass `kind` in JSON, as the page writes them."""
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        yield from _keys_of(hints[field.name], prefix + field.name)


def _keys_of(hint: Any, name: str) -> Iterator[str]:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union) and type(None) in arguments:
        inner = [argument for argument in arguments if argument is not type(None)]
        if len(inner) == 1 and dataclasses.is_dataclass(inner[0]):
            yield name
        yield from _keys_of(inner[0], name) if len(inner) == 1 else [name]
    elif origin is tuple and (dataclasses.is_dataclass(arguments[0]) or arguments[0] is str):
        yield from _keys_of(arguments[0], f"{name}[]")
    elif isinstance(hint, type) and dataclasses.is_dataclass(hint):
        yield from keys(hint, f"{name}.")
    else:
        yield name


def test_keys_of_the_page_are_those_of_a_manifest() -> None:
    told = [key for key in table_rows(PAGE) if key not in SCHEMAS]
    assert sorted(told) == sorted(set(keys(Manifest)))


def test_schemas_and_metadata_keys_are_in_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in (ENGINE_SCHEMA, *SCHEMAS, *CARRIED_KEYS) if f"`{name}`" not in text] == []
