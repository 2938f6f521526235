"""The table of passes, their modules and what these say hold together."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

import pytest

import surgery
from surgery.catalogue import CATALOGUE
from surgery.declaration import Declaration, Pass, Rewritten, check_order

MODULES = {
    info.name: importlib.import_module(f"surgery.{info.name}") for info in pkgutil.iter_modules(surgery.__path__)
}
PASSES = {name: module for name, module in MODULES.items() if hasattr(module, "DECLARATION")}


def test_catalogue_lists_every_module_with_a_declaration_once() -> None:
    assert sorted(entry.name for entry in CATALOGUE) == sorted(PASSES)


def test_catalogue_keeps_every_declared_order() -> None:
    check_order([Pass(entry, lambda model: Rewritten(model, 0)) for entry in CATALOGUE])


def test_catalogue_names_only_passes_there_are_when_one_must_run_before() -> None:
    assert {name for entry in CATALOGUE for name in entry.after} <= set(PASSES)


@pytest.mark.parametrize("name", sorted(PASSES))
def test_pass_has_its_modules_name_and_states_before_and_after(name: str) -> None:
    module: ModuleType = PASSES[name]
    declaration: Declaration = module.DECLARATION
    assert declaration.name == name
    assert callable(getattr(module, name))
    assert declaration in CATALOGUE
    text = module.__doc__ or ""
    assert "Before:" in text
    assert "After:" in text
    assert ("Exact" in text) or ("Bounded" in text)
    assert declaration.summary
    assert declaration.exactness.why
