from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.environments.stubs import REPOSITORY, Machine

# What the launcher calls; /usr/bin itself would bring a real Python onto the machine.
TOOLS = ("sha256sum", "grep", "dirname", "readlink")
MAIN = """
import sys

def main():
    print(sys.argv)
    return 7
"""


@pytest.fixture
def launcher(machine: Machine) -> Path:
    """The launcher in a checkout whose command line prints its arguments and returns 7."""
    for tool in TOOLS:
        found = shutil.which(tool, path="/usr/bin:/bin")
        assert found
        (machine.bin / tool).symlink_to(found)
    (machine.root / "rknn_tts").mkdir()
    (machine.root / "rknn_tts" / "__init__.py").touch()
    (machine.root / "rknn_tts" / "cli.py").write_text(MAIN)
    return Path(shutil.copy(REPOSITORY / "rknn-tts", machine.root))


def run(machine: Machine, launcher: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    # A module of the same name there must not come before the project's.
    (machine.root.parent / "shadow" / "rknn_tts").mkdir(parents=True, exist_ok=True)
    (machine.root.parent / "shadow" / "rknn_tts" / "__init__.py").write_text("raise SystemExit(99)")
    environ = machine.environ(PYTHONPATH=str(machine.root.parent / "shadow"))
    return subprocess.run(
        [str(launcher), *arguments], env=environ, cwd=cwd, capture_output=True, text=True, check=False, timeout=60
    )


def test_launcher_sets_up_then_runs_with_arguments_and_status_when_first_called(
    machine: Machine, launcher: Path, tmp_path: Path
) -> None:
    machine.add()
    done = run(machine, launcher, "engine", "a b", "$HOME", cwd=tmp_path)
    assert done.stdout == "['rknn-tts', 'engine', 'a b', '$HOME']\n"
    assert done.returncode == 7
    assert machine.pip_locks() == ["toolchain"]


def test_launcher_starts_no_other_python_when_the_environment_is_current(
    machine: Machine, launcher: Path, tmp_path: Path
) -> None:
    machine.add()
    run(machine, launcher, cwd=tmp_path)
    (machine.bin / "python3.11").unlink()
    done = run(machine, launcher, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (7, "")


@pytest.mark.parametrize("damage", ["lock", "unfinished", "python", "stamp"])
def test_launcher_sets_up_again_when_the_environment_is_not_current(
    machine: Machine, launcher: Path, tmp_path: Path, damage: str
) -> None:
    machine.add()
    run(machine, launcher, cwd=tmp_path)
    venv = machine.root / ".venv"
    if damage == "lock":
        machine.lock("toolchain").write_text("rich==16.0.0\n")
    elif damage == "unfinished":
        (venv / "rknn-tts-unfinished").write_text("")
    elif damage == "python":
        (venv / "bin" / "python").unlink()
    else:
        (venv / "rknn-tts-environment").write_text("format 0\n")
    done = run(machine, launcher, cwd=tmp_path)
    assert done.returncode == 7
    assert machine.pip_locks() == ["toolchain", "toolchain"]


def test_launcher_keeps_going_when_an_extra_is_installed_too(machine: Machine, launcher: Path, tmp_path: Path) -> None:
    machine.add()
    assert machine.create("toolchain+dev").returncode == 0
    (machine.bin / "python3.11").unlink()
    assert run(machine, launcher, cwd=tmp_path).returncode == 7


def test_launcher_finds_its_checkout_when_called_through_links(
    machine: Machine, launcher: Path, tmp_path: Path
) -> None:
    machine.add()
    (tmp_path / "one").symlink_to(launcher)
    (tmp_path / "two").symlink_to("one")
    assert run(machine, tmp_path / "two", cwd=tmp_path).returncode == 7


def test_launcher_works_when_the_path_has_quotes_and_spaces(machine: Machine, launcher: Path, tmp_path: Path) -> None:
    machine.add()
    moved = machine.root.rename(machine.root.parent / 'it\'s "a" $(test)')
    other = Machine(moved, machine.bin, machine.calls)
    assert run(other, moved / launcher.name, "x", cwd=tmp_path).stdout == "['rknn-tts', 'x']\n"


def test_launcher_ends_with_one_sentence_when_there_is_no_python(
    machine: Machine, launcher: Path, tmp_path: Path
) -> None:
    done = run(machine, launcher, cwd=tmp_path)
    assert done.returncode == 2
    assert "no Python 3 on PATH runs" in done.stderr
    assert done.stderr.count("\n") == 1


def test_launcher_passes_the_sentence_on_when_set_up_is_refused(
    machine: Machine, launcher: Path, tmp_path: Path
) -> None:
    machine.add("python3", "3.13.0")
    done = run(machine, launcher, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "python3 is CPython 3.13.0" in done.stderr
    assert done.stderr.count("\n") == 1
