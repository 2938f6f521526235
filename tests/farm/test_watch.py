"""Watching a command, in a process of its own, as it changes that process for good."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

WATCHER = """
import dataclasses, json, os, sys
from pathlib import Path
from farm.watch import begin, watch
code, limit_bytes, folder = sys.argv[1:]
begin(os.getppid())
folder = Path(folder)
watched = watch([sys.executable, "-I", "-S", "-c", code], folder, {"A": "B"}, folder / "out", folder / "log",
                int(limit_bytes))
print(json.dumps(dataclasses.asdict(watched)))
"""


def watched(code: str, folder: Path, limit_bytes: int = 10**9) -> dict[str, Any]:
    """What is seen of Python's `code`."""
    words = [sys.executable, "-S", "-c", WATCHER, code, str(limit_bytes), str(folder)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_command_has_its_folder_its_variables_and_no_input(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("before\n", encoding="utf-8")
    (tmp_path / "out").write_text("before\n", encoding="utf-8")
    code = (
        "import os, sys; sys.stderr.write('behind\\n'); print(os.getcwd(), repr(sys.stdin.read()), "
        "os.environ['A'], len(os.environ) <= 2, os.getsid(0) == os.getpid())"
    )
    assert watched(code, tmp_path)["code"] == 0
    assert (tmp_path / "out").read_text(encoding="utf-8") == f"{tmp_path} '' B True True\n"
    assert (tmp_path / "log").read_text(encoding="utf-8") == "before\nbehind\n"


@pytest.mark.parametrize(
    ("code", "ended"),
    [
        ("raise SystemExit(3)", 3),
        ("import os; os.kill(os.getpid(), 9)", -9),
        ("import os; os.kill(os.getpid(), 15)", -15),
    ],
)
def test_end_is_told_by_its_code_or_its_signal(code: str, ended: int, tmp_path: Path) -> None:
    found = watched(code, tmp_path)
    assert (found["code"], found["over"]) == (ended, False)


def test_time_and_memory_are_of_all_its_processes(tmp_path: Path) -> None:
    child = "import time; data = bytearray(b'x') * (60 << 20); time.sleep(0.8)"
    code = (
        "import subprocess, sys, time\n"
        f"two = [subprocess.Popen([sys.executable, '-I', '-S', '-c', {child!r}]) for _ in range(2)]\n"
        "while time.process_time() < 0.4: pass\n"
        "[one.wait() for one in two]"
    )
    found = watched(code, tmp_path)
    assert 120 << 20 < found["peak_bytes"] < 200 << 20
    assert found["cpu_s"] >= 0.4
    assert found["wall_s"] >= 0.8


@pytest.mark.parametrize(
    ("deaf", "ended"), [("", -15), ("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);", -9)]
)
def test_command_is_ended_when_it_takes_more_memory_than_it_may(deaf: str, ended: int, tmp_path: Path) -> None:
    code = f"{deaf}import time; data = bytearray(b'x') * (60 << 20); time.sleep(600)"
    found = watched(code, tmp_path, limit_bytes=50 << 20)
    assert (found["code"], found["over"]) == (ended, True)
    assert found["peak_bytes"] > 50 << 20
