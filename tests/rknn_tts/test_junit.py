from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from contracts.errors import GateFailure, Refusal, ToolFailure, UserInput
from contracts.verdicts import at_least, failure
from rknn_tts.junit import check_junit_path, junit_xml
from rknn_tts.report import Part, Report, report_of_failure
from tests.rknn_tts.samples import OUTCOME, REPORT, REQUEST, VERDICTS


def suite_of(report: Report) -> ET.Element:
    found = ET.fromstring(junit_xml(report)).find("testsuite")
    assert found is not None
    return found


def test_junit_has_a_case_a_verdict_when_the_command_is_done() -> None:
    suite = suite_of(REPORT)
    cases = suite.findall("testcase")
    assert [case.get("name") for case in cases] == [verdict.gate for verdict in VERDICTS]
    assert {case.get("classname") for case in cases} == {"piper.decoder"}
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors"), suite.get("skipped")) == (
        "4",
        "0",
        "0",
        "1",
    )
    skipped = cases[3].find("skipped")
    assert skipped is not None
    assert (skipped.get("message") or "").startswith("unproven: measured 355 lines. lite 0x1028")
    assert cases[1].findtext("system-out") == (
        "measured 98.21 dB, threshold 95 dB. Worst interior window of white noise, 300 frames."
    )


def test_junit_has_a_failure_and_no_error_when_a_gate_failed() -> None:
    verdicts = (*VERDICTS, at_least("simulator.window", float("nan"), 40.0, "dB", "One real window."))
    suite = suite_of(report_of_failure(REQUEST, GateFailure("Not written.", verdicts), "piper.decoder"))
    (failed,) = suite.iter("failure")
    assert failed.get("message") == "measured nan dB, threshold 40 dB. One real window."
    assert suite.get("errors") == "0"


@pytest.mark.parametrize(
    "error",
    [Refusal("No such thing."), UserInput("Wrong."), ToolFailure("It broke."), KeyboardInterrupt(), KeyError("k")],
)
def test_junit_has_one_error_when_nothing_was_judged(error: BaseException) -> None:
    report = report_of_failure(REQUEST, error, "piper.decoder")
    suite = suite_of(report)
    (case,) = suite.findall("testcase")
    found = case.find("error")
    assert found is not None
    assert (case.get("classname"), case.get("name"), found.get("message")) == ("piper.decoder", "engine", report.error)
    assert (suite.get("tests"), suite.get("errors")) == ("1", "1")


def test_junit_is_well_formed_when_a_text_has_what_xml_cannot_hold() -> None:
    verdicts = (failure("log.unknown", "\x1b[31m<&>\x00 \ud800 größe", "]]>"),)
    text = junit_xml(Report(REQUEST, 1, "x", replace(OUTCOME, verdicts=verdicts)))
    assert "größe" in (ET.fromstring(text).findtext(".//failure") or "")


def test_junit_path_is_ready_when_its_folder_was_missing(tmp_path: Path) -> None:
    check_junit_path(tmp_path / "reports" / "x.xml")
    assert list((tmp_path / "reports").iterdir()) == []


def test_junit_path_is_refused_when_it_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UserInput, match="is a folder"):
        check_junit_path(tmp_path)


@pytest.mark.parametrize(
    ("content", "refused"),
    [(b"", False), (junit_xml(Report(REQUEST)), False), (b"\x08\x09\x12\x07pytorch", True), (b'{"audio": {}}', True)],
)
def test_junit_path_is_refused_when_it_holds_no_report(tmp_path: Path, content: bytes, refused: bool) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    if refused:
        with pytest.raises(UserInput, match="holds no XML, and would be replaced"):
            check_junit_path(path)
    else:
        check_junit_path(path)
    assert path.read_bytes() == content


def test_junit_path_is_refused_when_its_folder_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserInput, match="cannot be written"):
        check_junit_path(tmp_path / "file" / "x.xml")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_junit_path_is_refused_when_its_folder_is_read_only(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UserInput, match="cannot be written"):
        check_junit_path(tmp_path / "x.xml")


def test_junit_has_a_suite_for_each_checkpoint_of_many() -> None:
    ours = Report(replace(REQUEST, checkpoint="v/a.onnx"), outcome=OUTCOME, subject="a")
    refused = report_of_failure(replace(REQUEST, checkpoint="v/b.onnx"), Refusal("No such thing."), "b")
    parts = (Part("a", ours, 1.0, 0), Part("b", refused, 1.0, 0))
    suites = ET.fromstring(junit_xml(Report(REQUEST, 2, "Of 2 voices, 1 refused.", parts=parts)))
    assert [suite.get("name") for suite in suites] == ["rknn-tts engine v/a.onnx", "rknn-tts engine v/b.onnx"]
    assert [(suite.get("tests"), suite.get("errors")) for suite in suites] == [("4", "0"), ("1", "1")]
    assert (suites.get("tests"), suites.get("errors"), suites.get("skipped")) == ("5", "1", "1")
    assert [case.get("classname") for case in suites.iter("testcase")] == ["a"] * 4 + ["b"]
