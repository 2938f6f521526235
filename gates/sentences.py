"""What the gates' sentences share."""

from __future__ import annotations

from collections.abc import Iterable

NAMES_SHOWN = 5
"""How many offenders a sentence lists before it only counts them: as many as one line of a terminal holds."""


def listed(names: Iterable[str], between: str = ", ") -> str:
    """The first few of `names` in a sentence, and how many more there are."""
    everything = list(names)
    more = len(everything) - NAMES_SHOWN
    return between.join(everything[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
