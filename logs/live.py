"""The log of a running build, judged line by line, so that a build that cannot pass is stopped early."""

from __future__ import annotations

from collections.abc import Collection

from logs.regtask import RegtaskKey
from logs.tally import Tally


class LiveJudge:
    """Says at which line a build can no longer pass the gates on its log, by the rules of `judge_log`."""

    def __init__(self, accepted: Collection[RegtaskKey] = ()) -> None:
        self._tally = Tally(accepted=frozenset(accepted))
        self._reason: str | None = None

    def feed(self, line: str) -> str | None:
        """The reason to stop the build, one sentence, from the first clean line on that settles it; None before it.

        An `E build: Traceback` settles it at the exception below it, so that the reason names that.
        """
        if self._reason is None:
            self._reason = self._tally.add(line)
        return self._reason
