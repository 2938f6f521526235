from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path

from tests.environments.stubs import Machine


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} never appeared"
        time.sleep(0.02)


def test_create_prints_only_the_python_when_a_script_asks_for_it(machine: Machine) -> None:
    machine.add()
    done = machine.create("rknn-2.3.2", "--print-python")
    assert (done.returncode, done.stdout) == (0, f"{machine.root}/.venv-rknn-2.3.2/bin/python\n")


def test_create_sets_up_each_when_several_are_named(machine: Machine) -> None:
    machine.add()
    assert machine.create("toolchain", "rknn").returncode == 0
    assert machine.pip_locks() == ["toolchain", "rknn-2.3.2"]


def test_create_ends_with_one_sentence_and_status_2_when_only_3_13_is_there(machine: Machine) -> None:
    machine.add("python3", "3.13.0")
    done = machine.create("toolchain")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("rknn-tts: CPython 3.10, 3.11 or 3.12 is needed")
    assert done.stderr.count("\n") == 1


def test_create_ends_with_status_2_when_the_toolkit_has_no_lock(machine: Machine) -> None:
    done = machine.create("rknn-1.0")
    assert done.returncode == 2
    assert "requirements/ has 2.3.2, 2.5.0" in done.stderr


def test_create_gives_the_bare_sentence_when_a_script_asks_for_the_python(machine: Machine) -> None:
    done = machine.create("rknn-1.0", "--print-python")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("there is no lock for rknn-toolkit2 1.0")


def start(machine: Machine, go_on: Path) -> subprocess.Popen[str]:
    """Starts a set-up whose pip waits until there is a file `go_on`."""
    environ = machine.environ(STUB_UNTIL=str(go_on))
    return subprocess.Popen(machine.command("toolchain"), env=environ, stderr=subprocess.PIPE, text=True)


def first_line(setup: subprocess.Popen[str]) -> str:
    """What it says first, as soon as it does."""
    assert setup.stderr is not None
    return setup.stderr.readline()


def test_create_installs_once_when_two_run_at_the_same_time(machine: Machine, tmp_path: Path) -> None:
    machine.add()
    go_on = tmp_path / "go on"
    with start(machine, go_on) as first:
        wait_for(machine.calls)
        with start(machine, go_on) as second:
            waiting = first_line(second)
            go_on.touch()
            second.communicate(timeout=30)
        first.communicate(timeout=30)
    assert (first.returncode, second.returncode) == (0, 0)
    assert f"to end (process {first.pid} on {socket.gethostname()})..." in waiting
    assert machine.pip_locks() == ["toolchain"]


def test_create_installs_once_in_the_folder_of_the_node_when_eight_jobs_start_there(
    machine: Machine, tmp_path: Path
) -> None:
    machine.add()
    node, go_on = tmp_path / "node's disk" / "rknn", tmp_path / "go on"
    environ = machine.environ(RKNN_TTS_ENVIRONMENTS=str(node), STUB_UNTIL=str(go_on))
    before = {path.name for path in machine.root.iterdir()}
    jobs = [
        subprocess.Popen(
            machine.command("rknn-2.3.2", "--print-python"),
            env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(8)
    ]  # fmt: skip
    wait_for(machine.calls)
    waiting = [job for job in jobs if "waiting for another set-up" in first_line(job)]
    go_on.touch()
    said = {job.communicate(timeout=30)[0] for job in jobs}
    # sha256sum of that lock's line, the first 8 digits.
    assert said == {f"{node}/.venv-rknn-2.3.2-5f6fea7d/bin/python\n"}
    assert [job.returncode for job in jobs] == [0] * 8
    assert len(waiting) == 7
    assert machine.pip_locks() == ["rknn-2.3.2"]
    assert {path.name for path in machine.root.iterdir()} - {"environments"} == before - {"environments"}
    assert (node / "build-logs" / "setup-rknn-2.3.2.log").is_file()


def test_create_waits_for_the_orphaned_pip_and_repairs_when_the_first_was_killed(
    machine: Machine, tmp_path: Path
) -> None:
    machine.add()
    go_on = tmp_path / "go on"
    with start(machine, go_on) as first:
        wait_for(machine.calls)
        first.kill()
        first.wait()
        with start(machine, go_on) as second:
            waiting = first_line(second)
            go_on.touch()
            _, rest = second.communicate(timeout=30)
    assert second.returncode == 0
    assert "waiting for another set-up" in waiting
    assert "again, because its set-up did not finish" in rest.split("\n")[0]
    assert machine.pip_locks() == ["toolchain", "toolchain"]
