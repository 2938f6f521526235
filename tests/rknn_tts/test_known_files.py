from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from contracts.files import digests_from, read_sha256, sha256_of
from rknn_tts import known_files
from rknn_tts.checkpoint_to_onnx import named_after
from rknn_tts.known_files import KnownFiles, read_known
from tests.vits_writer.recipe import Recipe
from tests.vits_writer.voice import write_voice

OLD_NS = 10**18
"""In the year 2001."""


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that were read for their digest."""
    read: list[Path] = []

    def reading(path: Path) -> str:
        read.append(path)
        return read_sha256(path)

    monkeypatch.setattr(known_files, "read_sha256", reading)
    return read


def old(path: Path, data: bytes, at_ns: int = OLD_NS) -> Path:
    path.write_bytes(data)
    os.utime(path, ns=(at_ns, at_ns))
    return path


def test_a_file_is_read_once_while_it_stays_as_it_is(tmp_path: Path, reads: list[Path]) -> None:
    file, known = old(tmp_path / "a", b"abc"), KnownFiles()
    wanted = hashlib.sha256(b"abc").hexdigest()
    assert [known.sha256(file), known.sha256(file)] == [wanted, wanted]
    assert reads == [file]


def test_a_file_is_read_again_when_size_time_or_inode_differ(tmp_path: Path, reads: list[Path]) -> None:
    file, known = old(tmp_path / "a", b"abc"), KnownFiles()
    known.sha256(file)
    old(file, b"abcd")
    assert known.sha256(file) == hashlib.sha256(b"abcd").hexdigest()
    old(file, b"bcde", OLD_NS + 1)
    assert known.sha256(file) == hashlib.sha256(b"bcde").hexdigest()
    old(tmp_path / "b", b"cdef", OLD_NS + 1).replace(file)
    assert known.sha256(file) == hashlib.sha256(b"cdef").hexdigest()
    assert len(reads) == 4


def test_a_file_that_was_just_written_is_read_each_time(tmp_path: Path, reads: list[Path]) -> None:
    file, known = tmp_path / "a", KnownFiles()
    file.write_bytes(b"abc")
    known.sha256(file)
    known.sha256(file)
    assert len(reads) == 2


def test_what_is_known_is_kept_in_a_file(tmp_path: Path, reads: list[Path]) -> None:
    file, known = old(tmp_path / "a\udcff", b"abc"), KnownFiles()
    wanted = known.sha256(file)
    known.write(tmp_path / "own" / "digests.json")
    assert read_known(tmp_path / "own" / "digests.json").sha256(file) == wanted
    assert len(reads) == 1


@pytest.mark.parametrize("text", ["", "[]", '{"schema": "rknn-tts/farm-digests/1", "files": {"a": 1}}', "{}"])
def test_nothing_is_known_when_the_file_is_damaged(tmp_path: Path, text: str) -> None:
    (tmp_path / "d.json").write_text(text)
    assert read_known(tmp_path / "d.json") == KnownFiles() == read_known(tmp_path / "missing.json")


def test_the_external_data_of_an_onnx_is_known_without_reading_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import onnx

    model = onnx.load(write_voice(tmp_path / "a.onnx", Recipe(flows=1, flow_layers=1)))
    onnx.save(model, tmp_path / "b.onnx", save_as_external_data=True, location="b.data")
    os.utime(tmp_path / "b.onnx", ns=(OLD_NS, OLD_NS))
    known = KnownFiles()
    assert known.external(tmp_path / "b.onnx") == (tmp_path / "b.data",)
    monkeypatch.setattr(known_files, "external_files", lambda path: pytest.fail("it was read again"))
    assert known.external(tmp_path / "b.onnx") == (tmp_path / "b.data",)


def test_sha256_of_asks_what_is_known_within_alone(tmp_path: Path) -> None:
    file = old(tmp_path / "a", b"abc")
    with digests_from(lambda path: f"known {path.name}"):
        assert sha256_of(file) == "known a"
    assert sha256_of(file) == hashlib.sha256(b"abc").hexdigest()


def test_what_is_named_after_a_file_is_told_as_a_pattern_would(tmp_path: Path) -> None:
    for name in ("a.onn", "a.onnx", "a.onnx.json", "a.onnx_2", "a.onny", "a", "b.onnx", "[a].onnx", "[a].onnx.json"):
        (tmp_path / name).touch()
    known = KnownFiles()
    for name in ("a.onnx", "b.onnx", "[a].onnx", "z.onnx"):
        assert known.named_after(tmp_path / name) == sorted(named_after(tmp_path / name))


def test_a_folder_is_listed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = KnownFiles()
    known.named_after(tmp_path / "a")
    monkeypatch.setattr(os, "listdir", lambda path: pytest.fail("it was listed again"))
    assert known.named_after(tmp_path / "b") == []
