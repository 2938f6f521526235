"""Every precondition of every pass has graphs that break it, and is what the pass then names."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from surgery.catalogue import CATALOGUE
from tests.surgery.graphs import serialised
from tests.surgery.refusals import Refusal

TABLES = ["refusals", *sorted(file.stem for file in Path(__file__).parent.glob("refused_*.py"))]
"""Modules with a table `REFUSALS`: those of a pass `NAME` may stand in `refused_NAME.py`."""

REFUSALS: list[Refusal] = [
    case for name in TABLES for case in importlib.import_module(f"tests.surgery.{name}").REFUSALS
]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.label)
def test_pass_refuses_by_the_precondition_and_touches_nothing_when_it_is_broken(case: Refusal) -> None:
    original = case.build()
    before = serialised(original)
    done = case.bound.rewrite(original)
    assert done.hits == 0
    refused = {(place.node, place.precondition) for place in done.refused}
    assert (case.told, case.precondition) in refused
    assert {precondition for _, precondition in refused} == {case.precondition}
    assert case.got in done.refused[0].got
    assert all(place.limit for place in done.refused)
    assert serialised(done.model) == serialised(original) == before


def test_preconditions_each_have_a_graph_that_breaks_them() -> None:
    declared = {(entry.name, precondition) for entry in CATALOGUE for precondition in entry.preconditions}
    assert {(case.bound.name, case.precondition) for case in REFUSALS} == declared
