"""Supervision of a child that behaves; test_build_faults.py has those that do not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from contracts.errors import ToolFailure
from engine.child import Cause, ChildResult, Limits, private_folder, run_child

LIMITS = Limits(timeout_s=10.0)


def run(code: str, log: Path, lines: list[str], stop_at: str = "", limits: Limits = LIMITS) -> ChildResult:
    """Runs Python `code`; its lines go to `lines`, and `stop_at` among them stops it."""

    def take(line: str) -> str | None:
        lines.append(line)
        return f"it said {line}" if stop_at and line == stop_at else None

    with private_folder() as folder:
        command = [sys.executable, "-I", "-S", "-u", "-c", code]
        return run_child(command, folder=folder, environment={"A": "B"}, log=log, limits=limits, on_line=take)


def test_child_result_has_exit_code_and_both_outputs_in_order_when_it_ends(tmp_path: Path) -> None:
    lines: list[str] = []
    code = "import os; [os.write(1 + n % 2, b'line %d\\n' % n) for n in range(1000)]; os.write(2, b'rest'); os._exit(7)"
    result = run(code, tmp_path / "log", lines)
    assert (result.exit_code, result.signal, result.cause, result.reason) == (7, None, Cause.ITSELF, None)
    assert lines == [f"line {n}" for n in range(1000)] + ["rest"]
    assert (tmp_path / "log").read_bytes() == b"".join(b"line %d\n" % n for n in range(1000)) + b"rest"


def test_child_sees_closed_stdin_its_own_session_folder_and_environment_when_it_runs(tmp_path: Path) -> None:
    lines: list[str] = []
    code = (
        "import os, sys\n"
        "print(repr(sys.stdin.read()), os.getsid(0) == os.getpid(), os.listdir(), sorted(os.environ))\n"
        "print(oct(os.stat('.').st_mode), sorted(map(int, os.listdir('/proc/self/fd')))[:-1])"
    )
    run(code, tmp_path / "log", lines)
    assert lines[0].startswith("'' True [] ['A'")
    assert lines[1] == "0o40700 [0, 1, 2]"  # nothing of ours stays open in it


def test_child_result_tells_time_and_memory_when_it_used_some(tmp_path: Path) -> None:
    code = (
        "import os, time; data = bytearray(os.urandom(100 << 20)); time.sleep(0.5)\n"
        "while time.process_time() < 0.5: pass"
    )
    result = run(code, tmp_path / "log", [])
    assert result.cpu_s >= 0.5
    assert result.wall_s >= 0.5 + result.cpu_s / 2  # it slept, and then used at most one processor (and we, starting)
    assert 100e6 < result.peak_rss_bytes < 300e6


def test_child_is_stopped_soon_when_its_reader_says_so(tmp_path: Path) -> None:
    """It would go on for hours, and its time limit is hours as well."""
    code = "import time; print('one'); print('two'); time.sleep(9999)"
    result = run(code, tmp_path / "log", [], stop_at="one", limits=Limits(timeout_s=9999.0))
    assert (result.cause, result.reason, result.exit_code) == (Cause.READER, "it said one", None)


def test_child_may_end_by_itself_when_its_reader_has_said_stop(tmp_path: Path) -> None:
    lines: list[str] = []
    code = "import sys, time; print('one'); time.sleep(0.1); print('the reason'); sys.exit(3)"
    result = run(code, tmp_path / "log", lines, stop_at="one", limits=Limits(timeout_s=60.0, settle_s=60.0))
    assert (result.cause, result.reason, result.exit_code) == (Cause.READER, "it said one", 3)
    assert lines == ["one", "the reason"]


def test_child_is_ended_when_its_reader_raises(tmp_path: Path) -> None:
    def take(line: str) -> str | None:
        raise ZeroDivisionError

    with private_folder() as folder, pytest.raises(ZeroDivisionError):
        run_child(
            [sys.executable, "-u", "-c", "import os, time; print(os.getpid()); time.sleep(9999)"],
            folder=folder,
            environment={},
            log=tmp_path / "log",
            limits=Limits(timeout_s=9999.0),
            on_line=take,
        )
    assert not Path(f"/proc/{(tmp_path / 'log').read_text().strip()}").exists()


def test_child_is_ended_when_its_log_cannot_be_written(tmp_path: Path) -> None:
    """/dev/full fails every write with ENOSPC."""
    with pytest.raises(OSError, match="No space left on device"):
        run("import time; print('x'); time.sleep(9999)", Path("/dev/full"), [], limits=Limits(timeout_s=9999.0))


def test_child_failure_names_the_program_when_it_cannot_be_started(tmp_path: Path) -> None:
    with private_folder() as folder, pytest.raises(ToolFailure, match=r"/nowhere/program: No such file"):
        run_child(
            ["/nowhere/program"],
            folder=folder,
            environment={},
            log=tmp_path / "log",
            limits=LIMITS,
            on_line=lambda _: None,
        )
