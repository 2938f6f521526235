"""Errors a person at a board sees: one sentence (or a few) that says what is wrong, where, and what to do.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_REFUSED = 2


class Fault(Exception):
    """Base of all of them.

    Attributes:
        exit_code: the exit code of a command that it ends.
    """

    exit_code = EXIT_FAILED


class BadInput(Fault):
    """The command, a plan, a manifest or another input file is wrong: nothing was run."""

    exit_code = EXIT_REFUSED


class Mismatch(BadInput):
    """An engine is not the one that it is taken for: its identity disagrees with its manifest, plan or board."""


class RunFault(Fault):
    """An engine could not be loaded or run, or gave what it must not give.

    Attributes:
        code: what the RKNN API returned; None where no call of it failed.
    """

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code
