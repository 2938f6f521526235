from __future__ import annotations

import errno
import fcntl
import os
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from environments.exclusive import only_one
from environments.trouble import Trouble


def test_only_one_waits_and_says_so_when_another_holds_the_lock(tmp_path: Path) -> None:
    said: list[str] = []
    events: list[str] = []

    def second() -> None:
        with only_one(tmp_path / "lock", said.append):
            events.append("second")

    with only_one(tmp_path / "lock", said.append):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
        events.append("first")
    thread.join(10)
    assert events == ["first", "second"]
    assert len(said) == 1
    assert said[0].startswith("waiting for another set-up")


def test_only_one_says_nothing_when_the_lock_is_free(tmp_path: Path) -> None:
    said: list[str] = []
    with only_one(tmp_path / "lock", said.append):
        pass
    with only_one(tmp_path / "lock", said.append):
        pass
    assert said == []


def test_lock_names_its_holder_alone_when_an_earlier_one_had_a_longer_name(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text(f"4194304 on {'node' * 16}")
    with only_one(tmp_path / "lock", print):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()} on {socket.gethostname()}"


def test_only_one_waits_when_a_child_still_has_the_descriptor(tmp_path: Path) -> None:
    said: list[str] = []
    with only_one(tmp_path / "lock", said.append) as descriptor:
        child = subprocess.Popen(["/bin/sh", "-c", "read line"], stdin=subprocess.PIPE, pass_fds=(descriptor,))
    thread = threading.Thread(target=lambda: only_one(tmp_path / "lock", said.append).__enter__())
    thread.start()
    thread.join(0.2)
    assert thread.is_alive()
    child.communicate(b"\n")
    thread.join(10)
    assert not thread.is_alive()


def test_only_one_refuses_when_the_folder_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(Trouble, match="cannot be written"), only_one(tmp_path / "no" / "lock", print):
        pass


def test_only_one_names_the_remedy_when_the_file_system_has_no_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with (
        pytest.raises(Trouble, match=r"cannot be locked \(No locks available\).*RKNN_TTS_ENVIRONMENTS"),
        only_one(tmp_path / "lock", print),
    ):
        pass


def test_only_one_holds_a_lock_that_nfs_can_keep_when_it_has_the_file(tmp_path: Path) -> None:
    with only_one(tmp_path / "lock", print) as descriptor:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # of bytes, exclusive: EBADF unless open for writing
        assert (tmp_path / "lock").read_text() == f"{os.getpid()} on {socket.gethostname()}"
