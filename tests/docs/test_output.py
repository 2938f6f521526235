"""Tests of the comparison that the tests of the pages rest on."""

from __future__ import annotations

import pytest

from tests.docs.output import missing_lines

PRINTED = (
    "passed  simulator     49.15   40  dB\npassed  fp32.whole  115  95  dB\nengine:   a.rknn\nsize:  19.7 MB\n"
    "time:   29.9 ms a run for 522 ms of audio (modelled)\nmodelled time  ms/frame  0.66  0.85  +0.19  1.27\n"
    "log:  b.log\nnote: this is en.onnx of a package (CC0).\npassed  w256.simulator  45.41  40  dB\n"
)


@pytest.mark.parametrize(
    "shown",
    [
        "passed  simulator  49.15  40  dB",
        "passed  simulator  48.2  40  dB\nsize: 20 MB\ntime: 30.4 ms a run for 522 ms of audio (modelled)",
        "passed  fp32.whole  1.5e-3  inf  dB",
        "...\nengine: a.rknn\n...\n",
        "passed simulator 49 40 dB\nlog: b.log",
        "time: 30.4 ms a run for 522 ms ...",
        "modelled time ms/frame 0.665 0.852 +0.3 2",
        "note: this is ...",
        "passed  w256.simulator  45.4  40  dB",
        "",
    ],
)
def test_missing_lines_finds_none_when_only_other_figures_and_left_out_lines_differ(shown: str) -> None:
    assert missing_lines(shown, PRINTED) == []


@pytest.mark.parametrize(
    ("shown", "missing"),
    [
        ("failed  simulator  49.15  40  dB", ["failed  simulator  49.15  40  dB"]),
        ("engine: a", ["engine: a"]),
        ("passed  simulator  42.8  40  dB", ["passed  simulator  42.8  40  dB"]),
        ("passed  w256.simulator  49.17  40  dB", ["passed  w256.simulator  49.17  40  dB"]),
        ("size: 18.7 MB", ["size: 18.7 MB"]),
        ("modelled time ms/frame 0.66 0.8 +0.14 1.2", ["modelled time ms/frame 0.66 0.8 +0.14 1.2"]),
        ("time: 26 ms a run for ...", ["time: 26 ms a run for ..."]),
        ("time: 29.9 ms a run for 640 ms ...", ["time: 29.9 ms a run for 640 ms ..."]),
        ("log: b.log\nengine: a.rknn", ["engine: a.rknn"]),
        ("note: that is ...", ["note: that is ..."]),
    ],
)
def test_missing_lines_names_a_line_when_words_order_or_a_held_figure_differ(shown: str, missing: list[str]) -> None:
    assert missing_lines(shown, PRINTED) == missing
