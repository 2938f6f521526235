"""What is checked before a command does anything, and that whatever goes wrong ends as a report."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from pathlib import Path

import pytest

from contracts.errors import UserInput
from rknn_tts import pipeline
from rknn_tts.commands import check_complete, perform, resolve_subject
from rknn_tts.progress import PlainSay, Say
from rknn_tts.request import Option, Request

COMPILE = Request("compile", model="a/net.onnx", target="rk3588")


def flag(option: Option) -> str:
    return option.flag


def variable(option: Option) -> str:
    return option.variable


def say() -> Say:
    return PlainSay(io.StringIO())


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        (replace(COMPILE, target=None), "compile needs --target. The SoC"),
        (replace(COMPILE, target=""), "compile needs --target. The SoC"),
        (replace(COMPILE, output=""), "--output is empty; leave it out, or say what it is. Where"),
        (Request("engine", family="kokoro", target="rk3588", sample=""), "--sample is empty; leave it out"),
        (replace(COMPILE, timeout_s=0.0), "--timeout cannot be 0; it must lie above 0 and below 1e+09. Stop"),
        (replace(COMPILE, timeout_s=-5.0), "--timeout cannot be -5;"),
        (replace(COMPILE, memory_gb=math.nan), "--memory cannot be nan;"),
        (replace(COMPILE, memory_gb=math.inf), "--memory cannot be inf;"),
        (Request("engine", family="piper", target="rk3588", jobs=0), "--jobs cannot be 0; it must lie above 0 "),
        (Request("export", family="piper", checkpoint="v/*.onnx", jobs=-2), "--jobs cannot be -2;"),
        (Request("engine", target="rk3588"), "engine needs "),
    ],
)
def test_check_complete_names_the_option_as_the_user_writes_it(request_: Request, sentence: str) -> None:
    with pytest.raises(UserInput) as caught:
        check_complete(request_, flag)
    assert str(caught.value).startswith(sentence)


def test_check_complete_names_the_variable_under_make() -> None:
    with pytest.raises(UserInput, match=r"^compile needs TARGET\. "):
        check_complete(replace(COMPILE, target=None), variable)
    check_complete(replace(COMPILE, timeout_s=1e8, memory_gb=0.5), variable)


@pytest.mark.parametrize(
    ("request_", "subject"),
    [
        (COMPILE, "net"),
        (Request("engine", family="piper", target="rk3588"), "piper.decoder"),
        (Request("doctor"), "rknn-tts"),
    ],
)
def test_resolve_subject_is_the_stage_or_the_stem(request_: Request, subject: str) -> None:
    assert resolve_subject(request_) == subject


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (replace(COMPILE, target="rk3558"), "Did you mean rk3588?"),
        (Request("engine", family="pipper"), "Did you mean piper?"),
        (Request("engine", family="piper", stage="decodr"), "Did you mean decoder?"),
        (replace(COMPILE, target="zzzz"), "rk3588"),  # no near one: all are listed
    ],
)
def test_resolve_subject_helps_when_a_word_is_unknown(request_: Request, said: str) -> None:
    with pytest.raises(UserInput) as caught:
        resolve_subject(request_)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("error", "exit_code", "sentence"),
    [
        (UserInput("No."), 2, "No."),
        (KeyboardInterrupt(), 130, "Interrupted"),
        (ZeroDivisionError("division by zero"), 1, "rknn-tts itself failed (ZeroDivisionError: division by zero)"),
    ],
)
def test_perform_reports_when_a_command_ends_in_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, exit_code: int,
    sentence: str,
) -> None:  # fmt: skip
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(pipeline, "compile_onnx", fails)
    monkeypatch.delenv("RKNN_TTS_TRACEBACK", raising=False)
    report = perform(COMPILE, say(), flag)
    assert (report.exit_code, report.subject) == (exit_code, "net")
    assert (report.error or "").startswith(sentence)
    monkeypatch.setenv("RKNN_TTS_TRACEBACK", "1")
    assert capsys.readouterr().err == ""
    perform(COMPILE, say(), flag)
    assert ("Traceback" in capsys.readouterr().err) is (exit_code != 2)


def test_perform_does_nothing_when_the_report_could_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "compile_onnx", lambda *_: pytest.fail("it ran"))
    report = perform(replace(COMPILE, junit=str(tmp_path)), say(), flag)
    assert (report.exit_code, report.error) == (2, f"--junit {tmp_path}: is a folder; name a file in it.")


def test_perform_lists_families_and_passes() -> None:
    families = perform(Request("families"), say(), flag).extra["families"]
    assert {"piper"} <= {entry["family"] for entry in families}
    passes = perform(Request("passes"), say(), flag).extra["passes"]
    assert len({entry["name"] for entry in passes}) == len(passes) > 20
    assert all(entry["summary"] and entry["why"] and entry["bound"] for entry in passes)
