"""Arrays in numpy's format, read from files of others: nothing of the header is believed before it was checked.

`numpy.load` opens archives and pickles as well, takes memory by the header alone, and raises what its parsers raise.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import io
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

_MOST_AXES, _LARGEST_AXIS = 32, 1 << 32
"""Of an array that is believed: numpy before 2.0 has 32 axes; what is read here is smaller by far."""


class NpyHeader(NamedTuple):
    """What a file says of its array; `offset` is where its values begin, in bytes. Nothing of it was checked."""

    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype[Any]
    offset: int


def header_of(content: bytes) -> NpyHeader:
    """The header of `content`, a whole file; as `header_in`."""
    return header_in(io.BytesIO(content))


def header_in(stream: IO[bytes]) -> NpyHeader:
    """The header that `stream` begins with, of format 1.0 or 2.0; it stands behind it then.

    3.0 is for structured arrays, which nothing here takes.

    Raises:
        ValueError: it has none.
    """
    try:
        version = np.lib.format.read_magic(stream)  # type: ignore[no-untyped-call]  # public, but untyped in numpy
        read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, by_columns, dtype = read_header[version](stream)  # type: ignore[no-untyped-call]
    except Exception as error:  # numpy's parsers of headers raise what they please
        raise ValueError(f"no header of an array: {error!s:.100}") from error
    return NpyHeader(shape, by_columns, dtype, stream.tell())


def array_in(content: bytes) -> npt.NDArray[Any]:
    """The array in `content`, a whole file; of numbers alone, and read only.

    Raises:
        ValueError: it is no such file, holds something other than numbers, or is not as long as its header says.
    """
    shape, by_columns, dtype, offset = header_of(content)
    values = content[offset:]
    if dtype.kind not in "biuf":
        raise ValueError(f"{dtype!s:.40} is no type of numbers")
    if len(shape) > _MOST_AXES or not all(0 <= axis <= _LARGEST_AXIS for axis in shape):
        raise ValueError(f"a shape of {len(shape)} axes that is beyond any array")
    elements = 1
    for axis in shape:
        elements *= axis  # not by numpy, whose whole numbers wrap
    if elements * dtype.itemsize != len(values):
        raise ValueError(f"{len(values)} bytes of values, and by its header {elements} of {dtype.itemsize} bytes each")
    return np.frombuffer(values, dtype).reshape(shape, order="F" if by_columns else "C")
