from __future__ import annotations

from dataclasses import replace

import pytest

from farm.catalogue import Repeat, RepeatedFile, RepeatMeasured
from farm.catalogue_diff import Difference
from farm.page_sections import change_text, repeats_section, rules_text

REPEAT = Repeat(
    "twice-1",
    "compile-1",
    "piper",
    "decoder",
    "amy",
    "",
    "rk3588",
    (RepeatedFile("one.rknn", "aa", "aa"),),
    RepeatMeasured("n1", "n2"),
)


@pytest.mark.parametrize(
    ("difference", "texts"),
    [
        (Difference("modelled time", 20.0, 25.0, "ms", better=False), ("20 ms", "25 ms", "+25.0 %")),
        (Difference("simulator", 45.0, 43.5, "dB", better=False), ("45 dB", "43.5 dB", "-1.5 dB")),
        (Difference("size", 20e6, 19e6, "bytes", better=True), ("20.0 MB", "19.0 MB", "-5.0 %")),
        (Difference("layers on the CPU", 0.0, 2.0, "", better=False), ("0", "2", "+2")),
        (Difference("modelled time", 0.0, 2.0, "ms", better=False), ("0 ms", "2 ms", "+2 ms")),
        (Difference("log.regtask", "unproven", "passed", "", better=True), ("unproven", "passed", "better")),
    ],
)
def test_change_is_told_in_its_unit(difference: Difference, texts: tuple[str, str, str]) -> None:
    assert change_text(difference) == texts


def test_rules_are_told_with_what_they_take() -> None:
    assert rules_text() == (
        "modelled time by more than 1 %; simulator by more than 1 dB; size by more than 1 %; layers on the CPU at all; "
        "verdicts by their gates: failed is worse than unproven, and that than passed."
    )


@pytest.mark.parametrize(
    ("nodes", "warned"),
    [
        ([("n1", "n1")], True),
        ([("n1", "n1"), ("n2", "n2")], True),
        ([("n1", "n1"), ("n1", "n2")], False),
        ([(None, "n2")], True),
    ],
)
def test_what_was_never_made_on_two_nodes_is_said_to_be_of_one(
    nodes: list[tuple[str | None, str]], warned: bool
) -> None:
    section = repeats_section([replace(REPEAT, measured=RepeatMeasured(*pair)) for pair in nodes])
    assert [notice.label for notice in section.notices] == ["same bytes", *(["one node"] if warned else [])]
    assert section.notices[0].text.startswith(f"{len(nodes)} of {len(nodes)} ")


def test_first_node_of_what_was_found_again_is_said_to_be_unknown() -> None:
    section = repeats_section([replace(REPEAT, measured=RepeatMeasured(None, "n2"))])
    assert section.parts[0].table.rows[0].cells[3:] == ("(found in the cache)", "n2")


def test_other_bytes_are_counted() -> None:
    other = replace(REPEAT, files=(RepeatedFile("one.rknn", "aa", "bb"), RepeatedFile("two.rknn", "cc", "cc")))
    section = repeats_section([REPEAT, other])
    assert [(notice.label, notice.tone) for notice in section.notices] == [("other bytes", "bad")]
    assert [row.cells[1:3] for row in section.parts[0].table.rows] == [("same", "1 file"), ("differ", "one.rknn")]
