"""The command line: exit codes, and one sentence for each thing that is wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import rknn_tts_runtime
from rknn_tts_runtime import __main__, cli
from rknn_tts_runtime.cli import COMMANDS, main
from rknn_tts_runtime.commands import check
from rknn_tts_runtime.faults import BadInput, RunFault

RUNTIME = Path(rknn_tts_runtime.__file__).parents[1]


def test_module_runs_as_a_program_that_lists_its_commands() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rknn_tts_runtime", "--help"], cwd=RUNTIME, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    for name in COMMANDS:
        assert f"\n    {name} " in done.stdout


@pytest.mark.parametrize("arguments", [[], ["sing"], ["say"], ["check"], ["bench"], ["check", "--no", "a.json"]])
def test_main_refuses_what_is_no_command(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: python -m rknn_tts_runtime" in capsys.readouterr().err


def test_main_refuses_two_hyphens_as_a_value(capsys: pytest.CaptureFixture[str]) -> None:
    # argparse before Python 3.13 takes `--=`'s value away and leaves a list; later ones hand "--" on, and that is told.
    assert main(["check", "gone.json", "--library=--"]) == 2
    assert main(["say", "--plan", "gone.json", "--out", "x.wav", "--text=--", "--family=--"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert [line.startswith("refused: ") for line in said] == [True, True]


@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [
        (BadInput("a.json: is no plan."), 2, "refused: a.json: is no plan.\n"),
        (RunFault("a.rknn: the driver refused it.", -4), 1, "error: a.rknn: the driver refused it.\n"),
        (KeyboardInterrupt(), 130, "error: interrupted\n"),
        (OSError(28, "No space left on device"), 1, "error: No space left on device.\n"),
        (OSError(36, "File name too long", "aa"), 1, "error: aa: File name too long.\n"),
        (MemoryError(), 1, "error: This machine has not enough memory for that.\n"),
    ],
)
def test_main_ends_with_the_code_of_what_was_wrong(
    fault: BaseException, code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(arguments: object) -> int:
        raise fault

    monkeypatch.setattr(check, "run", broken)
    assert main(["check", "a.json"]) == code
    assert capsys.readouterr().err == said


def test_main_refuses_a_plan_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path / "gone.json")]) == 2
    said = capsys.readouterr().err
    assert said.startswith("refused: ")
    assert "gone.json" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(("shut", "code"), [(">&-", 0), ("2>&-", 0), (">/dev/full", 1), ("--no 2>/dev/full", 2)])
def test_program_ends_without_a_traceback_where_nothing_can_be_written(shut: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text('{"sanotts.exec_plan": {"decoder": {"impl": "neon"}}}')
    line = f'exec "$0" -m rknn_tts_runtime check --backend onnx "$1" {shut}'
    done = subprocess.run(
        ["/bin/sh", "-c", line, sys.executable, str(tmp_path / "plan.json")],
        cwd=RUNTIME, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    assert done.returncode == code


def test_program_that_is_interrupted_while_it_is_loaded_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(arguments: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "main", interrupted)
    assert __main__.run() == 130
    assert capsys.readouterr().err == "error: interrupted\n"
