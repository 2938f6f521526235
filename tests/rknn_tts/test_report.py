from __future__ import annotations

import errno
import json
from dataclasses import replace
from pathlib import Path

import pytest

from contracts.errors import GateFailure, NotWritten, Refusal, Shortage, ToolFailure, UserInput
from contracts.verdicts import at_least
from rknn_tts.report import Part, Report, read_report, report_json, report_of_failure
from tests.rknn_tts.samples import OUTCOME, REPORT, REQUEST, VERDICTS

BEFORE_FILES = ["schema", "request", "exit_code", "error"]
FROM_FILES_ON = ["files", "verdicts", "measurements", "notes", "reused", "log", "manifest"]


def test_report_json_is_one_object_with_the_manifest_when_the_command_is_done() -> None:
    text = report_json(REPORT)
    data = json.loads(text)
    assert text.count("\n") == 1
    assert list(data) == BEFORE_FILES + FROM_FILES_ON
    assert (data["schema"], data["exit_code"], data["error"]) == ("rknn-tts/result/1", 0, None)
    assert data["request"]["target"] == "rk3588"
    assert data["manifest"]["layers"]["modelled_ms"] == 26.1
    assert data["verdicts"][3]["status"] == "unproven"


def test_report_json_has_files_log_and_manifest_of_each_member_of_a_set() -> None:
    whole = replace(OUTCOME, manifest=None, log=None, members=(OUTCOME, replace(OUTCOME, log=None)))
    data = json.loads(report_json(replace(REPORT, outcome=whole)))
    assert list(data) == [*BEFORE_FILES, *FROM_FILES_ON, "members"]
    assert [list(member) for member in data["members"]] == [["files", "log", "manifest"]] * 2
    assert data["members"][0]["files"] == list(OUTCOME.files)
    assert [member["log"] for member in data["members"]] == [OUTCOME.log, None]
    assert data["members"][1]["manifest"] == json.loads(report_json(REPORT))["manifest"]


def test_report_json_has_strings_when_numbers_are_not_finite() -> None:
    verdicts = (at_least("a", float("nan"), 95, "dB"), at_least("b", float("inf"), 95, "dB"))
    text = report_json(replace(REPORT, outcome=replace(OUTCOME, verdicts=verdicts)))
    assert [verdict["measured"] for verdict in json.loads(text)["verdicts"]] == ["nan", "inf"]
    assert json.loads(text)["manifest"]["passes"][0]["snr_db"] == "inf"
    assert "NaN" not in text
    assert "Infinity" not in text


def test_report_json_can_be_written_when_a_name_is_not_unicode() -> None:
    report_json(Report(replace(REQUEST, checkpoint="voice\udcff.onnx"))).encode("ascii")


@pytest.mark.parametrize(
    ("error", "exit_code", "sentence"),
    [
        (UserInput("No such target."), 2, "No such target."),
        (Refusal("An If cannot be compiled."), 2, "An If cannot be compiled."),
        (GateFailure("Not written."), 1, "Not written."),
        (ToolFailure("The toolkit broke."), 1, "The toolkit broke."),
        (KeyboardInterrupt(), 130, "Interrupted: the command was stopped before it was done."),
        (OSError(errno.ENOSPC, "No space left on device", "engines/x"), 1, "engines/x: cannot be written or read (No"),
        (OSError(errno.ENOSPC, "No space left on device"), 1, "The disk is full (No space left on device): free some"),
        (
            OSError(errno.EISDIR, "a folder stands there", "out/x"),
            1,
            "out/x: cannot be written or read (a folder stands",
        ),
        (OSError(errno.ENOTDIR, "Not a directory", "out/x"), 1, "out/x: cannot be written or read (Not a directory)."),
        (OSError(errno.ENAMETOOLONG, "File name too long", "x" * 999), 1, "x" * 300 + ": cannot be written or read ("),
        (KeyError("hop"), 1, "rknn-tts itself failed (KeyError: 'hop'); this is a bug."),
        (RuntimeError("two\nlines."), 1, "rknn-tts itself failed (RuntimeError: two lines); this is a bug."),
        (AssertionError(), 1, "rknn-tts itself failed (AssertionError); this is a bug."),
    ],
)
def test_report_of_failure_is_one_sentence_with_the_exit_code(
    error: BaseException, exit_code: int, sentence: str
) -> None:
    report = report_of_failure(REQUEST, error)
    assert report.exit_code == exit_code
    assert (report.error or "").startswith(sentence)
    assert "\n" not in (report.error or "")


def test_report_of_failure_keeps_verdicts_and_log_when_a_gate_failed() -> None:
    report = report_of_failure(REQUEST, GateFailure("Not written.", VERDICTS, Path("build-logs/x.log")))
    assert (report.outcome.verdicts, report.outcome.log) == (VERDICTS, "build-logs/x.log")
    assert report_of_failure(REQUEST, ToolFailure("x", Path("y.log"))).outcome.log == "y.log"


def caused(error: Exception, cause: Exception) -> Exception:
    """`error`, raised because of `cause`."""
    error.__cause__ = cause
    return error


DISK_FULL = OSError(errno.ENOSPC, "No space left on device", "engines/x.rknn")


@pytest.mark.parametrize(
    ("error", "shortage"),
    [
        (ToolFailure("It held 5 GB.", shortage=Shortage.MEMORY), Shortage.MEMORY),
        (ToolFailure("It could not write.", shortage=Shortage.DISK), Shortage.DISK),
        (caused(ToolFailure("decoder: it held 5 GB."), ToolFailure("x", shortage=Shortage.MEMORY)), Shortage.MEMORY),
        (MemoryError(), Shortage.MEMORY),
        (DISK_FULL, Shortage.DISK),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), Shortage.DISK),
        (caused(NotWritten("engines/x.rknn: cannot be written."), DISK_FULL), Shortage.DISK),
        (caused(UserInput("engines: cannot be written."), DISK_FULL), Shortage.DISK),
        (OSError(errno.EACCES, "Permission denied", "engines/x.rknn"), None),
        (ToolFailure("The toolkit broke."), None),
        (GateFailure("Not written."), None),
        (UserInput("No such target."), None),
        (KeyboardInterrupt(), None),
        (RuntimeError("a bug"), None),
    ],
)
def test_report_says_what_the_machine_lacked_when_that_is_why(error: BaseException, shortage: Shortage | None) -> None:
    report = report_of_failure(REQUEST, error)
    assert report.shortage is shortage
    data = json.loads(report_json(report))
    assert ("shortage" in data) is (shortage is not None)
    assert data.get("shortage") == (shortage.value if shortage else None)
    assert read_report(report_json(report), REQUEST).shortage is shortage


def test_report_json_has_the_models_of_an_export_and_of_nothing_else() -> None:
    models = ("engines/onnx/joe/piper-decoder-w109.onnx",)
    data = json.loads(report_json(replace(REPORT, outcome=replace(OUTCOME, manifest=None, models=models))))
    assert data["models"] == list(models)
    assert "models" not in json.loads(report_json(REPORT))


def test_read_report_gives_what_was_written() -> None:
    of_set = replace(
        OUTCOME, manifest=None, members=(replace(OUTCOME, verdicts=(), measurements=(), notes=(), reused=()),)
    )
    for outcome in (OUTCOME, of_set):
        report = Report(REQUEST, outcome=outcome)
        assert read_report(report_json(report), REQUEST) == report
    failed = report_of_failure(REQUEST, GateFailure("Not written.", [at_least("g", float("inf"), 3.0, "dB")]))
    assert read_report(report_json(failed), REQUEST) == failed


@pytest.mark.parametrize("text", ["", "half of", "[1]", "{}", '{"schema": "rknn-tts/result/1"}'])
def test_read_report_refuses_when_it_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_report(text, REQUEST)


def test_report_json_has_the_object_of_each_checkpoint_of_many() -> None:
    part = Part("joe", replace(REPORT, exit_code=1), 12.5, 1_533_000_000)
    data = json.loads(report_json(Report(REQUEST, 1, "Of 1 voices, 1 failed; 0 done.", parts=(part,))))
    assert (data["exit_code"], data["files"]) == (1, [])
    (result,) = data["results"]
    known = {"voice": "joe", "seconds": 12.5, "peak_memory_bytes": 1_533_000_000}
    assert result == {**json.loads(report_json(part.report)), **known}
