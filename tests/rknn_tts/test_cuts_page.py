"""The page of cuts: its text is the generator's, each declaration follows from its rows, some are built again."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from contracts.errors import ToolFailure
from contracts.manifest import CpuLayer, Layers
from contracts.targets import TARGETS
from rknn_tts import cuts_page as module
from rknn_tts.cuts_page import (
    CASES,
    DOES_NOT_PAY,
    PAYS,
    UNCOUNTED,
    Case,
    Measured,
    built_row,
    cut_for,
    cuts_page,
    graphs,
)
from rknn_tts.graph_cost import CostBuilds, GraphCost
from rknn_tts.specimens import SPECIMENS, Specimen
from surgery.cuts import every_cut
from surgery.fold_neutral_operands import fold_neutral_operands
from surgery.rewrite_interface_axes import rewrite_interface_axes

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cuts.md"

SECTION = re.compile(r"^## (\w+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)

LAYERS, CPU, CYCLES, TRAFFIC, SPENT, VERDICT = range(6)
"""Cells of a row, behind its target."""


def rows_on_the_page() -> dict[Case, str]:
    """The row of each case."""
    sections = dict(SECTION.findall(PAGE.read_text(encoding="utf-8")))
    return {
        Case(cut, target): line
        for cut, text in sections.items()
        for target in TARGETS
        for line in text.splitlines()
        if line.startswith(f"| {target} |")
    }


def cells(case: Case) -> list[str]:
    """Of its row, behind what names it."""
    return [cell.strip() for cell in rows_on_the_page()[case].removeprefix(case.label()).strip(" |").split("|")]


def before_and_after(case: Case, cell: int) -> list[float]:
    """Two figures of a row."""
    return [float(figure) for figure in cells(case)[cell].split(" → ")]


def test_cuts_page_is_what_stands_in_the_docs_but_for_the_figures() -> None:
    rows = rows_on_the_page()
    assert tuple(rows) == CASES
    assert PAGE.read_text(encoding="utf-8") == cuts_page(rows.__getitem__)


def test_every_cut_is_on_the_page_for_every_target_or_told_apart() -> None:
    cuts = [*every_cut(None), rewrite_interface_axes()]
    uncounted = {bound.name for bound in cuts if bound.declaration.pays_on is None}
    assert uncounted == set(UNCOUNTED)
    assert set(CASES) == {Case(bound.name, target) for bound in cuts for target in TARGETS} - {
        Case(name, target) for name in uncounted for target in TARGETS
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.cut}-{case.target}")
def test_verdict_follows_from_the_modelled_time_and_the_declaration_from_the_verdict(case: Case) -> None:
    without, cut = before_and_after(case, SPENT)
    verdict = PAYS if cut < without else DOES_NOT_PAY
    assert cells(case)[VERDICT] == verdict
    pays_on = cut_for(case).declaration.pays_on
    assert pays_on is not None
    assert (case.target in pays_on) == (verdict == PAYS)


@pytest.mark.parametrize("case", [case for case in CASES if cells(case)[VERDICT] == PAYS], ids=lambda case: case.cut)
def test_cut_that_pays_brings_no_layer_to_the_cpu(case: Case) -> None:
    without, cut = before_and_after(case, CPU)
    assert cut <= without


@pytest.mark.parametrize(
    "case",
    [
        Case("fold_channel_flips", "rk3588"),
        Case("rewrite_narrow_conv", "rk3566"),
        Case("rewrite_interface_axes", "rk3562"),
    ],
    ids=lambda case: f"{case.cut}-{case.target}",
)
def test_row_on_the_page_is_what_builds_give(case: Case) -> None:
    assert rows_on_the_page()[case] == built_row(case)


def layers(count: int, cycles: int, spent: float, cpu: int = 0) -> Layers:
    """In sum."""
    on_cpu = tuple(CpuLayer(op="Slice", name=f"flip{at}", rw_kb=8.0) for at in range(cpu))
    return Layers(count=count, cycles=cycles, rw_kb=1800.4, modelled_ms=spent, cpu=on_cpu, file=None)


def test_row_says_what_was_measured() -> None:
    row = Measured(layers(9, 230_400, 0.7501, cpu=2), layers(8, 230_400, 0.69)).cells()
    assert row == " 9 → 8 | 2 → 0 | 0.230 → 0.230 | 1800 → 1800 | 0.750 → 0.690 | pays |"


def test_what_differs_by_less_than_the_page_shows_does_not_pay() -> None:
    assert Measured(layers(9, 0, 0.75049), layers(9, 0, 0.75001)).cells().endswith(f"| {DOES_NOT_PAY} |")


@pytest.mark.parametrize(
    ("cost", "told"),
    [
        (GraphCost(fault="no memory"), "fold_scales for rk3588: no memory"),
        (GraphCost(layers=layers(9, 0, 1.0), regtask_lines=3), "a field of the hardware overflows"),
    ],
)
def test_no_row_is_made_when_a_build_fails(cost: GraphCost, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CostBuilds, "cost", lambda self, name, graph: cost)
    with pytest.raises(ToolFailure, match=told):
        built_row(Case("fold_scales", "rk3588"))


def test_graphs_are_without_the_pass_and_with_it_and_of_four_axes_both() -> None:
    without, cut = (
        ir.from_proto(onnx.load_from_string(graph)) for graph in graphs(Case("fold_channel_flips", "rk3566"))
    )
    assert [[node.op_type for node in model.graph].count("Slice") for model in (without, cut)] == [1, 0]
    for model in (without, cut):
        shapes = [value.shape for value in chain(model.graph.inputs, model.graph.outputs)]
        assert [shape.rank() for shape in shapes if shape is not None] == [4, 4]


def test_neutral_operands_cost_nothing_as_the_page_says(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = SPECIMENS["fold_channel_flips"]
    text = plain.text.replace("Slice (h, start, end, channels, step)", "Add (h, zeros)")
    specimen = Specimen("Piper's conditions", text, plain.weights, {"zeros": np.zeros((1, 192, 93))})
    name = fold_neutral_operands().name
    monkeypatch.setattr(module, "SPECIMENS", {name: specimen})
    case = Case(name, "rk3588")
    made = module.measured(case)
    sums = [(layers.count, layers.cycles, layers.rw_kb) for layers in (made.without, made.cut)]
    assert len(set(graphs(case))) == 2
    assert sums[0] == sums[1]
