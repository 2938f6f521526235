"""Children that end: by themselves, told, by force, and with us."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rknn_tts import many_processes
from rknn_tts.many_processes import Running, end, start

ROOT = Path(__file__).resolve().parents[2]


def wait_for(path: Path) -> str:
    """What the file `path` holds once somebody has written it, with a line end."""
    while not (path.is_file() and path.read_text().endswith("\n")):
        time.sleep(0.01)
    return path.read_text()


def is_gone(pid: int) -> bool:
    """Whether it has ended; one that nobody has taken note of has."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state in ("Z", "X")


def child_that(lines: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Running:
    (folder / "child.py").write_text(f"import os, signal, sys, time\nfrom pathlib import Path\n{lines}")
    monkeypatch.setattr(many_processes, "CHILD", folder / "child.py")
    return start(["engine", "a b"], folder, "7")


def test_start_runs_the_words_and_keeps_both_streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "print(sys.argv[1:], os.getpgrp() == os.getpid())\nprint('told', file=sys.stderr)\nsys.stdin.read()"
    running = child_that(lines, tmp_path, monkeypatch)
    assert running.process.wait(60) == 0
    assert running.out == tmp_path / "7.out"
    assert running.out.read_text() == f"['{os.getpid()}', 'engine', 'a b'] True\n"
    assert running.err.read_text() == "told\n"


def test_start_runs_a_command_of_rknn_tts(tmp_path: Path) -> None:
    running = start(["--version"], tmp_path, "v")
    assert running.process.wait(60) == 0
    assert running.out.read_text().startswith("rknn-tts ")


@pytest.mark.parametrize("deaf", [False, True])
def test_end_leaves_nothing_of_its_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deaf: bool) -> None:
    monkeypatch.setattr(many_processes, "TERM_PERIOD_S", 0.3)
    lines = f"""
if {deaf}:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
pid = os.fork()
if pid:
    Path({str(tmp_path)!r}, "pid").write_text(f"{{pid}}\\n")
time.sleep(60)
"""
    running = child_that(lines, tmp_path, monkeypatch)
    below = int(wait_for(tmp_path / "pid"))
    end([running])
    assert running.process.returncode == (-9 if deaf else -15)
    deadline = time.monotonic() + 30
    while not is_gone(below) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert is_gone(below)
    end([running])  # of one that has ended: nothing


def test_child_does_nothing_when_whoever_started_it_is_gone_already(tmp_path: Path) -> None:
    child = ROOT / "rknn_tts" / "many_child.py"
    done = subprocess.run(  # nobody's id
        [sys.executable, "-I", str(child), "-1", "--version"], capture_output=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (130, b"")
