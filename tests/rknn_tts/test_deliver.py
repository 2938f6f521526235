"""Where a report goes: its streams, its exit code, and its JUnit file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from rknn_tts.deliver import deliver
from rknn_tts.report import Report
from rknn_tts.request import Request
from tests.rknn_tts.samples import ENGINE, REPORT, REQUEST

FAILED = Report(REQUEST, exit_code=1, error="Not written: a gate failed.")


def test_deliver_prints_results_to_one_stream_and_errors_to_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert deliver(REPORT) == 0
    done = capsys.readouterr()
    assert ENGINE in done.out
    assert done.err == ""
    assert deliver(FAILED) == 1
    failed = capsys.readouterr()
    assert failed.out == ""
    assert "error: Not written: a gate failed." in failed.err


@pytest.mark.parametrize("report", [REPORT, FAILED])
def test_deliver_prints_one_json_object_however_the_command_ended(
    report: Report, capsys: pytest.CaptureFixture[str]
) -> None:
    deliver(replace(report, request=replace(REQUEST, json=True)))
    data = json.loads(capsys.readouterr().out)
    assert (data["exit_code"], data["error"]) == (report.exit_code, report.error)


def test_deliver_writes_the_junit_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "report.xml"
    assert deliver(replace(REPORT, request=replace(REQUEST, junit=str(path)))) == 0
    cases = ET.parse(path).getroot().iter("testcase")
    assert [case.get("name") for case in cases] == [verdict.gate for verdict in REPORT.outcome.verdicts]


def test_deliver_fails_when_the_junit_file_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gone" / "report.xml"
    path.parent.write_text("no folder")
    request = replace(REQUEST, junit=str(path))
    assert deliver(replace(REPORT, request=request)) == 1
    said = capsys.readouterr()
    assert ENGINE in said.out
    assert f"--junit {path}: the report could not be written (" in said.err
    assert deliver(replace(FAILED, request=request, exit_code=2)) == 2
    assert "Not written: a gate failed." in capsys.readouterr().err


def test_deliver_spoils_no_file_when_the_command_was_refused_for_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"\x08\x08")
    deliver(replace(FAILED, request=replace(REQUEST, junit=str(path))))
    assert path.read_bytes() == b"\x08\x08"


@pytest.mark.parametrize("command", ["inspect", "diff", "families", "passes", "doctor", "clean"])
def test_deliver_shows_nothing_of_a_command_that_found_nothing(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert deliver(Report(Request(command), exit_code=2, error="No.")) == 2
    assert capsys.readouterr().out == ""


def test_deliver_is_silent_when_its_reader_has_gone(pytestconfig: pytest.Config) -> None:
    program = (
        "import sys\n"
        "from rknn_tts.deliver import deliver\n"
        "from tests.rknn_tts.samples import REPORT\n"
        "sys.exit(deliver(REPORT))\n"
    )
    reader, writer = os.pipe()
    os.close(reader)
    root = pytestconfig.rootpath
    paths = {"PYTHONPATH": f"{root}:{root / 'runtime'}"}
    ended = subprocess.run([sys.executable, "-c", program], stdout=writer, stderr=subprocess.PIPE, env=paths)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.parametrize("as_json", [False, True])
def test_result_that_cannot_be_printed_is_a_failure_in_one_sentence(pytestconfig: pytest.Config, as_json: bool) -> None:
    program = (
        "import sys\n"
        "from dataclasses import replace\n"
        "from rknn_tts.deliver import deliver\n"
        "from tests.rknn_tts.samples import REPORT\n"
        f"sys.exit(deliver(replace(REPORT, request=replace(REPORT.request, json={as_json}))))\n"
    )
    root = pytestconfig.rootpath
    paths = {"PYTHONPATH": f"{root}:{root / 'runtime'}"}
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run([sys.executable, "-c", program], stdout=full, stderr=subprocess.PIPE, env=paths)
    assert ended.returncode == 1
    told, *others = ended.stderr.decode().splitlines()
    assert told == "error: The result could not be printed (No space left on device); all else is done."
    assert [line.split(":")[0] for line in others] == ["log"]
