"""Arrays in numpy's format, and files that only look like them."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from numpy.typing import ArrayLike
from rknn_tts_runtime.npy import array_in


def saved(array: ArrayLike, allow_pickle: bool = False) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=allow_pickle)
    return file.getvalue()


def with_header(header: str, values: bytes = b"", version: int = 1) -> bytes:
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header.encode() + values


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.int64).reshape(2, 3),
        np.arange(6, dtype=np.uint16).reshape(2, 3).T,  # by columns
        np.arange(6, dtype=">f4").reshape(1, 2, 3),
        np.float64(2.5),
        np.zeros((0, 4), np.int8),
    ],
)
def test_array_is_what_numpy_saved(array: np.ndarray) -> None:  # type: ignore[type-arg]  # of several types
    found = array_in(saved(array))
    np.testing.assert_array_equal(found, array)
    assert found.dtype == np.asarray(array).dtype


def test_array_of_the_longer_header_is_read() -> None:
    text = "{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }\n"
    assert array_in(with_header(text, struct.pack("<q", 7), version=2)).tolist() == [7]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "no header"),
        (b"PK\x03\x04abc", "no header"),
        (saved(np.array([{}]), allow_pickle=True), "no type of numbers"),
        (saved(np.array(["a"])), "no type of numbers"),
        (saved(np.arange(4))[:-1], "31 bytes of values, and by its header 4 of 8 bytes"),
        (saved(np.arange(4)) + b"0", "33 bytes of values"),
        (with_header("(((\n"), "no header"),  # TokenError
        (with_header("{1: 2, 'a': 3}\n"), "no header"),  # TypeError
        (with_header("-" * 9000 + "1\n"), "no header"),  # MemoryError or RecursionError
        (with_header("{'descr': '<i8', 'fortran_order': False, 'shape': (-1,), }\n"), "beyond any array"),
        (with_header("{'descr': '<i8', 'fortran_order': False, 'shape': (-1, -1), }\n", bytes(8)), "beyond any array"),
        (with_header("{'descr': '<i8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }\n"), "0 bytes of"),
        (with_header(f"{{'descr': '<i8', 'fortran_order': False, 'shape': (0, {1 << 80}), }}\n"), "beyond any array"),
        (with_header("{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }\n", version=3), "no header"),
    ],
)
def test_file_is_refused_when_it_is_no_array_of_numbers(content: bytes, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        array_in(content)
