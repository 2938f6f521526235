"""`python -m rknn_tts_runtime`."""

from __future__ import annotations

import os
import sys

INTERRUPTED, UNWRITTEN = 130, 1
"""Exit codes: what a shell says of a program that SIGINT ended, and of output that could not be written."""


def run() -> int:
    """Run the command line; its exit code."""
    try:
        from rknn_tts_runtime.cli import main  # takes seconds on a slow board, in which a person may have had enough

        return main(sys.argv[1:])
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted\n")
        return INTERRUPTED
    except SystemExit as ended:  # argparse
        return ended.code if isinstance(ended.code, int) else UNWRITTEN
    except OSError:  # even the sentence that says what was wrong could not be written
        return UNWRITTEN


def flushed(code: int) -> int:
    """`code`, or `UNWRITTEN` where the rest of a good command's output cannot be written: its disk is full, say.

    Without it Python would try once more when it ends, with a message of its own and the exit code 120.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            code = code or UNWRITTEN
    return code


if __name__ == "__main__":
    sys.exit(flushed(run()))
