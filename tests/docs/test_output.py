"""Tests of the comparison that the tests of the pages rest on."""

from __future__ import annotations

import pytest

from tests.docs.output import missing_lines

PRINTED = (
    "passed  simulator     49.15   40  dB\nengine:   a.rknn\nlog:  b.log\nnote: this is en.onnx of a package (CC0).\n"
)


@pytest.mark.parametrize(
    "shown",
    [
        "passed  simulator  49.15  40  dB",
        "passed  simulator  1.5e-3  inf  dB",
        "...\nengine: a.rknn\n...\n",
        "passed simulator 49 40 dB\nlog: b.log",
        "note: this is ...",
        "",
    ],
)
def test_missing_lines_finds_none_when_only_figures_and_left_out_lines_differ(shown: str) -> None:
    assert missing_lines(shown, PRINTED) == []


@pytest.mark.parametrize(
    ("shown", "missing"),
    [
        ("failed  simulator  49.15  40  dB", ["failed  simulator  49.15  40  dB"]),
        ("engine: a", ["engine: a"]),
        ("log: b.log\nengine: a.rknn", ["engine: a.rknn"]),
        ("note: that is ...", ["note: that is ..."]),
    ],
)
def test_missing_lines_names_a_line_when_its_words_or_order_differ(shown: str, missing: list[str]) -> None:
    assert missing_lines(shown, PRINTED) == missing
