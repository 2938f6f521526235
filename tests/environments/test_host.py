from __future__ import annotations

from pathlib import Path

import pytest

from environments.host import check_space, system_problem
from environments.trouble import Trouble


def test_system_problem_is_empty_when_linux_x86_64_has_glibc() -> None:
    assert system_problem("linux", "x86_64", "glibc 2.31") == ""


@pytest.mark.parametrize(
    ("system", "machine", "said"),
    [
        ("darwin", "arm64", "this is darwin arm64"),
        ("linux", "aarch64", "this is linux aarch64"),
        ("cygwin", "x86_64", "this is cygwin x86_64"),
    ],
)
def test_system_problem_names_the_system_when_it_is_another(system: str, machine: str, said: str) -> None:
    assert said in system_problem(system, machine, "glibc 2.31")


def test_system_problem_names_glibc_when_the_c_library_is_another() -> None:
    assert "a Linux with glibc is needed" in system_problem("linux", "x86_64", "")


def test_check_space_refuses_when_the_disk_is_too_small(tmp_path: Path) -> None:
    with pytest.raises(Trouble, match=r"the disk is too full: setting up takes about 1000000000300 MB"):
        check_space(tmp_path, 10**12)


def test_check_space_passes_when_there_is_room(tmp_path: Path) -> None:
    check_space(tmp_path, 0)
