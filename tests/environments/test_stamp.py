from __future__ import annotations

import pytest

from environments.locks import parse_name
from environments.stamp import STAMP, UNFINISHED, judge, read_stamp, with_present_extras, write_stamp
from tests.environments.stubs import Machine


def finished(machine: Machine, name: str = "toolchain") -> None:
    wanted = parse_name(machine.root, name)
    (wanted.folder / "bin").mkdir(parents=True)
    wanted.python.write_text("")
    wanted.python.chmod(0o755)
    write_stamp(wanted.folder, "/usr/bin/python3.11", [(lock.name, lock.digest) for lock in wanted.locks])


def kind(machine: Machine, name: str = "toolchain") -> str:
    return judge(parse_name(machine.root, name)).kind


def test_judge_says_absent_when_folder_is_missing_or_empty(machine: Machine) -> None:
    assert kind(machine) == "absent"
    (machine.root / ".venv").mkdir()
    assert kind(machine) == "absent"


def test_judge_says_ready_when_nothing_changed(machine: Machine) -> None:
    finished(machine)
    assert kind(machine) == "ready"


def test_judge_says_ready_when_more_than_wanted_is_there(machine: Machine) -> None:
    finished(machine, "toolchain+dev")
    assert kind(machine) == "ready"


def test_judge_says_lacking_when_an_extra_is_not_there_yet(machine: Machine) -> None:
    finished(machine)
    assert judge(parse_name(machine.root, "toolchain+dev")).reason == "it has no dev yet"


def test_judge_names_the_lock_when_it_changed(machine: Machine) -> None:
    finished(machine)
    machine.lock("toolchain").write_text("rich==16.0.0\n")
    state = judge(parse_name(machine.root, "toolchain"))
    assert (state.kind, state.reason) == ("stale", "requirements/toolchain.txt changed")


def test_judge_says_stale_when_its_python_is_gone(machine: Machine) -> None:
    finished(machine)
    python = machine.root / ".venv" / "bin" / "python"
    python.unlink()
    python.symlink_to("/nowhere/python3.11")
    assert judge(parse_name(machine.root, "toolchain")).reason == "its Python, /usr/bin/python3.11, is gone"


def test_judge_says_stale_when_the_checkout_was_moved(machine: Machine) -> None:
    finished(machine)
    moved = machine.root.rename(machine.root.parent / "moved")
    state = judge(parse_name(moved, "toolchain"))
    assert (state.kind, state.reason) == ("stale", f"it was made at {machine.root / '.venv'}")


@pytest.mark.parametrize("broken", [UNFINISHED, STAMP])
def test_judge_says_unfinished_when_set_up_was_interrupted(machine: Machine, broken: str) -> None:
    finished(machine)
    (machine.root / ".venv" / broken).write_text("")
    assert kind(machine) == "unfinished"


def test_judge_says_foreign_when_it_is_a_link_to_anothers_environment(machine: Machine) -> None:
    finished(machine)
    other = machine.root / "other"
    other.mkdir()
    (machine.root / "requirements").rename(other / "requirements")
    (other / ".venv").symlink_to(machine.root / ".venv")
    state = judge(parse_name(other, "toolchain"))
    assert state.kind == "foreign"
    assert state.reason == f"is a link to {machine.root / '.venv'}, the environment of another checkout"


def test_judge_says_foreign_when_somebody_else_made_it(machine: Machine) -> None:
    (machine.root / ".venv").mkdir()
    (machine.root / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    assert kind(machine) == "foreign"


def test_read_stamp_gives_back_what_was_written_when_paths_have_spaces(machine: Machine) -> None:
    folder = machine.root / ".venv"
    folder.mkdir()
    write_stamp(folder, "/opt/my python/bin/python3.11", [("toolchain", "ab"), ("dev", "cd")])
    stamp = read_stamp(folder)
    assert stamp is not None
    assert stamp.folder == str(folder)
    assert stamp.python == "/opt/my python/bin/python3.11"
    assert stamp.locks == (("toolchain", "ab"), ("dev", "cd"))


def test_with_present_extras_keeps_dev_when_the_toolchain_is_made_again(machine: Machine) -> None:
    finished(machine, "toolchain+dev")
    kept = with_present_extras(parse_name(machine.root, "toolchain"), machine.root)
    assert [lock.name for lock in kept.locks] == ["toolchain", "dev"]


def test_with_present_extras_drops_an_extra_when_its_lock_is_gone(machine: Machine) -> None:
    finished(machine, "toolchain+dev")
    machine.lock("dev").unlink()
    kept = with_present_extras(parse_name(machine.root, "toolchain"), machine.root)
    assert [lock.name for lock in kept.locks] == ["toolchain"]
