"""Reads a Kokoro voice: style vectors, one for each number of phonemes that a sentence can have.

    af_heart.npy          [L, 1, S] or [L, S]
    voices.npz:af_heart   one of several such in an npz, by its name; the name may go where there is one alone
    af_heart.bin          raw float32, little endian, [L, S], as published beside ONNX exports

What a file is, is read off its first bytes, for an npz of voices is published as `.bin` too. Files are data from
elsewhere: sizes are checked before memory is taken, and nothing in them is run.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.npy import header_of

FloatArray = npt.NDArray[np.float32]

BETWEEN = ":"
"""Between a file of several voices and the name of one."""

LARGEST_FILE = 1 << 28
"""Bytes of a file of voices: the 54 published ones have 28 MB, uncompressed."""

MOST_STYLES = 1 << 12
"""Of one voice: Kokoro-82M's have 510."""

_HEADER_BYTES = 1 << 12
"""Of an array in numpy's format: its header takes 128 for such a shape."""

_LARGEST_ITEM = 8
"""Bytes of a float64."""

_NPY, _PICKLE = b"\x93NUMPY", b"\x80"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
"""How an archive begins, and one with nothing in it."""

_TORCH_MEMBER = "/data.pkl"
"""The end of a member's name in what torch saves."""

_SUFFIX = ".npy"


class NamedVoice(NamedTuple):
    """A voice's name, as its file or the archive calls it, and its styles `[L, S]`."""

    name: str
    styles: FloatArray


def read_voice(asked: Path, style_size: int) -> NamedVoice:
    """The voice `asked` for: FILE or FILE:NAME.

    Args:
        asked: which.
        style_size: numbers of a style, S.

    Raises:
        BadInput: the file is not there, damaged, or of another kind; it has no such voice, or several and none is
            named; or a voice is no table of finite styles of S numbers.
    """
    path, name = _split(asked)
    data = _read(path)
    if data.startswith(_ZIP):
        return _from_archive(path, data, name, style_size)
    if name is not None:
        raise BadInput(f"{path}: has one voice, so none is chosen by name; leave {BETWEEN}{name} out.")
    if data.startswith(_NPY):
        return NamedVoice(path.stem, _array(data, str(path), style_size))
    if data.startswith(_PICKLE) and path.suffix != ".bin":
        raise _torchs(path)
    return NamedVoice(path.stem, _raw(data, path, style_size))


def style_for(voice: NamedVoice, phonemes: int) -> FloatArray:
    """The style `[1, S]` of a sentence of so many phonemes, the boundaries not counted; beyond the last, the last."""
    row = min(max(phonemes, 1), len(voice.styles)) - 1
    return voice.styles[row : row + 1]


def _split(asked: Path) -> tuple[Path, str | None]:
    """The file, and the name of a voice in it, where one is given: a file of that very name is taken as it is."""
    before, colon, name = str(asked).rpartition(BETWEEN)
    if colon and before and name and not asked.exists():
        return Path(before), name
    return asked, None


def _read(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise BadInput(f"--voice {path}: there is no such file; a voice is an .npy, an .npz:NAME or a .bin.")
        size = path.stat().st_size
        if size > LARGEST_FILE:
            raise BadInput(f"{path}: has {size} bytes, and is no file of voices: those have {LARGEST_FILE} at most.")
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror}).") from error


def _from_archive(path: Path, data: bytes, name: str | None, style_size: int) -> NamedVoice:
    most = MOST_STYLES * style_size * _LARGEST_ITEM + _HEADER_BYTES
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.namelist()
            if any(member.endswith(_TORCH_MEMBER) for member in members):
                raise _torchs(path)
            chosen = _chosen(path, [member[: -len(_SUFFIX)] for member in members if member.endswith(_SUFFIX)], name)
            with archive.open(chosen + _SUFFIX) as member:
                content = member.read(most + 1)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, LookupError, RuntimeError, ValueError) as error:
        raise BadInput(f"{path}: is damaged ({error!s:.100}); copy it again.") from error
    where = f"{path}{BETWEEN}{chosen}"
    if len(content) > most:
        raise BadInput(f"{where}: is larger than any voice: {MOST_STYLES} styles at most.")
    return NamedVoice(chosen, _array(content, where, style_size))


def _chosen(path: Path, names: list[str], name: str | None) -> str:
    has = ", ".join(names[:60]) or "none"
    if name is None:
        if len(names) != 1:
            raise BadInput(f"{path}: has {len(names)} voices: {has}; name one: --voice {path.name}{BETWEEN}NAME.")
        return names[0]
    if name not in names:
        raise BadInput(f"{path}: has no voice {name:.60}; it has: {has}.")
    return name


def _array(content: bytes, where: str, style_size: int) -> FloatArray:
    """The styles in `content`, an array in numpy's format."""
    try:
        shape, by_columns, dtype, offset = header_of(content)
    except ValueError as error:
        raise BadInput(f"{where}: is no array that can be read ({error}); copy it again.") from error
    rest = content[offset:]
    if dtype.kind != "f" or dtype.itemsize > _LARGEST_ITEM or by_columns:
        raise BadInput(f"{where}: holds {dtype}{' by columns' if by_columns else ''}, expected float32 by rows.")
    lengths = shape[0] if shape else 0
    if shape not in ((lengths, style_size), (lengths, 1, style_size)) or not 1 <= lengths <= MOST_STYLES:
        raise BadInput(
            f"{where}: has the shape {list(shape)}, expected [L, 1, {style_size}]: a style of {style_size} numbers for "
            "each number of phonemes; it is a voice of another model."
        )
    if len(rest) != lengths * style_size * dtype.itemsize:
        raise BadInput(f"{where}: is not as long as its header says; copy it again.")
    return _finite(np.frombuffer(rest, dtype).astype(np.float32).reshape(lengths, style_size), where)


def _raw(data: bytes, path: Path, style_size: int) -> FloatArray:
    row = style_size * np.dtype(np.float32).itemsize
    if not data or len(data) % row or len(data) > MOST_STYLES * row:
        raise BadInput(
            f"{path}: has {len(data)} bytes and is no voice: a raw one has a multiple of {row}, {style_size} float32 "
            "for each number of phonemes; .npy and .npz say themselves what they are."
        )
    return _finite(np.frombuffer(data, "<f4").astype(np.float32).reshape(-1, style_size), str(path))


def _finite(styles: FloatArray, where: str) -> FloatArray:
    if not np.isfinite(styles).all():
        raise BadInput(f"{where}: has numbers that are not finite, and is no voice; copy it again.")
    return styles


def _torchs(path: Path) -> BadInput:
    return BadInput(
        f"{path}: is a file of torch, which a board does not have; on a machine with torch, make an .npy of it: python "
        '-c \'import numpy, torch; numpy.save("voice.npy", torch.load("voice.pt", weights_only=True).numpy())\''
    )
