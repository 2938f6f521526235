"""Several names in a sentence.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from typing import Iterable

_MOST = 10
"""Names that a sentence has at most."""


def listed(names: Iterable[str]) -> str:
    """The first of `names`, each once, and how many more there are."""
    distinct = list(dict.fromkeys(names))
    shown = ", ".join(distinct[:_MOST])
    return shown + (f" and {len(distinct) - _MOST} more" if len(distinct) > _MOST else "")
