"""What a probe's figures are taken under: chip, board, governor, clock; and where that is not as the reference's.

Every figure of the reference was taken with the governor `rknpu_ondemand`, which brings the NPU to 1000 MHz while it
works ("Conditions on the board numbers"): the clock is read while runs are timed, for at rest it tells nothing.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import platform
import threading
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Iterator

import numpy as np

from rknn_tts_runtime import __version__
from rknn_tts_runtime.board import ROOT, board, npu_state
from rknn_tts_runtime.probing.result import Clock, Conditions

REFERENCE_GOVERNOR = "rknpu_ondemand"
REFERENCE_HZ = 1_000_000_000
"""What the reference asks of `governor`, and of `cur_freq` under load, on its RK3588."""

SAMPLED_EVERY_S = 0.01
"""The NPU's clock: a run of the shortest engine takes a few of these, and reading a file takes none of the NPU."""

_MHZ = 1_000_000


class ClockWatch:
    """Reads the NPU's clock from a thread of its own while something runs."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root
        self._seen: list[int] = []

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Read it again and again while within, at least once."""
        done = threading.Event()
        thread = threading.Thread(target=self._watch, args=(done,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._sample()  # the last run has just ended, and the clock falls later
            done.set()
            thread.join()

    @property
    def clock(self) -> Clock | None:
        """What was seen so far; None where the machine does not tell."""
        seen = list(self._seen)
        return Clock(min(seen), max(seen)) if seen else None

    def _watch(self, done: threading.Event) -> None:
        # The first runs may be over before the clock has risen, so it is not read at once.
        while not done.wait(SAMPLED_EVERY_S):
            self._sample()

    def _sample(self) -> None:
        hz = npu_state(self._root).hz
        if hz is not None:
            self._seen.append(hz)


def conditions_before(root: Path = ROOT) -> Conditions:
    """What is known before anything ran; the clock under load is not."""
    found = board(root)
    return Conditions(
        date=utc_now(),
        soc=found.soc,
        board=found.model,
        kernel=found.kernel,
        governor=found.npu.governor,
        idle_hz=found.npu.hz,
        clock=None,
        highest_hz=max(found.npu.available_hz, default=None),
        python=platform.python_version(),
        numpy=np.__version__,
        runtime=__version__,
    )


def utc_now() -> str:
    """The time, UTC, to a second: 2026-11-30T14:20:00+00:00."""
    return datetime.now(timezone.utc).replace(microsecond=0).isoformat()


def warnings_of(conditions: Conditions) -> tuple[str, ...]:
    """Where the conditions of a board's figures are not the reference's, as sentences."""
    return tuple(filter(None, (_governor_warning(conditions), _clock_warning(conditions))))


def _governor_warning(conditions: Conditions) -> str:
    if conditions.governor is None:
        return "The NPU's governor is not told, so times cannot be compared with another board's."
    if conditions.governor == REFERENCE_GOVERNOR:
        return ""
    return f"The NPU's governor is {conditions.governor}, and the reference's {REFERENCE_GOVERNOR}."


def _clock_warning(conditions: Conditions) -> str:
    clock = conditions.clock
    if clock is None:
        return "The NPU's clock while runs were timed is not told, so times cannot be compared with another board's."
    highest = conditions.highest_hz or REFERENCE_HZ
    if clock.most_hz < highest:
        return (
            f"The NPU ran at {clock.most_hz / _MHZ:.0f} MHz at most, and could at {highest / _MHZ:.0f}: times are of "
            "that clock."
        )
    if clock.least_hz < clock.most_hz:
        return (
            f"The NPU's clock was not steady while runs were timed: {clock.least_hz / _MHZ:.0f} to "
            f"{clock.most_hz / _MHZ:.0f} MHz."
        )
    return ""
