"""The arrays of a probe kit: .npy files of float32 or int64 in C order, read without evaluating anything in them.

numpy's own reader takes pickles, and evaluates the header as Python. A kit comes from elsewhere, so only the one form
that `npy_bytes` writes is read, and the file's size is held against its header before anything is allocated.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import io
import re
import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rknn_tts_runtime.faults import BadInput

Array = npt.NDArray[Any]

DTYPES: dict[str, np.dtype[Any]] = {"<f4": np.dtype("<f4"), "<i8": np.dtype("<i8")}
"""What the header's `descr` may be: float32 and int64, the dtypes of an engine's inputs and outputs."""

MOST_AXES = 8
"""Of an array that is believed: the RKNN API's tensors have at most 16, ours at most four."""

_MAGIC = b"\x93NUMPY\x01\x00"
"""Of format 1.0, which numpy writes where a header is shorter than 64 KiB."""

_PREAMBLE = struct.Struct("<8sH")
"""The magic, then the header's length."""

_HEADER = re.compile(
    rb"\{'descr': '(<f4|<i8)', 'fortran_order': False, "
    rb"'shape': \((|\d{1,10},|\d{1,10}(?:, \d{1,10}){1,%d})\), \} *\n" % (MOST_AXES - 1)
)


class ArrayHeader(NamedTuple):
    """What an array file says of itself; `offset` is where its values begin, in bytes."""

    dtype: str
    shape: tuple[int, ...]
    offset: int

    @property
    def elements(self) -> int:
        """How many values it holds."""
        count = 1
        for axis in self.shape:
            count *= axis
        return count


def npy_bytes(array: Array) -> bytes:
    """The file of `array`.

    Raises:
        ValueError: it is neither float32 nor int64, or has more axes than `MOST_AXES`.
    """
    if array.dtype not in DTYPES.values() or array.ndim > MOST_AXES:
        raise ValueError(f"an array of {array.dtype} {list(array.shape)} is none of an engine's")
    file = io.BytesIO()
    np.save(file, np.ascontiguousarray(array).reshape(array.shape), allow_pickle=False)
    return file.getvalue()


def read_header(path: Path) -> ArrayHeader:
    """What the array file `path` says of itself, its size checked.

    Raises:
        BadInput: it cannot be read, is of another form, or holds more or less than its header says.
    """
    try:
        with path.open("rb") as file:
            magic, length = _preamble(file.read(_PREAMBLE.size))
            header = _HEADER.fullmatch(file.read(length))
        size = path.stat().st_size
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror}).") from error
    if magic != _MAGIC or header is None:
        raise BadInput(f"{path}: is no .npy file of float32 or int64 as a probe kit has them; write the kit again.")
    shape = tuple(int(axis) for axis in re.findall(rb"\d+", header[2]))
    found = ArrayHeader(DTYPES[header[1].decode()].name, shape, _PREAMBLE.size + length)
    expected = found.offset + found.elements * DTYPES[header[1].decode()].itemsize
    if size != expected:
        raise BadInput(
            f"{path}: has {size} bytes, and {expected} by its header ({found.dtype} {list(shape)}); copy the kit again."
        )
    return found


def read_array(path: Path) -> Array:
    """The array in the file `path`.

    Raises:
        BadInput: as `read_header`.
    """
    header = read_header(path)
    try:
        values = np.fromfile(str(path), dtype=np.dtype(header.dtype), count=header.elements, offset=header.offset)
    except (OSError, MemoryError) as error:
        raise BadInput(f"{path}: {header.elements} values of {header.dtype} cannot be read ({error}).") from error
    return values.reshape(header.shape)


def _preamble(data: bytes) -> tuple[bytes, int]:
    if len(data) < _PREAMBLE.size:
        return b"", 0
    magic, length = _PREAMBLE.unpack(data)
    return magic, length
