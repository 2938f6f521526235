"""Texts that may come from a file that nobody vouches for, as they can be shown."""

from __future__ import annotations


def shown(text: str) -> str:
    """`text` on one line, control characters as `\\x1b`: it can neither move the cursor nor fake a line."""
    return visible(" ".join(text.split()))


def visible(text: str) -> str:
    """`text` with whatever cannot be printed as Python would write it."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
