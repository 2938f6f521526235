"""What a person sees of many voices, as plain text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contracts.errors import GateFailure, Refusal
from contracts.verdicts import Measurement, at_least
from rknn_tts.blocks import plain_text
from rknn_tts.deliver import deliver
from rknn_tts.outcome import Outcome
from rknn_tts.present_many import many_blocks
from rknn_tts.report import NOTHING, Part, Report, report_of_failure
from tests.rknn_tts.samples import MANIFEST, OUTCOME, REQUEST


def simulated(outcome: Outcome, **db: float) -> Outcome:
    """`outcome` with a verdict of the simulator for each role (`one`: of an engine alone)."""
    gates = [
        at_least("simulator" if role == "one" else f"{role}.simulator", value, 40.0, "dB") for role, value in db.items()
    ]
    return replace(outcome, verdicts=(*outcome.verdicts, *gates))


DONE = Part("joe", Report(REQUEST, outcome=simulated(OUTCOME, one=48.9)), 15.6, 1_533_000_000)
SHORT = replace(
    OUTCOME, manifest=replace(MANIFEST, engine=replace(MANIFEST.engine, bytes=1_000_000)), files=("short.rknn",)
)
PAIR = Part(
    "pair",
    Report(REQUEST, outcome=simulated(replace(NOTHING, members=(OUTCOME, SHORT)), full=62.0, short=59.25)),
    100.25,
    900_000_000,
)
FAILED = Part("bad", report_of_failure(REQUEST, GateFailure("bad.rknn was not written: a gate failed.")), 9.0, 0)
REFUSED = Part("text", report_of_failure(REQUEST, Refusal("text.onnx: is not an ONNX model.")), 1.0, 0)


def shown(*parts: Part) -> list[str]:
    return plain_text(many_blocks(Report(REQUEST, extra={"seconds": 77.2}, parts=parts))).splitlines()


def test_many_blocks_have_a_row_a_voice_and_the_sentence_of_each_that_is_not_done() -> None:
    lines = shown(DONE, PAIR, FAILED, REFUSED)
    assert [line.split() for line in lines[1:5]] == [
        ["joe", "done", "48.9", "26.1", "19.7", "MB", "15.6", "1.5"],
        ["pair", "done", "59.25", "26.1", "+", "26.1", "20.7", "MB", "100.2", "0.9"],
        ["bad", "failed", "-", "-", "-", "9", "-"],
        ["text", "refused", "-", "-", "-", "1", "-"],
    ]
    assert lines[6:8] == [
        "bad: bad.rknn was not written: a gate failed.",
        "text: text.onnx: is not an ONNX model.",
    ]


def test_many_blocks_have_a_column_for_samples_where_there_are_any() -> None:
    figure = Measurement(name="sample.engine", measured=46.5, unit="dB", reason="heard")
    heard = replace(simulated(OUTCOME, one=48.9), measurements=(*OUTCOME.measurements, figure))
    lines = shown(replace(DONE, report=Report(REQUEST, outcome=heard)), FAILED)
    assert lines[0].split("  ")[2:4] == ["simulator, dB", "sample, dB"]
    assert [line.split()[:5] for line in lines[1:3]] == [
        ["joe", "done", "48.9", "46.5", "26.1"],
        ["bad", "failed", "-", "-", "-"],
    ]
    assert "sample" not in shown(DONE, FAILED)[0]


def test_many_blocks_tell_what_all_come_to() -> None:
    assert shown(DONE, PAIR, FAILED)[-5:] == [
        "voices:    2 of 3 done",
        "size:      40.4 MB of engines",
        "ms a run:  modelled, not measured on a board",
        "time:      77.2 s for all",
        "memory:    1.5 GB at most for one voice",
    ]
    assert [line.partition(":")[0] for line in shown(REFUSED)[-2:]] == ["voices", "time"]


def test_deliver_shows_the_table_of_many(capsys: pytest.CaptureFixture[str]) -> None:
    assert deliver(Report(REQUEST, 1, "Of 2 voices, 1 failed; 1 done.", parts=(DONE, FAILED))) == 1
    out, err = capsys.readouterr()
    assert out.startswith("voice  status  simulator, dB  ms a run")
    assert err == "error: Of 2 voices, 1 failed; 1 done.\n"
