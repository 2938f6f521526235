"""What is read from /proc, on processes made here."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from engine.processes import descendants, resident_bytes

MEGABYTE = 1 << 20


def test_descendants_are_found_with_their_memory_when_they_are_nested() -> None:
    """A child named like a line of /proc/PID/stat, and its own child, which holds 50 MB."""
    inner = "import os, time; data = bytearray(os.urandom(50 << 20)); print(os.getpid(), flush=True); time.sleep(99)"
    outer = (
        "import ctypes, subprocess, sys\n"
        "ctypes.CDLL(None).prctl(15, b') R 1 (x y', 0, 0, 0)\n"  # PR_SET_NAME
        f"child = subprocess.Popen([sys.executable, '-c', {inner!r}])\n"
        "sys.stdin.read(); child.kill(); child.wait()"
    )
    with subprocess.Popen([sys.executable, "-c", outer], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        grandchild = int(child.stdout.readline())
        found = [process for process in descendants(os.getpid()) if process.pid in (child.pid, grandchild)]
        child.communicate()
    assert [(process.pid, process.parent) for process in found] == [
        (child.pid, os.getpid()),
        (grandchild, child.pid),
    ]
    assert 50 * MEGABYTE < resident_bytes(found[1:]) < 100 * MEGABYTE
    assert not any(process.zombie for process in found)


def test_descendants_say_so_when_one_has_ended_and_is_not_waited_for() -> None:
    with subprocess.Popen(["true"]) as child:
        deadline_s = time.monotonic() + 5
        while not (found := [p for p in descendants(os.getpid()) if p.pid == child.pid and p.zombie]):
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
    assert resident_bytes(found) == 0


@pytest.mark.parametrize("pid", [2**22 + 1, 0xFFFFFFF])
def test_descendants_are_none_when_there_is_no_such_process(pid: int) -> None:
    assert descendants(pid) == []
