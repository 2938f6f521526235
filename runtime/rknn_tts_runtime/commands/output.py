"""Where commands write: results on standard output, errors on standard error.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import sys
from typing import TextIO


def tell(*lines: str) -> None:
    """Write `lines` to standard output; what its encoding lacks is escaped."""
    _write(sys.stdout, lines)


def complain(*lines: str) -> None:
    """Write `lines` to standard error, likewise."""
    _write(sys.stderr, lines)


def _write(stream: TextIO | None, lines: tuple[str, ...]) -> None:
    if stream is None:  # as Python has it where the shell closed it
        return
    encoding = stream.encoding or "utf-8"
    stream.writelines(line.encode(encoding, "backslashreplace").decode(encoding) + "\n" for line in lines)
    stream.flush()
