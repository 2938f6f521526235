"""The warden by itself; what its caller makes of it is tested with the children (test_child.py, test_build_faults.py).

Each test talks to a real one over its three descriptors, as `engine.child` does.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

GRACE_S = 0.3
SOON_S = 20.0


class Warden:
    """One that runs, and the end of its status pipe that is ours."""

    def __init__(self, process: subprocess.Popen[bytes], status_fd: int) -> None:
        self.process, self._status_fd = process, status_fd
        assert process.stdin is not None
        assert process.stdout is not None
        self.lifeline, self.log = process.stdin, process.stdout

    def status(self) -> dict[str, Any] | None:
        """What it wrote when it ended; None where it wrote nothing."""
        self.process.wait(SOON_S)
        text = os.read(self._status_fd, 1 << 16)
        return json.loads(text) if text else None


@contextmanager
def warden(root: Path, folder: Path, *command: str) -> Iterator[Warden]:
    status_fd, write_fd = os.pipe()
    program = [sys.executable, "-I", "-S", str(root / "engine" / "warden.py")]
    process = subprocess.Popen(
        [*program, str(folder), str(write_fd), str(GRACE_S), *command],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[write_fd], bufsize=0,
    )  # fmt: skip
    os.close(write_fd)
    made = Warden(process, status_fd)
    try:
        yield made
    finally:
        made.lifeline.close()
        process.wait(SOON_S)
        made.log.close()
        os.close(status_fd)


def python(code: str) -> tuple[str, ...]:
    return sys.executable, "-I", "-S", "-u", "-c", code


def is_alive(pid: int) -> bool:
    """Whether it runs; one that nobody has taken note of does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def ends(pid: int) -> bool:
    deadline_s = time.monotonic() + SOON_S
    while is_alive(pid) and time.monotonic() < deadline_s:
        time.sleep(0.01)
    return not is_alive(pid)


@pytest.mark.parametrize(
    ("code", "wait_status"),
    [
        ("pass", 0),
        ("import os; os._exit(7)", 7 << 8),  # wait(2): the exit code in the upper byte
        ("import os; os.kill(os.getpid(), 9)", 9),
        ("import os; os.kill(os.getpid(), 15)", 15),
    ],
)
def test_warden_writes_how_its_command_ended(
    pytestconfig: pytest.Config, tmp_path: Path, code: str, wait_status: int
) -> None:
    with warden(pytestconfig.rootpath, tmp_path, *python(code)) as started:
        status = started.status()
        assert status is not None
        assert (status["wait_status"], status["survivors"], status["error"]) == (wait_status, 0, None)
        assert started.process.returncode == 0


def test_warden_runs_its_command_in_the_folder_and_counts_its_time(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    code = "import os, time; print(os.getcwd())\nwhile time.process_time() < 0.3: pass"
    with warden(pytestconfig.rootpath, tmp_path, *python(code)) as started:
        assert started.log.readline().decode().strip() == str(tmp_path)
        status = started.status()
        assert status is not None
        assert status["cpu_s"] >= 0.3


@pytest.fixture
def small_stack() -> Iterator[int]:
    """The most that a stack may have, where ours shall have less than is usual."""
    soft, most = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (4 << 20, most))
    yield most
    resource.setrlimit(resource.RLIMIT_STACK, (soft, most))


def test_command_has_the_usual_stack_when_ours_has_another(
    pytestconfig: pytest.Config, tmp_path: Path, small_stack: int
) -> None:
    code = "import resource; print(*resource.getrlimit(resource.RLIMIT_STACK))"
    with warden(pytestconfig.rootpath, tmp_path, *python(code)) as started:
        assert started.log.readline().decode().split() == [str(8 << 20), str(small_stack)]
        started.status()


def test_warden_says_why_a_command_could_not_be_started(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    with warden(pytestconfig.rootpath, tmp_path, "/nowhere/program") as started:
        status = started.status()
        assert status is not None
        assert (status["wait_status"], status["error"]) == (None, "/nowhere/program: No such file or directory")


def test_warden_ends_what_a_command_left_running_in_a_session_of_its_own(
    pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    left = "import os, subprocess, sys; print(subprocess.Popen(['sleep', '9999'], start_new_session=True).pid)"
    with warden(pytestconfig.rootpath, tmp_path, *python(left)) as started:
        pid = int(started.log.readline())
        status = started.status()
        assert status is not None
        assert status["wait_status"] == 0
        assert ends(pid)


@pytest.mark.parametrize("deaf", [False, True])
def test_warden_ends_a_command_when_it_is_told_to(pytestconfig: pytest.Config, tmp_path: Path, deaf: bool) -> None:
    ignore = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" if deaf else ""
    code = f"{ignore}import os, time; print(os.getpid()); time.sleep(9999)"
    with warden(pytestconfig.rootpath, tmp_path, *python(code)) as started:
        started.log.readline()
        started.lifeline.write(b"s")
        status = started.status()
        assert status is not None
        assert status["wait_status"] == (signal.SIGKILL if deaf else signal.SIGTERM)
        assert tmp_path.is_dir()


def test_warden_ends_everything_and_clears_up_when_whoever_started_it_is_gone(
    pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "half").write_text("written")
    code = "import os, time; print(os.getpid()); time.sleep(9999)"
    with warden(pytestconfig.rootpath, folder, *python(code)) as started:
        pid = int(started.log.readline())
        started.lifeline.close()
        assert started.status() is None
        assert started.process.returncode == 1
        assert ends(pid)
        assert not folder.exists()
        assert tmp_path.is_dir()


def test_command_dies_with_the_warden(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    code = "import os, time; print(os.getpid()); time.sleep(9999)"
    with warden(pytestconfig.rootpath, tmp_path, *python(code)) as started:
        pid = int(started.log.readline())
        started.process.kill()
        assert ends(pid)
