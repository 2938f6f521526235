"""What a person sees of a turn of the researcher's loop, as plain text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from contracts.manifest import CpuLayer, Layers, Memory
from contracts.verdicts import Verdict, at_least
from rknn_tts.blocks import Table, plain_text
from rknn_tts.graph_cost import GraphCost
from rknn_tts.present import MODELLED
from rknn_tts.present_trial import trial_blocks
from rknn_tts.trial import BEFORE, Trial, Tried

FLIP = CpuLayer("Slice", "Slice:/flow/flip", 40.0)
DEAR = GraphCost(
    Layers(1715, 250_400_000, 1_895_000.0, 781.25, (FLIP,), "build-logs/net-rk3588.0-before.layers.json"),
    Memory(12_212.5, 17_129.8),
    12,
)
CHEAP = GraphCost(
    Layers(552, 110_000_000, 775_000.0, 265.0, (), "build-logs/net-rk3588.1-fold_scales.layers.json"),
    Memory(9_000.0, 17_129.8),
)


def tried(name: str, cost: GraphCost | None = None, **more: Any) -> Tried:
    return replace(Tried(name, 0, (), None, 3, cost), **more)


def trial(*rows: Tried, **more: Any) -> Trial:
    return replace(Trial("net.onnx", "rk3588", rows, None, "", None, (), None), **more)


def shown(one: Trial) -> list[str]:
    return plain_text(trial_blocks(one)).splitlines()


def judged(measured: float, threshold: float = 120.0) -> Verdict:
    return at_least("pass.fold_scales", measured, threshold, "dB", "The graph behind it against the one before it.")


def fault(name: str, text: str) -> Tried:
    return tried(name, GraphCost(fault=text))


def test_turn_with_cost_is_shown_in_full() -> None:
    one = trial(
        tried(BEFORE, DEAR, nodes=6),
        tried("fold_scales", CHEAP, nodes=5, hits=2, verdict=judged(127.3456)),
        whole_db=126.0,
        judged_on="2 windows of real.npz",
        saved="out/net.onnx",
        notes=("It carries no contract.",),
    )
    assert shown(one) == [
        "pass         places  nodes  snr_db  owed_db  layers  cpu  megacycles  traffic_mb  modelled_ms  regtask",
        "before            -      6       -        -    1715    1       250.4        1895        781.2       12",
        "fold_scales       2      5   127.3      120     552    0         110         775          265        0",
        "",
        "file:                net.onnx",
        "last against first:  126 dB, judged on 2 windows of real.npz",
        "on the CPU, before:  1 Slice, 40.0 KB of traffic: /flow/flip",
        "on the CPU, after:   none",
        "time:                781.2 to 265 ms, 0.339 times (modelled, not measured on a board)",
        "memory:              internal 12.2 MB to 9.0 MB, weights 17.1 MB to 17.1 MB",
        "layers, before:      build-logs/net-rk3588.0-before.layers.json",
        "layers, after:       build-logs/net-rk3588.1-fold_scales.layers.json",
        "saved:               out/net.onnx",
        "",
        "note: It carries no contract.",
    ]


def test_turn_without_cost_has_no_columns_for_it() -> None:
    one = trial(tried(BEFORE), tried("fold_scales", hits=1), target=None)
    assert shown(one) == [
        "pass         places  nodes  snr_db  owed_db",
        "before            -      3       -        -",
        "fold_scales       1      3       -        -",
        "",
        "file:  net.onnx",
    ]


def table_of(one: Trial) -> Table:
    table = trial_blocks(one)[0]
    assert isinstance(table, Table)
    return table


def test_title_says_for_which_chip_and_that_times_are_modelled() -> None:
    assert table_of(trial(tried(BEFORE, DEAR))).title == f"Passes on rk3588 ({MODELLED})"
    assert table_of(trial(tried(BEFORE), target=None)).title == "Passes"


@pytest.mark.parametrize(
    ("row", "tone"),
    [
        (tried("fold_scales", verdict=judged(127.0)), "plain"),
        (tried("fold_scales", verdict=judged(119.99)), "bad"),
        (tried("fold_scales", verdict=judged(float("nan"))), "bad"),
        (tried("fold_scales", refused=("node 'n': a constant bound",)), "bad"),
        (fault("fold_scales", "No kernel."), "plain"),
    ],
)
def test_row_is_marked_where_its_pass_fails(row: Tried, tone: str) -> None:
    assert [shown.tone for shown in table_of(trial(tried(BEFORE), row)).rows] == ["plain", tone]


def test_places_are_told_where_there_were_some_or_something_was_compared() -> None:
    rows = [
        tried(BEFORE),
        tried("fold_scales", hits=3),
        tried("fold_shifts", verdict=judged(130.0)),
        tried("fuse_layer_norm"),
    ]
    assert [row.cells[1] for row in table_of(trial(*rows)).rows] == ["", "3", "0", ""]


def test_graph_without_an_engine_has_empty_cells_and_no_comparison() -> None:
    lines = shown(trial(tried(BEFORE, DEAR), fault("fold_scales", "No kernel.")))
    assert lines[2].split() == ["fold_scales", *"-3", *"--------"]
    assert "on the CPU, after:   unknown: no engine" in lines
    assert not [line for line in lines if line.startswith(("time:", "memory:", "layers, after:"))]
    assert lines[-1] == "does not build: fold_scales: No kernel."


def test_first_is_not_compared_with_itself() -> None:
    lines = shown(trial(tried(BEFORE, DEAR)))
    assert "on the CPU, before:  1 Slice, 40.0 KB of traffic: /flow/flip" in lines
    assert not [line for line in lines if ", after:" in line]


def test_memory_that_the_log_did_not_state_is_left_out() -> None:
    lines = shown(trial(tried(BEFORE, DEAR), tried("fold_scales", replace(CHEAP, memory=None))))
    assert not [line for line in lines if line.startswith("memory:")]


def test_time_is_left_out_where_the_first_takes_none() -> None:
    assert DEAR.layers is not None
    free = replace(DEAR, layers=replace(DEAR.layers, modelled_ms=0.0))
    assert not [line for line in shown(trial(tried(BEFORE, free), tried("fold_scales", CHEAP))) if "time:" in line]


def test_each_place_that_a_pass_refuses_is_a_sentence_of_its_own() -> None:
    refused = ("node 'a': a constant bound: a number is needed, an input", "node 'b': a known size: 1 is needed, ?")
    lines = shown(trial(tried(BEFORE), tried("rewrite_x", refused=refused), target=None))
    assert lines[-2:] == [f"rewrite_x: refused {sentence}" for sentence in refused]


def test_what_does_not_build_is_told_once_for_all_that_have_the_same_fault() -> None:
    rows = [fault(BEFORE, "No kernel."), fault("fold_scales", "No kernel."), fault("fold_shifts", "No memory.")]
    assert shown(trial(*rows))[-2:] == [
        "does not build: before, fold_scales: No kernel.",
        "does not build: fold_shifts: No memory.",
    ]


def test_notes_come_last_in_their_order() -> None:
    lines = shown(trial(fault(BEFORE, "No kernel."), notes=("One.", "Two.")))
    assert lines[-3:] == ["does not build: before: No kernel.", "note: One.", "note: Two."]


def test_name_from_a_file_cannot_write_on_the_terminal() -> None:
    assert DEAR.layers is not None
    layers = replace(DEAR.layers, cpu=(CpuLayer("Slice", "Slice:a\x1b[2Jb", 40.0),))
    text = "\n".join(shown(trial(tried(BEFORE, replace(DEAR, layers=layers)), model="n\x1bet.onnx")))
    assert "\x1b" not in text
    assert r"n\x1bet.onnx" in text
    assert r"a\x1b[2Jb" in text
