"""Reads the arrays of an .npz file that nobody vouches for.

Nothing is unpickled, and no more is unpacked than the headers claim, which are checked first.
"""

from __future__ import annotations

import math
import stat
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rknn_tts_runtime.npy import header_in

from contracts.errors import UserInput
from contracts.files import sha256_of
from rknn_tts.carried import DAMAGES, FEEDS_LIMIT_BYTES

FILE_LIMIT_BYTES = 2 * FEEDS_LIMIT_BYTES
"""A larger file is not looked at: arrays of that size in all, and as much again for whatever lies between them."""

_npy: Any = np.lib.format  # has no types

_ENDING = ".npy"
_WRITE_IT = "write it with numpy.savez"


def read_archive(path: Path, what: str) -> dict[str, NDArray[Any]]:
    """The arrays in the .npz file `path`, by name; sentences begin with `what`.

    Raises:
        UserInput: no .npz, or damaged, too large, or with Python objects inside.
    """
    _check_file(path, what)
    try:
        with zipfile.ZipFile(path) as archive:
            return _read_members(what, archive)
    except DAMAGES as error:
        text = (str(error).strip().splitlines() or [""])[0].rstrip(".")[:200]
        reason = "it is no .npz file" if not _is_archive(path) else f"it is damaged ({text or type(error).__name__})"
        raise UserInput(f"{what}: {reason}; {_WRITE_IT}.") from error


def archive_digest(path: Path, what: str) -> str:
    """The digest of the .npz file `path`; sentences begin with `what`.

    Raises:
        UserInput: there is no such file, or it is larger than any .npz of inputs.
    """
    _check_file(path, what)
    return sha256_of(path)


def _check_file(path: Path, what: str) -> None:
    try:
        status = path.stat()
    except (OSError, ValueError):  # a folder that may not be searched, or a name that no file has
        raise UserInput(f"{what}: there is no such file.") from None
    if not stat.S_ISREG(status.st_mode):  # reading a pipe or a device need not end
        raise UserInput(f"{what}: is no regular file; {_WRITE_IT}.")
    if status.st_size > FILE_LIMIT_BYTES:
        raise UserInput(
            f"{what}: has {status.st_size / 1e9:.1f} GB, and {FILE_LIMIT_BYTES / 1e9:.1f} GB is the limit; give fewer "
            "windows."
        )


def _is_archive(path: Path) -> bool:
    try:
        return zipfile.is_zipfile(path)
    except OSError:
        return False


def _read_members(what: str, archive: zipfile.ZipFile) -> dict[str, NDArray[Any]]:
    members = archive.infolist()
    size_bytes = sum(member.file_size for member in members)
    if size_bytes > FEEDS_LIMIT_BYTES:
        limit = f"{FEEDS_LIMIT_BYTES / 1e9:.1f} GB"
        raise UserInput(f"{what}: holds {size_bytes / 1e9:.1f} GB, and {limit} is the limit; give fewer windows.")
    arrays: dict[str, NDArray[Any]] = {}
    for member in members:
        name = member.filename.removesuffix(_ENDING)
        if name == member.filename:
            raise UserInput(f"{what}: holds {name!r:.200}, which is no numpy array; {_WRITE_IT}.")
        if name in arrays:
            raise UserInput(f"{what}: holds two arrays of the name {name!r:.200}; {_WRITE_IT}.")
        arrays[name] = _read_array(what, archive, member, name)
    return arrays


def _read_array(what: str, archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> NDArray[Any]:
    """One array. Its header is read first, for numpy makes room for what it claims before it reads on."""
    with archive.open(member) as file:
        shape, _, dtype, offset = header_in(file)
        if dtype.hasobject:
            raise UserInput(
                f"{what}: the array {name!r:.200} holds Python objects, which are not read, for reading them "
                "would run code; save it as numbers."
            )
        if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != member.file_size - offset:
            raise ValueError(f"the array {name!r:.200} is not as large as it says")
    with archive.open(member) as file:
        array: NDArray[Any] = _npy.read_array(file, allow_pickle=False)
        return array
