from __future__ import annotations

import pytest

from environments.pythons import choose, survey
from environments.trouble import Trouble
from tests.environments.stubs import Machine


def test_choose_prefers_3_11_when_all_three_are_there(machine: Machine) -> None:
    machine.add("python3", "3.12.1")
    machine.add("python3.10", "3.10.13")
    best = machine.add("python3.11", "3.11.7")
    assert choose(machine.environ()).executable == str(best)


def test_choose_takes_next_when_a_stand_in_fails_when_run(machine: Machine) -> None:
    machine.add_failing("python3.11")
    other = machine.add("python3.12", "3.12.1")
    assert choose(machine.environ()).executable == str(other)


def test_choose_takes_plain_python3_when_it_is_a_right_one(machine: Machine) -> None:
    plain = machine.add("python3", "3.10.4")
    python = choose(machine.environ())
    assert (python.executable, python.version) == (str(plain), "3.10.4")


def test_choose_takes_named_python_when_variable_is_set(machine: Machine) -> None:
    machine.add("python3.11")
    other = machine.add("mypython", "3.12.1")
    assert choose(machine.environ(PYTHON=str(other))).executable == str(other)


def test_choose_refuses_when_named_python_is_too_new(machine: Machine) -> None:
    machine.add("python3.11")
    machine.add("python3.13", "3.13.0")
    with pytest.raises(
        Trouble, match=r"^PYTHON=python3\.13 cannot be used: it is CPython 3\.13\.0\. .*3\.10, 3\.11 or"
    ):
        choose(machine.environ(PYTHON="python3.13"))


def test_choose_leaves_out_what_is_older_than_asked_for(machine: Machine) -> None:
    machine.add("python3.10", "3.10.13")
    newer = machine.add("python3", "3.12.1")
    assert choose(machine.environ(), (3, 11)).executable == str(newer)


def test_choose_says_what_is_needed_when_all_are_older_than_asked_for(machine: Machine) -> None:
    machine.add("python3.10", "3.10.13")
    wanted = r"^this environment needs CPython 3\.11 to 3\.12, .* is CPython 3\.10\.13: install one, .*/python3\.11$"
    with pytest.raises(Trouble, match=wanted):
        choose(machine.environ(), (3, 11))
    with pytest.raises(Trouble, match=r"^PYTHON=python3\.10 cannot be used here: it is CPython 3\.10\.13, and this"):
        choose(machine.environ(PYTHON="python3.10"), (3, 11))


def test_choose_refuses_when_named_python_does_not_exist(machine: Machine) -> None:
    with pytest.raises(Trouble, match=r"^PYTHON=/no/python cannot be used: it does not run \(No such file"):
        choose(machine.environ(PYTHON="/no/python"))


@pytest.mark.parametrize(
    ("version", "implementation", "bits", "said"),
    [
        ("3.13.0", "CPython", "64", r"python3 is CPython 3\.13\.0"),
        ("3.9.18", "CPython", "64", r"python3 is CPython 3\.9\.18"),
        ("2.7.18", "CPython", "64", r"python3 is CPython 2\.7\.18"),
        ("3.11.7", "PyPy", "64", r"python3 is PyPy 3\.11\.7"),
        ("3.11.7", "CPython", "32", r"python3 is a 32-bit build of CPython 3\.11\.7"),
    ],
)
def test_choose_names_what_it_found_when_nothing_will_do(
    machine: Machine, version: str, implementation: str, bits: str, said: str
) -> None:
    machine.add("python3", version, implementation, bits)
    with pytest.raises(Trouble, match=rf"CPython 3\.10, 3\.11 or 3\.12 is needed .*{said}: install one of the three"):
        choose(machine.environ())


def test_choose_says_so_when_there_is_no_python(machine: Machine) -> None:
    with pytest.raises(Trouble, match=r"no Python was found on PATH that runs: install"):
        choose(machine.environ())


def test_choose_names_the_debian_package_when_ensurepip_is_missing(machine: Machine) -> None:
    machine.add("python3", "3.11.2", missing="ensurepip")
    with pytest.raises(Trouble, match=r"is CPython 3\.11\.2 without ensurepip, .*apt-get install python3\.11-venv"):
        choose(machine.environ())


def test_survey_lists_each_executable_once_when_two_names_lead_to_it(machine: Machine) -> None:
    machine.add("python3.11", "3.11.7")
    (machine.bin / "python3").symlink_to("python3.11")
    machine.add("python", "2.7.18")
    assert [python.version for python in survey(machine.environ())] == ["3.11.7", "2.7.18"]


def test_choose_accepts_the_python_of_these_tests_when_it_is_asked_for_real(machine: Machine) -> None:
    import platform
    import sys

    python = choose(machine.environ(PYTHON=sys.executable))
    assert python.version == platform.python_version()
