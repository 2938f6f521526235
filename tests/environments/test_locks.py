from __future__ import annotations

from pathlib import Path

import pytest

from environments.locks import parse_name, size_text, toolkit_versions
from environments.trouble import Trouble
from tests.environments.stubs import Machine


@pytest.mark.parametrize(
    ("name", "folder", "locks"),
    [
        ("toolchain", ".venv", ["toolchain"]),
        ("toolchain+dev", ".venv", ["toolchain", "dev"]),
        ("rknn-2.5.0", ".venv-rknn-2.5.0", ["rknn-2.5.0"]),
        ("rknn", ".venv-rknn-2.3.2", ["rknn-2.3.2"]),
        ("farm", ".venv-farm", ["farm"]),
    ],
)
def test_parse_name_gives_folder_and_locks_when_name_is_known(
    machine: Machine, name: str, folder: str, locks: list[str]
) -> None:
    wanted = parse_name(machine.root, name)
    assert wanted.folder == machine.root / folder
    assert [lock.name for lock in wanted.locks] == locks
    assert wanted.python == machine.root / folder / "bin" / "python"


def test_parse_name_reads_size_and_digest_when_lock_states_them(machine: Machine) -> None:
    machine.lock("rknn-2.3.2").write_bytes(b"# Size: 12 MB\n")
    (lock,) = parse_name(machine.root, "rknn-2.3.2").locks
    assert lock.megabytes == 12
    # sha256sum of those 14 bytes.
    assert lock.digest == "e496926fdc07dd748bebf03ff9a339c1d63667778b860aa56557e611593bb802"
    assert lock.most_megabytes == 12
    assert not lock.hashed


def test_parse_name_reads_pins_and_sizes_when_a_lock_is_plain(machine: Machine) -> None:
    machine.lock("torch").write_text("# Needs no --hash=.\n# Size: 850 to 5000 MB\ntorch==2.13.0\n")
    _, lock = parse_name(machine.root, "toolchain+torch").locks
    assert (lock.megabytes, lock.most_megabytes, lock.hashed, lock.pins) == (850, 5000, False, ("torch==2.13.0",))


def test_parse_name_reads_pins_with_their_markers_when_a_lock_is_hashed(machine: Machine) -> None:
    entries = "rich==15.0.0 ; sys_platform == 'linux' \\\n    --hash=sha256:00 \\\n    --hash=sha256:01\n    # via x\n"
    machine.lock("toolchain").write_text("# Made from x==1\n" + entries)
    (lock,) = parse_name(machine.root, "toolchain").locks
    assert lock.hashed
    assert lock.pins == ("rich==15.0.0 ; sys_platform == 'linux'",)


def test_size_text_gives_a_range_when_one_lock_has_one(machine: Machine) -> None:
    machine.lock("torch").write_text("# Size: 850 to 5000 MB\ntorch==2.13.0\n")
    assert size_text(parse_name(machine.root, "toolchain+dev").locks) == "about 420 MB"
    assert size_text(parse_name(machine.root, "toolchain+torch").locks) == "1170 to 5320 MB"


def test_parse_name_lists_versions_when_toolkit_has_no_lock(machine: Machine) -> None:
    with pytest.raises(Trouble, match=r"no lock for rknn-toolkit2 9\.9: requirements/ has 2\.3\.2, 2\.5\.0\."):
        parse_name(machine.root, "rknn-9.9")


def test_parse_name_lists_extras_when_extra_is_unknown(machine: Machine) -> None:
    with pytest.raises(Trouble, match=r"asks for 'deb', and requirements/ has no such extra: there is dev$"):
        parse_name(machine.root, "toolchain+deb")


@pytest.mark.parametrize("name", ["", "dev", "../x", "rknn-../x", "rknn-", "toolchain+../dev", "toolchain+"])
def test_parse_name_refuses_when_name_is_no_environment(machine: Machine, name: str) -> None:
    with pytest.raises(Trouble):
        parse_name(machine.root, name)


def test_parse_name_says_what_to_do_when_lock_is_missing(machine: Machine) -> None:
    machine.lock("toolchain").unlink()
    with pytest.raises(Trouble, match=r"toolchain\.txt: this lock cannot be read .*git checkout"):
        parse_name(machine.root, "toolchain")


def test_toolkit_versions_finds_a_version_when_a_lock_is_added(machine: Machine) -> None:
    machine.lock("rknn-2.9.1").write_text("")
    machine.lock("rknn-overrides").write_text("")
    assert toolkit_versions(machine.root) == ["2.3.2", "2.5.0", "2.9.1"]


def test_parse_name_puts_converters_alone_in_the_folder_of_the_node_when_there_is_one(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    monkeypatch.setenv("RKNN_TTS_ENVIRONMENTS", str(tmp_path / "link"))
    machine.lock("rknn-2.3.2").write_bytes(b"# Size: 12 MB\n")
    folders = [parse_name(machine.root, name).folder for name in ("rknn", "toolchain", "farm")]
    # sha256sum of those 14 bytes, the first 8 digits.
    assert folders == [
        (tmp_path / "disk").resolve() / ".venv-rknn-2.3.2-e496926f",
        machine.root / ".venv",
        machine.root / ".venv-farm",
    ]


def test_parse_name_refuses_when_the_folder_of_the_node_is_no_absolute_path(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RKNN_TTS_ENVIRONMENTS", "local/rknn")
    with pytest.raises(Trouble, match="RKNN_TTS_ENVIRONMENTS is 'local/rknn', which is no absolute path"):
        parse_name(machine.root, "rknn")
    assert parse_name(machine.root, "toolchain").folder == machine.root / ".venv"
