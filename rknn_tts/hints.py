"""What a misspelt word was probably meant to be."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable


def closest(word: str, choices: Iterable[str]) -> str | None:
    """The one of `choices` that looks most like `word`, whatever its case; None where none does."""
    by_lower = {choice.lower(): choice for choice in choices}
    found = difflib.get_close_matches(word.lower(), by_lower, n=1)
    return by_lower[found[0]] if found else None


def called(name: str) -> str:
    """`name` behind the words that say what it is: "the input tokens", and "the input 'input'"."""
    return f"'{name}'" if name in _OWN_WORDS or not name or any(c.isspace() for c in name) else name


_OWN_WORDS = frozenset({"array", "input", "inputs", "output", "outputs", "has", "is", "no", "the"})
"""Words of the sentences that names stand in."""


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """ " Did you mean X?" to append to a sentence; "" where nothing looks like `word`."""
    found = closest(word, choices)
    return f" Did you mean {found}?" if found and found != word else ""


def which_pass(word: str, names: Collection[str], option: str) -> str:
    """What helps whose `word` behind the `option` is none of the passes' `names`."""
    if sum(part in names for part in re.split("[ ,]+", word)) > 1:
        return f" Each is a {option} of its own."
    return did_you_mean(word, names) or " `rknn-tts passes` lists them."
