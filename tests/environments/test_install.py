from __future__ import annotations

from pathlib import Path

from environments.install import pip_command, pip_environment, start_afresh
from environments.locks import Wanted, parse_name
from environments.stamp import UNFINISHED
from tests.environments.stubs import Machine


def test_pip_environment_keeps_the_users_settings_but_those_that_install_elsewhere() -> None:
    environ = {"PATH": "/bin", "PIP_INDEX_URL": "u", "PIP_CERT": "c", "PIP_TARGET": "t", "PIP_USER": "1"}
    assert pip_environment(environ) == {"PATH": "/bin", "PIP_INDEX_URL": "u", "PIP_CERT": "c"}
    assert len(environ) == 5


def wanted_of(machine: Machine, name: str) -> Wanted:
    machine.lock("torch").write_text("# Size: 850 to 5000 MB\ntorch==2.13.0\n")
    return parse_name(machine.root, name)


def test_pip_command_asks_for_exactly_the_lock_when_it_is_hashed(machine: Machine) -> None:
    wanted = wanted_of(machine, "toolchain+dev")
    command = pip_command(wanted, wanted.locks[1])
    assert command[:5] == [f"{machine.root}/.venv/bin/python", "-I", "-m", "pip", "install"]
    assert command[-4:] == ["--no-deps", "--require-hashes", "-r", str(machine.lock("dev"))]
    assert command[command.index("--only-binary") + 1] == ":all:"


def test_pip_command_lets_pip_choose_dependencies_within_the_locks_when_it_is_a_plain_pin(machine: Machine) -> None:
    wanted = wanted_of(machine, "toolchain+torch")
    command = pip_command(wanted, wanted.locks[1])
    constraints = f"{machine.root}/.venv/rknn-tts-constraints.txt"
    assert command[-4:] == ["--constraint", constraints, "-r", str(machine.lock("torch"))]
    assert command[command.index("--only-binary") + 1] == ":all:"
    assert not {"--no-deps", "--require-hashes"} & set(command)


def test_start_afresh_empties_the_folder_but_for_the_mark_and_follows_no_link(tmp_path: Path) -> None:
    folder, theirs = tmp_path / "environment", tmp_path / "theirs"
    (folder / "lib" / "site-packages").mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text("")
    theirs.mkdir()
    (theirs / "kept").write_text("kept")
    (folder / "link").symlink_to(theirs)
    start_afresh(folder)
    assert [path.name for path in folder.iterdir()] == [UNFINISHED]
    assert (theirs / "kept").read_text() == "kept"


def test_start_afresh_makes_the_folder_and_the_mark_when_there_is_none(tmp_path: Path) -> None:
    start_afresh(tmp_path / "deep" / "environment")
    assert [path.name for path in (tmp_path / "deep" / "environment").iterdir()] == [UNFINISHED]
