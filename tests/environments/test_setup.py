from __future__ import annotations

import shutil
from pathlib import Path
from typing import BinaryIO

import pytest

from environments import install
from environments.locks import parse_name
from environments.setup import add_extras, ensure
from environments.stamp import UNFINISHED, judge
from environments.trouble import Trouble
from tests.engine.network_disk import NetworkDisk
from tests.environments.stubs import Machine

OFFLINE = "ERROR: Could not find a version (NewConnectionError: Connection refused)\n"


def failing(monkeypatch: pytest.MonkeyPatch, folder: Path, said: str) -> None:
    (folder / "said").write_text(said)
    monkeypatch.setenv("STUB_SAYS", str(folder / "said"))
    monkeypatch.setenv("STUB_STATUS", "1")


def working(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STUB_SAYS")
    monkeypatch.delenv("STUB_STATUS")


def test_ensure_installs_the_lock_with_hashes_and_no_dependencies_when_absent(machine: Machine) -> None:
    machine.add()
    python = ensure(machine.root, "rknn-2.3.2")
    assert python == machine.root / ".venv-rknn-2.3.2" / "bin" / "python"
    (call,) = machine.calls.read_text().splitlines()
    assert "--only-binary :all: --no-deps --require-hashes -r" in call
    assert machine.pip_locks() == ["rknn-2.3.2"]


def test_ensure_does_nothing_when_the_environment_is_ready(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.add()
    ensure(machine.root, "toolchain")
    capsys.readouterr()
    ensure(machine.root, "toolchain")
    assert machine.pip_locks() == ["toolchain"]
    assert capsys.readouterr() == ("", "")


def test_ensure_says_what_it_does_on_stderr_when_it_sets_up(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.add()
    ensure(machine.root, "rknn")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("rknn-tts: setting up .venv-rknn-2.3.2 with Python 3.11.7 (about 700 MB, once)...\n")
    assert err.count("\n") == 2


def test_ensure_starts_afresh_when_the_lock_changed(machine: Machine) -> None:
    machine.add()
    ensure(machine.root, "toolchain")
    left = machine.root / ".venv" / "lib" / "python3.11" / "site-packages" / "old_package"
    left.mkdir()
    machine.lock("toolchain").write_text("rich==16.0.0\n")
    ensure(machine.root, "toolchain")
    assert machine.pip_locks() == ["toolchain", "toolchain"]
    assert not left.exists()


def test_ensure_repairs_when_an_earlier_set_up_was_interrupted(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.add()
    ensure(machine.root, "toolchain")
    (machine.root / ".venv" / UNFINISHED).write_text("")
    ensure(machine.root, "toolchain")
    assert machine.pip_locks() == ["toolchain", "toolchain"]
    assert "again, because its set-up did not finish" in capsys.readouterr().err
    assert not (machine.root / ".venv" / UNFINISHED).exists()


def test_ensure_adds_the_extra_alone_when_the_toolchain_is_ready(machine: Machine) -> None:
    machine.add()
    ensure(machine.root, "toolchain")
    ensure(machine.root, "toolchain+dev")
    ensure(machine.root, "toolchain")
    ensure(machine.root, "toolchain+dev")
    assert machine.pip_locks() == ["toolchain", "dev"]


def test_ensure_keeps_the_environment_when_an_extra_cannot_be_downloaded(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine.add()
    ensure(machine.root, "toolchain")
    failing(monkeypatch, tmp_path, OFFLINE)
    with pytest.raises(Trouble, match="the package index cannot be reached"):
        ensure(machine.root, "toolchain+dev")
    ensure(machine.root, "toolchain")
    assert machine.pip_locks() == ["toolchain", "dev"]


@pytest.mark.parametrize(
    ("said", "locks"), [("Collecting x\n", ["toolchain"]), ("Installing collected packages: x\n", ["toolchain"] * 2)]
)
def test_ensure_keeps_the_environment_when_only_a_download_was_interrupted(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, said: str, locks: list[str]
) -> None:
    def interrupted(command: list[str], log: BinaryIO, descriptor: int) -> None:
        log.write(said.encode())
        log.flush()
        raise KeyboardInterrupt

    machine.add()
    ensure(machine.root, "toolchain")
    with monkeypatch.context() as patch:
        patch.setattr(install, "_run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ensure(machine.root, "toolchain+dev")
    ensure(machine.root, "toolchain")
    assert machine.pip_locks() == locks


def test_ensure_constrains_a_plain_pin_to_what_is_locked_without_hashes(machine: Machine) -> None:
    machine.add()
    ensure(machine.root, "toolchain+dev")
    machine.lock("torch").write_text("torch==2.13.0\n")
    ensure(machine.root, "toolchain+torch")
    constraints = machine.root / ".venv" / "rknn-tts-constraints.txt"
    assert constraints.read_text() == "rich==15.0.0\npytest==9.2.0\n"
    assert f"--constraint {constraints} -r" in machine.calls.read_text().splitlines()[-1]


def test_add_extras_adds_only_what_is_missing_and_tells_its_size(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.add()
    ensure(machine.root, "toolchain+dev")
    machine.lock("torch").write_text("# Size: 850 to 5000 MB\ntorch==2.13.0\n")
    capsys.readouterr()
    add_extras(machine.root, "toolchain+torch")
    add_extras(machine.root, "toolchain+torch")
    assert machine.pip_locks() == ["toolchain", "dev", "torch"]
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "rknn-tts: adding to .venv: it has no torch yet (850 to 5000 MB, once)..."
    assert len(told) == 2


def test_add_extras_asks_for_the_room_of_what_is_missing_alone(machine: Machine) -> None:
    machine.add()
    ensure(machine.root, "toolchain+dev")
    machine.lock("torch").write_text("# Size: 999999999999 MB\ntorch==2.13.0\n")
    with pytest.raises(Trouble, match="the disk is too full"):
        add_extras(machine.root, "toolchain+torch")
    add_extras(machine.root, "toolchain+dev")


def test_add_extras_leaves_the_environment_alone_when_a_lock_changed_or_another_python_is_asked_for(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.add()
    machine.add("python3.12", "3.12.1")
    ensure(machine.root, "toolchain")
    monkeypatch.setenv("PYTHON", "python3.12")
    add_extras(machine.root, "toolchain+dev")
    machine.lock("dev").write_text("pytest==10.0.0\n")
    with pytest.raises(Trouble, match=r"must be made again \(requirements/dev\.txt changed\).* run `environments/run"):
        add_extras(machine.root, "toolchain+dev")
    assert machine.pip_locks() == ["toolchain", "dev"]


def test_add_extras_refuses_when_there_is_no_environment(machine: Machine) -> None:
    with pytest.raises(Trouble, match=r"must be made again \(absent\)"):
        add_extras(machine.root, "toolchain+dev")


def test_ensure_starts_afresh_when_adding_an_extra_broke_half_way(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine.add()
    ensure(machine.root, "toolchain")
    failing(monkeypatch, tmp_path, "Installing collected packages: a, b\nNo space left on device\n")
    with pytest.raises(Trouble, match="the disk is full"):
        ensure(machine.root, "toolchain+dev")
    working(monkeypatch)
    ensure(machine.root, "toolchain")
    assert machine.pip_locks() == ["toolchain", "dev", "toolchain"]


def test_ensure_names_the_log_when_pip_fails(machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine.add()
    failing(monkeypatch, tmp_path, OFFLINE)
    log = machine.root / "build-logs" / "setup-toolchain.log"
    with pytest.raises(Trouble) as caught:
        ensure(machine.root, "toolchain")
    assert str(caught.value).endswith(f"in {log}")
    assert OFFLINE in log.read_text()
    working(monkeypatch)
    ensure(machine.root, "toolchain")
    assert machine.pip_locks() == ["toolchain", "toolchain"]


def test_ensure_leaves_a_folder_alone_when_it_did_not_make_it(machine: Machine) -> None:
    machine.add()
    theirs = machine.root / ".venv" / "theirs"
    theirs.parent.mkdir()
    theirs.write_text("kept")
    with pytest.raises(Trouble, match=r"\.venv exists and was not made by rknn-tts"):
        ensure(machine.root, "toolchain")
    assert theirs.read_text() == "kept"


def test_ensure_fills_the_linked_folder_when_the_environment_is_a_link(machine: Machine, tmp_path: Path) -> None:
    machine.add()
    disk = tmp_path / "large disk"
    disk.mkdir()
    (machine.root / ".venv").symlink_to(disk)
    ensure(machine.root, "toolchain")
    machine.lock("toolchain").write_text("rich==16.0.0\n")
    ensure(machine.root, "toolchain")
    assert (machine.root / ".venv").is_symlink()
    assert (disk / "bin" / "rknn-tts").exists()


def test_ensure_makes_it_again_when_another_python_is_asked_for(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.add()
    ensure(machine.root, "toolchain")
    other = machine.add("python3.12", "3.12.1")
    monkeypatch.setenv("PYTHON", "python3.12")
    ensure(machine.root, "toolchain")
    ensure(machine.root, "toolchain")
    assert machine.pip_locks() == ["toolchain", "toolchain"]
    assert f"PYTHON asks for {other}" in capsys.readouterr().err


def test_ensure_puts_the_project_on_the_path_when_it_makes_the_toolchain(machine: Machine) -> None:
    machine.add()
    ensure(machine.root, "toolchain")
    site = machine.root / ".venv" / "lib" / "python3.11" / "site-packages"
    assert (site / "rknn-tts.pth").read_text().splitlines() == [str(machine.root), str(machine.root / "runtime")]


def test_ensure_keeps_settings_from_pip_when_they_would_install_elsewhere(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.add()
    monkeypatch.setenv("PIP_TARGET", "/elsewhere")
    monkeypatch.setenv("PIP_CERT", "/my/certificate")
    ensure(machine.root, "toolchain")
    variables = Path(f"{machine.calls}.env").read_text().splitlines()
    assert "PIP_CERT=/my/certificate" in variables
    assert not [line for line in variables if line.startswith("PIP_TARGET")]


def test_ensure_refuses_when_the_disk_is_too_small(machine: Machine) -> None:
    machine.add()
    machine.lock("rknn-2.3.2").write_text("# Size: 999999999999 MB\n")
    with pytest.raises(Trouble, match="the disk is too full"):
        ensure(machine.root, "rknn-2.3.2")
    machine.lock("rknn-2.3.2").write_text("# Size: 1 MB\n")
    ensure(machine.root, "rknn-2.3.2")
    assert machine.pip_locks() == ["rknn-2.3.2"]


def test_ensure_ends_in_a_sentence_when_the_checkout_cannot_be_written(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.add()
    # Root may write anywhere, so a file stands where the folder for logs belongs.
    (machine.root / "build-logs").write_text("")
    with pytest.raises(Trouble, match=r"setting up .*\.venv failed: .*build-logs: File exists"):
        ensure(machine.root, "toolchain")


def test_ensure_leaves_an_environment_alone_when_another_node_made_it_while_this_one_saw_none(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.add()
    machine.create("toolchain")  # so that the lock file is there, as it is on a shared disk
    shutil.rmtree(machine.root / ".venv")
    with monkeypatch.context() as patch:
        disk = NetworkDisk(patch)
        assert judge(parse_name(machine.root, "toolchain")).kind == "absent"
        assert machine.create("toolchain").returncode == 0
        assert str(machine.root / ".venv") in disk.missing
        ensure(machine.root, "toolchain")
    assert machine.pip_locks() == ["toolchain", "toolchain"]
