"""What is shown of two engines that were compared; what is found is in test_comparison.py."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cost.comparison import OperatorChange
from cost.table import LayerCost
from rknn_tts.blocks import plain_text
from rknn_tts.comparison import BOARD_TIME, FRAME, RUN, Comparison, FactChange, Figure, PassChange, Side
from rknn_tts.present_comparison import comparison_blocks

SHA = "0123456789abcdef" * 4

SAME = Comparison(
    a=Side("a.rknn", "engine", SHA, 45),
    b=Side("b.rknn", "engine", SHA, 45),
    unit=FRAME,
    same=True,
    targets=None,
    figures=(Figure("modelled time", "ms/frame", 0.5, 0.5, 0.0, 1.0),),
    operators=(),
    cpu_gone=(),
    cpu_come=(),
    passes=(),
    facts=(),
    notes=(),
)


def lines(**changes: object) -> list[str]:
    """What is shown, blanks between columns as one."""
    text = plain_text(comparison_blocks(replace(SAME, **changes)))  # type: ignore[arg-type] # a table of differences
    return [" ".join(line.split()) for line in text.splitlines()]


def test_same_engine_is_told_in_few_lines() -> None:
    assert lines() == [
        "A: a.rknn",
        "B: b.rknn",
        "costs: of one emitted frame (each run emits 45); modelled, not measured on a board",
        "",
        "figure unit A B B-A B/A",
        "modelled time ms/frame 0.5 0.5 0 1",
        "",
        "same: Nothing differs: A and B are the same engine, byte for byte.",
    ]


def test_costs_are_not_said_to_be_modelled_alone_where_a_board_measured_one() -> None:
    measured = Figure(BOARD_TIME, "ms/frame", 0.46, None, None, None)
    told = lines(figures=(*SAME.figures, measured))
    assert told[2] == "costs: of one emitted frame (each run emits 45); modelled, but for the time on a board"
    assert "time on a board ms/frame 0.46 - - -" in told
    assert lines(unit=RUN, figures=(measured,))[2] == "costs: of one run; modelled, but for the time on a board"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"b": replace(SAME.b, engine_sha256="9" * 64)},
            "Nothing differs in what is compared, though the engines' bytes do.",
        ),
        (
            {"b": replace(SAME.b, engine_sha256=None), "notes": ("B: no.",)},
            "Nothing differs in what is known of both; the notes say what is not.",
        ),
    ],
)
def test_nothing_differs_is_said_with_what_it_rests_on(changes: dict[str, object], sentence: str) -> None:
    assert lines(**changes)[-1] == f"same: {sentence}"


@pytest.mark.parametrize(
    ("unit", "units_b", "text"),
    [
        (RUN, 1, "of one run; modelled, not measured on a board"),
        (FRAME, 77, "of one emitted frame (a run of A emits 45, one of B 77); modelled, not measured on a board"),
    ],
)
def test_unit_of_the_costs_is_told(unit: str, units_b: int, text: str) -> None:
    assert lines(unit=unit, b=replace(SAME.b, units=units_b))[2] == f"costs: {text}"


def test_different_targets_are_told_before_all_figures() -> None:
    shown = lines(same=False, targets=("rk3588", "rk3566"))
    assert shown[4].startswith("DIFFERENT TARGETS: A is for rk3588, B for rk3566: ")
    assert shown.index("figure unit A B B-A B/A") > 4


@pytest.mark.parametrize(
    ("figure", "row"),
    [
        (Figure("layers", "", 236, 281, 45, 281 / 236), "layers - 236 281 +45 1.19"),
        (Figure("cycles", "M/frame", 0.2159, 0.1, -0.1159, 0.46318), "cycles M/frame 0.2159 0.1 -0.116 0.463"),
        (Figure("weight memory", "MB", 17.1298, 17.1299, 0.0001, 1.0), "weight memory MB 17.1298 17.1299 +0.0001 1"),
        (Figure("simulator", "dB", None, 48.0, None, None), "simulator dB - 48 - -"),
        (Figure("simulator", "dB", 48.16, 46.39, -1.77, None), "simulator dB 48.16 46.39 -1.77 -"),
    ],
)
def test_figures_are_told_in_as_many_digits_as_tell_them_apart(figure: Figure, row: str) -> None:
    assert row in lines(figures=(figure,))


def test_operators_that_differ_have_a_row_each_and_the_others_one() -> None:
    operators = (
        OperatorChange("Conv (NPU)", 3, 2, 0.25, 0.125, -0.125),
        OperatorChange("Reshape (CPU)", 0, 1, 0.0, 0.0, 0.0),
        OperatorChange("Add (NPU)", 4, 4, 0.02, 0.02, 0.0),
        OperatorChange("Mul (NPU)", 5, 5, 0.03, 0.03, 0.0),
    )
    shown = lines(same=False, operators=operators)
    at = shown.index("operator layers A layers B ms/frame A ms/frame B B-A")
    assert shown[at + 1 :] == [
        "Conv (NPU) 3 2 0.2500 0.1250 -0.1250",
        "Reshape (CPU) 0 1 0.0000 0.0000 0.0000",
        "(2 more, alike) 9 9 0.0500 0.0500 0.0000",
    ]


def test_all_else_that_differs_is_told() -> None:
    shown = lines(
        same=False,
        cpu_gone=(LayerCost("Slice", "CPU", "Slice:/flow/x", 0, 40.0, 0.2),),
        cpu_come=(LayerCost("Sin", "CPU", "", 0, 1.5, 0.1),),
        passes=(PassChange("p", None, 23), PassChange("q", 2, 1)),
        facts=(FactChange("window", "none", "109 frames"),),
        notes=("B: STALE: no.",),
    )
    for line in (
        "A Slice 40 /flow/x",
        "B Sin 1.5 (no name)",
        "p - 23",
        "q 2 1",
        "window A none",
        "window B 109 frames",
        "note: B: STALE: no.",
    ):
        assert line in shown
    assert not [line for line in shown if line.startswith("same:")]


def test_names_cannot_move_the_cursor() -> None:
    assert lines(a=Side("a\x1b[31m.rknn", "engine", SHA, 45))[0] == "A: a\\x1b[31m.rknn"
