"""Progress of a command on standard error: a live line with the elapsed time on a terminal, else a line a step."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TextIO

from pages.text import shown
from rknn_tts.blocks import is_terminal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


_QUIET_S = 30.0
"""Between signs of life of a long step: well within the silence after which CI servers end a job (10 minutes)."""


class Say(Protocol):
    """How work tells of itself while it runs."""

    def step(self, text: str) -> None:
        """A stage of work begins, such as "building: fusing operators"."""

    def note(self, text: str) -> None:
        """A sentence that stays visible."""


class PlainSay:
    """One line a step on `stream`, for files, pipes and CI logs.

    Stages inside a step ("building: compiling: TilingPass") pass by in milliseconds, by the dozen (43 in 7 s, measured,
    2.3.2, Piper): they get a line only where nothing was written for a while, so that a long build is seen to live.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._clock = stream, clock
        self._last, self._written_at = "", -_QUIET_S

    def step(self, text: str) -> None:
        """Write the step that `text` belongs to, or `text` itself after a silence."""
        head = text.split(": ")[0]  # no place on a hub is a stage: hf://OWNER/REPO
        if head != self._last:
            self._last = head
            self._write(head)
        elif self._clock() - self._written_at >= _QUIET_S:
            self._write(text)

    def note(self, text: str) -> None:
        """Write `text` as a line."""
        self._write(f"note: {text}")

    def _write(self, text: str) -> None:
        self._written_at = self._clock()
        print(shown(text), file=self._stream, flush=True)


class LiveSay:
    """A spinner, the step and the elapsed time on one line of a terminal; it is gone when the work is done."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None)

    def step(self, text: str) -> None:
        """Show `text` as the current step."""
        from rich.markup import escape

        self._progress.update(self._task, description=escape(shown(text)))

    def note(self, text: str) -> None:
        """Print `text` above the live line."""
        from rich.text import Text

        self._progress.console.print(Text.assemble(("note: ", "bold"), shown(text)))


@contextmanager
def progress_on(stream: TextIO | None = None) -> Iterator[Say]:
    """A `Say` that writes to `stream` (standard error by default) until the block ends."""
    stream = sys.stderr if stream is None else stream
    if not is_terminal(stream):
        yield PlainSay(stream)
        return
    from rich.console import Console

    with _live_line(Console(file=stream)) as progress:
        yield LiveSay(progress)


def _live_line(console: Console) -> Progress:
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.table import Column

    step = TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1))
    return Progress(SpinnerColumn(), TimeElapsedColumn(), step, console=console, transient=True, expand=True)
