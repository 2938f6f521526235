from __future__ import annotations

from pathlib import Path

import pytest

from environments.install import pip_command, pip_environment, start_afresh
from environments.locks import Lock
from environments.stamp import UNFINISHED


def test_pip_environment_keeps_the_users_settings_but_those_that_install_elsewhere() -> None:
    environ = {"PATH": "/bin", "PIP_INDEX_URL": "u", "PIP_CERT": "c", "PIP_TARGET": "t", "PIP_USER": "1"}
    assert pip_environment(environ) == {"PATH": "/bin", "PIP_INDEX_URL": "u", "PIP_CERT": "c"}
    assert len(environ) == 5


@pytest.mark.parametrize("hashed", [True, False])
def test_pip_command_asks_for_exactly_the_lock(tmp_path: Path, hashed: bool) -> None:
    path = tmp_path / "dev.txt"
    command = pip_command(Path("/env/bin/python"), Lock("dev", path, "00", 100, hashed))
    assert command[:5] == ["/env/bin/python", "-I", "-m", "pip", "install"]
    assert command[-2:] == ["-r", str(path)]
    assert "--no-deps" in command
    assert command[command.index("--only-binary") + 1] == ":all:"
    assert ("--require-hashes" in command) is hashed


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
