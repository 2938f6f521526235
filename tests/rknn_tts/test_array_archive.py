"""Archives of arrays, read and digested; test_inputs_file.py has the hostile ones."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from contracts.errors import UserInput
from rknn_tts import array_archive
from rknn_tts.array_archive import archive_digest, read_archive

ARRAYS = {
    "floats": np.array([[1.5, -2.0]], np.float32),
    "0/ids": np.array([3, 2**40]),
    "scalar": np.array(True),
    "none": np.zeros((0, 3), np.int8),
    "by columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "the other byte order": np.arange(3, dtype=">f4"),
}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_read_archive_gives_every_array_as_it_was_saved(tmp_path: Path, save: Callable[..., None]) -> None:
    path = tmp_path / "in.npz"
    save(path, **ARRAYS)
    read = read_archive(path, "--inputs in.npz")
    assert list(read) == list(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(read[name], array)
        assert (read[name].dtype, read[name].shape) == (array.dtype, array.shape)


def test_read_archive_gives_nothing_of_an_empty_archive(tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz")
    assert read_archive(tmp_path / "in.npz", "x") == {}


def test_read_archive_counts_the_arrays_together_when_each_is_small_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "in.npz"
    np.savez(path, a=np.zeros(100, np.int8), b=np.zeros(100, np.int8))
    with zipfile.ZipFile(path) as archive:
        size_bytes = sum(member.file_size for member in archive.infolist())
    monkeypatch.setattr(array_archive, "FEEDS_LIMIT_BYTES", size_bytes)
    assert len(read_archive(path, "x")) == 2
    monkeypatch.setattr(array_archive, "FEEDS_LIMIT_BYTES", size_bytes - 1)
    with pytest.raises(UserInput, match=r"^what: holds .* is the limit"):
        read_archive(path, "what")


def test_archive_digest_is_of_the_bytes_whatever_they_are(tmp_path: Path) -> None:
    path = tmp_path / "in.npz"
    path.write_bytes(b"no archive")
    assert archive_digest(path, "x") == hashlib.sha256(b"no archive").hexdigest()


def test_archive_digest_refuses_a_name_that_no_file_has(tmp_path: Path) -> None:
    for name in ("absent.npz", "nul\0.npz", "x" * 999):
        with pytest.raises(UserInput, match=r"^what: there is no such file\.$"):
            archive_digest(tmp_path / name, "what")
