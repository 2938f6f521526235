from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.probing.arrays import Array, npy_bytes, read_array, read_header


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
        np.arange(4, dtype=np.int64),
        np.float32(3.5).reshape(()),
        np.zeros((1, 192, 1, 109), np.float32),
        np.array([np.nan, np.inf, -np.inf], np.float32),
    ],
)
def test_array_is_read_as_it_was_written(tmp_path: Path, array: Array) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(npy_bytes(array))
    read = read_array(path)
    assert (read.dtype, read.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(read, array)


def test_files_are_numpys_own(tmp_path: Path) -> None:
    numbers = np.arange(6, dtype=np.float32).reshape(2, 3)
    (tmp_path / "ours.npy").write_bytes(npy_bytes(numbers))
    np.save(tmp_path / "theirs.npy", numbers)
    np.testing.assert_array_equal(np.load(tmp_path / "ours.npy", allow_pickle=False), numbers)
    np.testing.assert_array_equal(read_array(tmp_path / "theirs.npy"), numbers)


def test_header_tells_shape_and_dtype(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(npy_bytes(np.zeros((1, 3, 2), np.int64)))
    assert read_header(path)[:2] == ("int64", (1, 3, 2))


def test_other_dtypes_are_not_written() -> None:
    with pytest.raises(ValueError, match="float64"):
        npy_bytes(np.zeros(2))


GOOD = npy_bytes(np.zeros((1, 4), np.float32))


def header(text: bytes, values: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + values


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "no .npy"),
        (GOOD[:7], "no .npy"),
        (GOOD[:40], "no .npy"),
        (b"PK\x03\x04" + GOOD, "no .npy"),
        (GOOD.replace(b"\x01\x00", b"\x02\x00", 1), "no .npy"),
        (GOOD.replace(b"<f4", b"|O "), "no .npy"),
        (GOOD.replace(b"<f4", b"<f8"), "no .npy"),
        (GOOD.replace(b"False", b"True "), "no .npy"),
        (header(b"{'descr': '<f4', 'fortran_order': False, 'shape': (__import__('os').abort(),), }\n"), "no .npy"),
        (header(b"{'descr': '<f4', 'fortran_order': False, 'shape': (-4, -1), }\n", bytes(16)), "no .npy"),
        (header(b"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 4), }\n"), "no .npy"),
        (header(b"{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 9999999999), }\n"), "bytes"),
        (GOOD[:-1], "143 bytes, and 144 by its header"),
        (GOOD + b"x", "145 bytes, and 144 by its header"),
    ],
)
def test_damaged_file_is_refused_before_it_is_read(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(data)
    with pytest.raises(BadInput, match=said):
        read_array(path)


def test_pickled_file_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{"a": 1}], object), allow_pickle=True)
    with pytest.raises(BadInput, match=r"no \.npy"):
        read_array(tmp_path / "a.npy")


def test_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"gone\.npy: cannot be read"):
        read_header(tmp_path / "gone.npy")
