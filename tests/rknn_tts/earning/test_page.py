"""The page of what was weighed: its text is the generator's, and it says what is otherwise than on small graphs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from contracts.choices import ON_THIS_ENGINE, WITH, WITHOUT, Choice, Variant
from rknn_tts.earning.page import earning_page
from rknn_tts.earning.table import Entry, read_table

PAGE = Path(__file__).resolve().parents[3] / "docs" / "earning.md"

DEARER, CHEAPER = (
    Variant(WITH, 237, 0, 7_256_400, 96_730.4, 26.6034),
    Variant(WITHOUT, 235, 1, 7_100_000, 96_000.0, 26.1),
)
CHOICE = Choice("rewrite_narrow_conv", WITHOUT, ON_THIS_ENGINE, "net-w8", (DEARER, CHEAPER))
ENTRY = Entry("net", "whole", "w8", "net-w8", 8, "rk3588", "2.3.2", "net.onnx", (CHOICE,))


def test_page_is_what_stands_in_the_docs() -> None:
    assert PAGE.read_text(encoding="utf-8") == earning_page(read_table())


def test_every_variant_has_its_row() -> None:
    lines = earning_page([ENTRY]).splitlines()
    assert "## net-w8, rk3588" in lines
    assert "net whole, role w8, of net.onnx, by rknn-toolkit2 2.3.2." in lines
    assert "| rewrite_narrow_conv | with | 237 | 0 | 7.256 | 96.73 | 26.603 |  |" in lines
    assert "| rewrite_narrow_conv | without | 235 | 1 | 7.100 | 96.00 | 26.100 | kept |" in lines


def test_choice_against_the_small_graph_is_listed_with_what_it_saves() -> None:
    lines = earning_page([ENTRY]).splitlines()
    assert "| net-w8 | rk3588 | rewrite_narrow_conv | with | without | 0.503 |" in lines
    kept = replace(ENTRY, choices=(replace(CHOICE, kept=WITH),))
    assert "| net-w8 | rk3588 | rewrite_narrow_conv |" not in earning_page([kept])


def test_variant_that_cannot_be_kept_is_told_with_its_reason() -> None:
    broken = replace(CHOICE, kept=WITH, variants=(DEARER, Variant(WITHOUT, fault="the toolkit died")))
    lines = earning_page([replace(ENTRY, choices=(broken,))]).splitlines()
    assert "| rewrite_narrow_conv | without | - | - | - | - | - | the toolkit died |" in lines


def test_pass_that_costs_as_much_as_its_absence_is_told_apart() -> None:
    same = replace(CHEAPER, modelled_ms=26.60338)  # less than a microsecond less
    page = earning_page([replace(ENTRY, choices=(replace(CHOICE, kept=WITH, variants=(DEARER, same)),))])
    assert "as it was: rewrite_narrow_conv (net-w8, rk3588)." in " ".join(page.split())
    assert "as it was" not in earning_page([ENTRY])
