"""Which of several engines none of the others beats in every figure."""

from __future__ import annotations

from collections.abc import Sequence


def beats(one: Sequence[float | None], other: Sequence[float | None]) -> bool:
    """Whether `one` is nowhere worse than `other` and somewhere better; less is better.

    A figure that one of them lacks is left out.
    """
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if a is not None and b is not None]
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


def beaten_by(figures: Sequence[Sequence[float | None]]) -> list[int | None]:
    """For each row of `figures` the first row that beats it and that nothing beats; None where none does.

    Args:
        figures: rows of figures in one order, of which less is better; the first is the one that counts most.
    """
    front = [place for place, row in enumerate(figures) if not any(beats(other, row) for other in figures)]
    return [
        None if place in front else next((first for first in front if beats(figures[first], row)), None)
        for place, row in enumerate(figures)
    ]
