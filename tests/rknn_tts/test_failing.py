from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from contracts.errors import EXIT_FAILED, GateFailure
from contracts.verdicts import at_least, failure, passed, unproven
from rknn_tts.failing import keep_verdicts, stop_if_failed

GOOD = (passed("structure.operators", "fine"), unproven("log.regtask", "only a board can tell"))
BAD = (at_least("fp32.whole", math.nan, 95.0, "dB", "300 frames: not finite."), failure("simulator", "no output"))


def test_stop_if_failed_does_nothing_when_no_verdict_failed(tmp_path: Path) -> None:
    stop_if_failed(GOOD, tmp_path / "x.failed.json", None, "x was not written")
    stop_if_failed((), tmp_path / "x.failed.json", None, "x was not written")
    assert list(tmp_path.iterdir()) == []


def test_stop_if_failed_keeps_every_verdict_and_says_where(tmp_path: Path) -> None:
    kept = tmp_path / "build-logs" / "x.failed.json"
    with pytest.raises(GateFailure) as caught:
        stop_if_failed((*GOOD, *BAD), kept, Path("build-logs/x.log"), "x.rknn was not written")
    assert str(caught.value) == (
        "x.rknn was not written: 2 gates failed (fp32.whole, simulator): 300 frames: not finite."
        f" All verdicts are in {kept}."
    )
    assert caught.value.exit_code == EXIT_FAILED
    assert caught.value.verdicts == (*GOOD, *BAD)
    assert caught.value.log == Path("build-logs/x.log")
    data = json.loads(kept.read_text(encoding="utf-8"), parse_constant=lambda text: pytest.fail(f"{text} is no JSON"))
    assert data["schema"] == "rknn-tts/failed/1"
    assert data["log"] == "build-logs/x.log"
    assert [(v["gate"], v["status"], v["measured"]) for v in data["verdicts"]] == [
        ("structure.operators", "passed", None),
        ("log.regtask", "unproven", None),
        ("fp32.whole", "failed", "nan"),
        ("simulator", "failed", None),
    ]


def test_stop_if_failed_says_one_gate_when_it_is_one(tmp_path: Path) -> None:
    with pytest.raises(GateFailure, match=r"^x was not written: a gate failed \(simulator\): no output\."):
        stop_if_failed(BAD[1:], tmp_path / "x.failed.json", None, "x was not written")


def test_keep_verdicts_names_the_log_when_its_path_is_no_utf_8(tmp_path: Path) -> None:
    log = Path("/Stra\udcdfe/build-logs/x.log")  # in Latin-1, as Python has it
    keep_verdicts(BAD, tmp_path / "x.failed.json", log)
    assert json.loads((tmp_path / "x.failed.json").read_text(encoding="utf-8"))["log"] == str(log)


def test_keep_verdicts_says_why_when_they_cannot_be_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    sentence = keep_verdicts(BAD, tmp_path / "file" / "x.failed.json", None)
    assert "could not be kept" in sentence


def test_stop_if_failed_fails_even_when_the_verdicts_cannot_be_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(GateFailure, match="could not be kept"):
        stop_if_failed(BAD, tmp_path / "file" / "x.failed.json", None, "x was not written")
