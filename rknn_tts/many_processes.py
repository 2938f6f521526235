"""Commands of rknn-tts as child processes: started, watched and ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine.child import GRACE_S
from engine.warden import KILL_PERIOD_S

TERM_PERIOD_S = 2 * (GRACE_S + KILL_PERIOD_S)
"""How long a command has to end its toolkit, which takes GRACE_S + KILL_PERIOD_S at most, and to tidy up."""

_POLL_S = 0.02

CHILD = Path(__file__).with_name("many_child.py")
"""What is started."""


@dataclass
class Running:
    """A command that has been started.

    Attributes:
        process: leads a process group of its own, and a session: Ctrl-C reaches us alone.
        out, err: the files with what it prints.
        start_s: by the monotonic clock.
        peak_bytes: the most that it and all below it were seen to hold.
    """

    process: subprocess.Popen[bytes]
    out: Path
    err: Path
    start_s: float = field(default_factory=time.monotonic)
    peak_bytes: int = 0


def start(words: Sequence[str], folder: Path, name: str) -> Running:
    """Start `rknn-tts WORDS`, in our working directory; what it prints goes into two files `name` in `folder`."""
    out, err = folder / f"{name}.out", folder / f"{name}.err"
    with out.open("wb") as out_file, err.open("wb") as err_file:
        process = subprocess.Popen(
            [sys.executable, "-I", str(CHILD), str(os.getpid()), *words],
            stdin=subprocess.DEVNULL,
            stdout=out_file,
            stderr=err_file,
            start_new_session=True,
        )
    return Running(process, out, err)


def end(running: Sequence[Running]) -> None:
    """End these commands and all that they have started: as Ctrl-C does, and by force where that takes too long."""
    for number, period_s in ((signal.SIGTERM, TERM_PERIOD_S), (signal.SIGKILL, KILL_PERIOD_S)):
        deadline_s = time.monotonic() + period_s
        for one in running:
            _signal(one.process, number)
        while any(one.process.poll() is None for one in running):
            if time.monotonic() > deadline_s:
                break
            time.sleep(_POLL_S)
        else:
            return


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    if process.poll() is None:  # else its id may be another's
        os.killpg(process.pid, number)
