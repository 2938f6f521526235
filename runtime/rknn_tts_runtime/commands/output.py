"""Where commands write: results on standard output, errors on standard error.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import sys
import unicodedata
from typing import TextIO


def tell(*lines: str) -> None:
    """Write `lines` to standard output; what its encoding lacks is escaped."""
    _write(sys.stdout, lines)


def complain(*lines: str) -> None:
    """Write `lines` to standard error, likewise; control characters, which a file's name may have, are escaped too."""
    _write(sys.stderr, tuple(map(_without_controls, lines)))


def _without_controls(line: str) -> str:
    return "".join(_escaped(sign) if unicodedata.category(sign) == "Cc" else sign for sign in line)


def _escaped(sign: str) -> str:
    return sign.encode("unicode_escape").decode("ascii")


def _write(stream: TextIO | None, lines: tuple[str, ...]) -> None:
    if stream is None:  # as Python has it where the shell closed it
        return
    encoding = stream.encoding or "utf-8"
    stream.writelines(line.encode(encoding, "backslashreplace").decode(encoding) + "\n" for line in lines)
    stream.flush()
