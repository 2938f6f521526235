"""Files that appear whole or not at all.

Python 3.8, standard library only: this file runs on the board.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from rknn_tts_runtime.faults import BadInput

_SHOWN_CHARACTERS = 40
"""Of a file's name, in that of its temporary file: with four bytes each they fit the 255 of a name."""


def check_place(path: Path) -> bool:
    """See that a file can stand at `path`, the value of `--out`; nothing is written yet.

    Returns:
        Whether one stands there, that would be replaced.

    Raises:
        BadInput: its folder is not there or cannot be written, or no file stands there but a folder, pipe or device.
    """
    try:
        if path.is_dir() or not path.parent.is_dir():
            what = "is a folder" if path.is_dir() else f"there is no folder {path.parent}"
            raise BadInput(f"--out {path}: {what}; name a file in a folder that is there.")
        if not os.access(str(path.parent), os.W_OK):
            raise BadInput(f"--out {path}: its folder cannot be written; name a file in another.")
        if path.exists() and not path.is_file():  # it would be gone: /dev/null, for the whole system
            raise BadInput(f"--out {path}: is no file but a device or a pipe, and would be replaced; name a file.")
        return path.exists()
    except OSError as error:
        raise BadInput(f"--out {path}: cannot be looked at ({error.strerror}); name another file.") from error


def write_whole(path: Path, data: bytes) -> None:
    """Write `data` to `path`; a file that stands there is replaced.

    Raises:
        OSError: the folder cannot be written, or the disk is full; an earlier file is as it was.
    """
    temporary = path.with_name(f".{path.name[:_SHOWN_CHARACTERS]}.{secrets.token_hex(8)}.partial")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
