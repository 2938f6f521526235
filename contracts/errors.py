"""Errors that end a command, each with the exit code it ends with.

Every message is one sentence (or a few) for the person at the command line: what is wrong, where (file, tensor,
node) and what to do. The command line prints it without a traceback.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from enum import Enum
from pathlib import Path

from contracts.verdicts import Verdict

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_REFUSED = 2

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
"""What the system says where a disk, or one's share of it, is full."""


class Shortage(str, Enum):
    """What a machine had too little of: the same command may well succeed with more of it."""

    MEMORY = "memory"
    DISK = "disk"


class RknnTtsError(Exception):
    """Base of all errors a user may see.

    Attributes:
        exit_code: the exit code of a command that this error ends.
    """

    exit_code = EXIT_FAILED


class UserInput(RknnTtsError):
    """The command or an input file is wrong: nothing was started."""

    exit_code = EXIT_REFUSED


class Refusal(RknnTtsError):
    """The input is well formed, but it is not something that can be compiled: nothing was started."""

    exit_code = EXIT_REFUSED


class NotWritten(RknnTtsError):
    """The work was done, and its result could not be put in its place, where everything is as it was."""

    exit_code = EXIT_FAILED


class GateFailure(RknnTtsError):
    """A gate failed, so there is no engine at the output path.

    Attributes:
        verdicts: every verdict reached until then, the failed ones included.
        log: the kept build log, where one was written.
    """

    exit_code = EXIT_FAILED

    def __init__(self, message: str, verdicts: Sequence[Verdict] = (), log: Path | None = None) -> None:
        super().__init__(message)
        self.verdicts = tuple(verdicts)
        self.log = log


class ToolFailure(RknnTtsError):
    """The vendor toolkit, or another program that was started, broke.

    Attributes:
        log: the kept build log, where one was written.
        shortage: what it broke for want of; None where that was not the reason, or cannot be told.
    """

    exit_code = EXIT_FAILED

    def __init__(self, message: str, log: Path | None = None, shortage: Shortage | None = None) -> None:
        super().__init__(message)
        self.log = log
        self.shortage = shortage
