from __future__ import annotations

import json
from pathlib import Path

import pytest

from contracts.errors import Shortage
from engine.child import private_folder
from farm.command_report import CommandReport, read_command_report
from rknn_tts.outcome import Outcome
from rknn_tts.report import Report, report_json
from rknn_tts.request import Request


def test_report_of_rknn_tts_is_read(tmp_path: Path) -> None:
    outcome = Outcome(("a.onnx", "/b/host.onnx"), None, (), (), (), ("export", "graph"), models=("a.onnx",))
    report = Report(Request("export"), 1, "It failed.", outcome, shortage=Shortage.DISK)
    (tmp_path / "report.json").write_text(report_json(report), encoding="utf-8")
    assert read_command_report(tmp_path / "report.json", Path("/folder")) == CommandReport(
        error="It failed.",
        shortage=Shortage.DISK,
        files=(Path("/folder/a.onnx"), Path("/b/host.onnx")),
        models=(Path("/folder/a.onnx"),),
        reused=("export", "graph"),
    )


def test_report_may_leave_out_what_there_is_not(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text(json.dumps({"exit_code": 0}), encoding="utf-8")
    assert read_command_report(tmp_path / "report.json", Path("/folder")) == CommandReport(None, None, (), (), ())


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"{", b'{"exit_code": "0"}', b"\xff", b"No.\n{}"])
def test_there_is_no_report_when_it_is_none(content: bytes) -> None:
    with private_folder() as folder:
        (folder / "report.json").write_bytes(content)
        assert read_command_report(folder / "report.json", folder) is None
