"""Files appear whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import contracts.files
from contracts.files import (
    Pieces,
    copy_whole,
    holds,
    sha256_of,
    sha256_of_bytes,
    sha256_of_content,
    write_all_whole,
    write_whole,
)

ROOT = Path(__file__).resolve().parents[2]


def full_disk(*arguments: object) -> None:
    raise OSError(28, "No space left on device")


def test_write_whole_writes_and_replaces_when_disk_has_room(tmp_path: Path) -> None:
    path = tmp_path / "engine.rknn"
    for data in (b"first", b"second, longer", b""):
        write_whole(path, data)
        assert path.read_bytes() == data
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("call", ["fsync", "fdopen"])
@pytest.mark.parametrize("earlier", [b"earlier engine", None])
def test_write_whole_leaves_everything_as_it_was_when_disk_is_full(
    call: str, earlier: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "engine.rknn"
    if earlier is not None:
        path.write_bytes(earlier)
    monkeypatch.setattr(os, call, full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, b"half a new engine")
    assert {item.name: item.read_bytes() for item in tmp_path.iterdir()} == (
        {"engine.rknn": earlier} if earlier is not None else {}
    )


def test_write_whole_leaves_no_partial_file_when_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "engine.rknn", b"data")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664), (0o000, 0o666)])
def test_write_whole_gives_the_mode_of_the_umask_that_the_process_began_with(
    mask: int, mode: int, tmp_path: Path
) -> None:
    path = tmp_path / "engine.rknn"
    code = "import sys, pathlib, contracts.files as f; f.write_whole(pathlib.Path(sys.argv[1]), b'data')"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, cwd=ROOT, umask=mask)
    assert path.stat().st_mode & 0o777 == mode


def test_write_whole_leaves_the_umask_alone_when_another_thread_may_make_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask is the whole process's"))
    write_whole(tmp_path / "engine.rknn", b"data")


@pytest.mark.parametrize("links", [True, False])
def test_write_all_whole_puts_everything_back_when_a_rename_fails(
    links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    first.write_bytes(b"older first")
    third.write_bytes(b"older third")
    replace = Path.replace

    def refuse_third(self: Path, target: Path) -> Path:
        if target == third:
            raise PermissionError(1, "Operation not permitted")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", refuse_third)
    if not links:
        monkeypatch.setattr(os, "link", full_disk)
    with pytest.raises(PermissionError) as caught:
        write_all_whole([(first, b"new"), (second, b"new"), (third, b"new")])
    assert caught.value.filename == str(third)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "first": b"older first",
        "third": b"older third",
    }


def test_write_whole_takes_a_long_name_when_the_file_system_does(tmp_path: Path) -> None:
    for name in ("n" * 250, "\U0001f600" * 62):
        path = tmp_path / f"{name}.json"
        write_whole(path, b"data")
        assert path.read_bytes() == b"data"


def test_write_whole_raises_when_folder_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "absent" / "engine.rknn", b"data")


def test_copy_whole_copies_the_bytes_when_source_exists(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\x00data")
    copy_whole(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == b"\x00data"


@pytest.mark.parametrize(
    ("data", "digest"),
    [
        # From FIPS 180-4's published examples.
        (b"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        (b"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (b"a" * 1_000_000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
    ],
)
def test_sha256_of_matches_the_standard_when_file_is_read_in_pieces(
    data: bytes, digest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(data)
    assert sha256_of(tmp_path / "file") == digest
    monkeypatch.setattr(contracts.files, "_CHUNK_BYTES", 7_777)
    assert sha256_of(tmp_path / "file") == digest


def test_pieces_are_written_one_behind_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contracts.files, "_CHUNK_BYTES", 4)
    source, path = tmp_path / "graph", tmp_path / "twin"
    source.write_bytes(b"0123456789")
    content = Pieces((source, b"tail", source))
    whole = b"0123456789tail0123456789"
    assert [len(chunk) for chunk in content.chunks()] == [4, 4, 2, 4, 4, 4, 2]
    assert (content.size, content.sha256) == (24, sha256_of_bytes(whole))
    assert sha256_of_content(content) == sha256_of_content(whole)
    write_whole(path, content)
    assert path.read_bytes() == whole
    assert holds(path, content)
    assert holds(path, whole)


@pytest.mark.parametrize("data", [b"0123456789tall", b"0123456789tai", b"0123456789tail!", b""])
def test_file_holds_no_other_bytes(tmp_path: Path, data: bytes) -> None:
    source, path = tmp_path / "graph", tmp_path / "twin"
    source.write_bytes(b"0123456789")
    path.write_bytes(data)
    content = Pieces((source, b"tail"))
    assert not holds(path, content)
    assert not holds(path, b"0123456789tail")
    assert not holds(tmp_path / "missing", content)
    assert not holds(tmp_path, content)


def test_nothing_is_written_when_a_piece_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "twin"
    path.write_bytes(b"earlier")
    with pytest.raises(OSError, match="twin"):
        write_whole(path, Pieces((b"head", tmp_path / "missing")))
    assert [item.read_bytes() for item in tmp_path.iterdir()] == [b"earlier"]
