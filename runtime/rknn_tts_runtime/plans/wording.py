"""Words that refusals of plans have in common.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import difflib
from typing import Iterable

_SHOWN_CHARACTERS = 80
"""Of what a plan says, in a sentence about it."""


def shown(value: object) -> str:
    """`value` of a JSON file as a sentence shows it, cut off where it is long."""
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    names = {None: "null", True: "true", False: "false"}
    text = names[value] if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "..."


def listed(names: Iterable[str]) -> str:
    """`names` with commas between."""
    return ", ".join(names)


def did_you_mean(word: str, choices: Iterable[str], likeness: float = 0.6) -> str:
    """ " Did you mean X?" to append to a sentence; "" where none of `choices` looks like `word`."""
    found = difflib.get_close_matches(word[:_SHOWN_CHARACTERS].lower(), list(choices), n=1, cutoff=likeness)
    return f" Did you mean {found[0]}?" if found and found[0] != word else ""
