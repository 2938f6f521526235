"""The table of what was weighed: who takes after whom, and that it says nothing of what there no longer is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from contracts.choices import BY_THE_TABLE, ON_THIS_ENGINE, WITH, WITHOUT, Choice, Variant
from contracts.contract import Contract, Source, Window
from contracts.targets import TARGETS
from converters.registry import STAGES
from rknn_tts.earning.greedy import DECIMALS, INTERFACE_SHARE
from rknn_tts.earning.table import Entry, as_taken_over, entries_for, nearest, read_table, weighed_text, write_table
from surgery.catalogue import CATALOGUE

CHOICE = Choice("fold_scales", WITH, ON_THIS_ENGINE, "net-w8 for rk3588", (Variant(WITH, 9, 0, 1000, 50.0, 10.0),))
ENTRIES = read_table()
ROOT = Path(__file__).resolve().parents[3]


def entry(stem: str, frames: int | None = None, role: str | None = None, **fields: str) -> Entry:
    known = {"family": "net", "stage": "whole", "target": "rk3588", "toolkit": "2.3.2", "source": "net", **fields}
    return Entry(role=role, stem=stem, frames=frames, choices=(CHOICE,), **known)


def contract(frames: int | None = None, role: str | None = None) -> Contract:
    window = None if frames is None else Window(frames, frames, 0, 0, 256, None)
    return Contract("net", "whole", Source("net", "0" * 64, "package"), (), (), window=window, role=role)


@pytest.mark.parametrize(
    ("stem", "frames", "role", "found"),
    [
        ("net-w256", 256, None, "net-w256"),
        ("net-w109", 256, None, "net-w109"),  # by its name, whatever its width
        ("net-w128", 128, None, "net-w109"),
        ("net-w300", 300, None, "net-w256"),
        ("net-w128-masked", 128, "w448", "net-w448"),  # by its role
    ],
)
def test_engine_takes_after_that_of_its_name_else_of_its_role_else_of_the_nearest_width(
    stem: str, frames: int, role: str | None, found: str
) -> None:
    entries = (entry("net-w448", 448, "w448"), entry("net-w256", 256), entry("net-w109", 109))
    chosen = nearest(entries, stem, contract(frames, role))
    assert chosen is not None
    assert chosen.stem == found


def test_engine_takes_after_none_where_nothing_was_weighed() -> None:
    assert nearest((), "net-w8", contract()) is None
    assert entries_for("net", "whole", "rk3588", "2.3.2") == ()


def test_graph_for_all_targets_takes_after_none() -> None:
    assert entries_for("piper", "decoder", None, "2.3.2") == ()


def test_written_entry_takes_the_place_of_that_of_the_same_engine_alone(tmp_path: Path) -> None:
    place = tmp_path / "weighed.json"
    write_table([entry("net-w256", 256, source="old"), entry("net-w109", 109)], place)
    write_table([entry("net-w256", 256, source="new")], place)
    assert [(one.stem, one.source) for one in read_table(place)] == [("net-w109", "net"), ("net-w256", "new")]


def test_written_table_is_in_order_whatever_order_it_was_weighed_in(tmp_path: Path) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    entries = [entry("net-w256", 256), entry("net-w109", 109), entry("net", target="rk3562")]
    write_table(entries, first)
    for one in reversed(entries):
        write_table([one], second)
    assert first.read_bytes() == second.read_bytes()
    assert json.loads(first.read_text("utf-8"))["entries"][0]["target"] == "rk3562"


def test_choice_that_is_taken_over_says_so_and_keeps_its_figures() -> None:
    made = as_taken_over(CHOICE)
    assert (made.basis, made.weighed_on, made.variants) == (BY_THE_TABLE, CHOICE.weighed_on, CHOICE.variants)


def of_table() -> list[tuple[Entry, Choice]]:
    return [(one, choice) for one in ENTRIES for choice in one.choices]


def test_table_tells_of_stages_targets_and_toolkits_that_there_are() -> None:
    stages = {(stage.family, stage.name) for stage in STAGES}
    assert [one.key for one in ENTRIES if (one.family, one.stage) not in stages] == []
    assert {one.target for one in ENTRIES} <= set(TARGETS)
    locks = {path.stem.removeprefix("rknn-") for path in (ROOT / "requirements").glob("rknn-*.txt")}
    assert {one.toolkit for one in ENTRIES} <= locks


def test_table_tells_of_passes_that_there_are_and_that_are_optional() -> None:
    optional = {declaration.name for declaration in CATALOGUE if declaration.pays_on is not None}
    assert [(one.stem, choice.name) for one, choice in of_table() if choice.name not in optional] == []


def test_table_is_sorted_and_has_each_engine_once() -> None:
    keys = [one.key for one in ENTRIES]
    assert keys == sorted(set(keys))


def test_kept_variant_of_the_table_is_the_cheapest_of_those_that_pass() -> None:
    for one, choice in of_table():
        spent = {v.name: round(v.modelled_ms, DECIMALS) for v in choice.variants if v.modelled_ms and not v.fault}
        assert len(choice.variants) > 1, (one.stem, choice.name)
        margin = 1 + INTERFACE_SHARE if choice.name == "rewrite_interface_axes" else 1.0
        assert spent[choice.kept] <= min(spent.values()) * margin, (one.stem, choice.name)


def test_figures_of_the_table_follow_each_other_from_pass_to_pass() -> None:
    for one in ENTRIES:
        for before, behind in zip(one.choices, one.choices[1:], strict=False):
            kept = next(v for v in before.variants if v.name == before.kept)
            first = behind.variants[0]
            assert (kept.cycles, kept.rw_kb, kept.layers) == (first.cycles, first.rw_kb, first.layers), one.stem


def test_choices_of_the_table_name_the_engine_that_was_weighed() -> None:
    for one, choice in of_table():
        assert choice.weighed_on == weighed_text(one.stem, one.target, one.toolkit)
        assert choice.basis == ON_THIS_ENGINE


def test_variants_differ_in_the_pass_they_are_of() -> None:
    for _one, choice in of_table():
        assert {WITH, WITHOUT} & {variant.name for variant in choice.variants}
