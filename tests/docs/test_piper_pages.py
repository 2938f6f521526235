"""Holds the pages on Piper's duration encoder and on many voices to the code: gates, bounds, widths, exit codes."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from contracts.errors import EXIT_DONE, EXIT_FAILED, EXIT_REFUSED
from converters import number_lists
from converters.piper import duration_encoder
from converters.stages import StageOptions
from rknn_tts.many import report_of_many
from rknn_tts.report import EXIT_INTERRUPTED, Part, Report
from rknn_tts.request import Request
from tests.docs.command_lines import request_of
from tests.docs.pages import ROOT, prose, table_rows
from tests.docs.test_gates_page import pattern
from tests.docs.workplace import DURATIONS_COMMAND, Ran, Workplace

DURATIONS = ROOT / "docs" / "piper-durations.md"
MANY = ROOT / "docs" / "many-voices.md"
_BOUND = re.compile(r"(?:>=|<=) ([\d.]+) (?:dB|%)")
_MEASURED_ROW = re.compile(r"^\| (\d+) \| [\d.]+ \|", re.MULTILINE)
_CODE_ROW = re.compile(r"^\| (\d+) \| ([^|]+) \|$", re.MULTILINE)


@pytest.fixture
def own_verdicts(workplace: Workplace, durations: Ran) -> list[dict[str, Any]]:
    """The verdicts of the narrow engine that tell of this stage: not of passes, structure, ranges or the log."""
    manifest = json.loads((workplace.folder / "engines/rk3588/piper-duration_encoder-n128.json").read_text("utf-8"))
    return [v for v in manifest["verdicts"] if v["gate"].split(".")[0] in ("fp32", "host", "simulator")]


def test_gates_of_the_durations_page_are_an_engines_with_their_bounds(own_verdicts: list[dict[str, Any]]) -> None:
    told = {name: float(match[1]) for name, row in table_rows(DURATIONS).items() if (match := _BOUND.search(row[-1]))}
    real = {v["gate"]: v["threshold"] for v in own_verdicts}
    assert {name for name in told for gate in real if pattern(name).fullmatch(gate)} == set(told)
    for gate, threshold in real.items():
        assert [bound for name, bound in told.items() if pattern(name).fullmatch(gate)] == [threshold], gate


def test_widths_of_the_durations_page_are_the_codes() -> None:
    asked = request_of(DURATIONS_COMMAND).widths
    assert asked == duration_encoder.DEFAULT_WIDTHS
    measured = tuple(int(width) for width in _MEASURED_ROW.findall(DURATIONS.read_text(encoding="utf-8")))
    assert measured == (128, 192, 384, 512)
    assert duration_encoder.widths_of(StageOptions(widths=",".join(map(str, measured)))) == measured
    text = prose(DURATIONS)
    assert f"{asked.replace(',', ' and ')} are the default" in text
    assert f"{duration_encoder.WIDEST} is the widest, {duration_encoder.NARROWEST} the narrowest" in text
    assert number_lists.MOST == 8
    assert "eight widths the most" in text
    assert f"up to {duration_encoder.KEPT_WIDTH} tokens" in text


def test_exit_codes_of_many_voices_are_the_codes() -> None:
    told = {int(code): meaning for code, meaning in _CODE_ROW.findall(MANY.read_text(encoding="utf-8"))}
    assert set(told) == {EXIT_DONE, EXIT_FAILED, EXIT_REFUSED, EXIT_INTERRUPTED}
    assert "failed at least" in told[code_of(EXIT_DONE, EXIT_REFUSED, EXIT_FAILED)]
    assert "none failed, and one was refused" in told[code_of(EXIT_DONE, EXIT_REFUSED)]
    assert "every voice" in told[code_of(EXIT_DONE, EXIT_DONE)]


def code_of(*codes: int) -> int:
    """The exit code of a command whose voices came to `codes`."""
    request = Request("engine", family="piper")
    parts = [Part(f"voice{number}", Report(request, code), 1.0, 0) for number, code in enumerate(codes)]
    return report_of_many(request, parts, 1.0).exit_code
