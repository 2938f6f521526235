"""Tests of the page that is made from the catalogue."""

from __future__ import annotations

from pathlib import Path

from rknn_tts.catalogue_page import passes_page
from surgery.catalogue import CATALOGUE
from surgery.declaration import Bounded, Declaration

PAGE = Path(__file__).resolve().parents[2] / "docs" / "passes.md"


def test_passes_page_is_what_stands_in_the_docs() -> None:
    assert PAGE.read_text(encoding="utf-8") == passes_page()


def test_passes_page_has_a_section_for_every_module_of_a_pass() -> None:
    folder = PAGE.parents[1] / "surgery"
    modules = sorted(path.stem for path in folder.glob("*.py") if "DECLARATION = " in path.read_text(encoding="utf-8"))
    headings = [line.removeprefix("## ") for line in passes_page().splitlines() if line.startswith("## ")]
    assert sorted(headings) == modules


def test_passes_page_states_the_bound_when_a_pass_is_an_approximation() -> None:
    name = CATALOGUE[0].name
    page = passes_page([Declaration(name, "approximates", Bounded(57.5, "measured"), frozenset({"fold_b", "fold_a"}))])
    assert f"| [{name}](#{name}) | approximates | at least 57.5 dB: measured | all | fold_a, fold_b |" in page
