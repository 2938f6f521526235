"""Which of several windows make the best ladder for given utterances.

Every ladder of at most so many windows that serves the shortest utterance exactly, by a masked window or by one that
no utterance is shorter than, is covered as the board would (`expected_cost`). The least expected time wins; of ladders
within `TIE` of it, the one that is the cheapest in the middle of long audio, which no distribution of sentences has in
it; then the one that takes the least memory, then the one whose first audio comes soonest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.window_cover import Rung

from rknn_tts.tune.expected_cost import Expected, expected_cost

TIE = 1.005
"""Times the least expected time: half a percent is nothing that the model could tell (docs/cost.md), and the best
ladders of a sweep lie as close together: it is what all else is weighed against."""


@dataclass(frozen=True)
class Offered:
    """A window that a ladder may have.

    Attributes:
        name: what it is called.
        rung: its geometry and its modelled ms.
        memory_mb: what an engine of it takes when it is loaded.
    """

    name: str
    rung: Rung
    memory_mb: float


@dataclass(frozen=True)
class Ladder:
    """Some windows, and what they cost together.

    Attributes:
        names: the windows, narrowest first.
        expected: of an utterance.
        memory_mb: of all engines, loaded together.
        steady_ms: modelled, of a frame far from both ends of an utterance, by windows that any of the lengths runs.
    """

    names: tuple[str, ...]
    expected: Expected
    memory_mb: float
    steady_ms: float


def ladder_of(offered: Sequence[Offered], shares: Mapping[int, float]) -> Ladder:
    """The ladder of all of `offered`.

    Args:
        offered: its windows.
        shares: frames of an utterance to its share.

    Raises:
        BadInput: it does not hold one of the lengths.
    """
    windows = sorted(offered, key=lambda window: window.rung.width)
    expected = expected_cost(shares, [window.rung for window in windows])
    run = [window.rung for window, count in zip(windows, expected.runs, strict=True) if count]
    steady = min(rung.cost / (rung.width - rung.left - rung.right) for rung in run)
    memory_mb = sum(window.memory_mb for window in windows)
    return Ladder(tuple(window.name for window in windows), expected, memory_mb, steady)


def best_ladder(offered: Sequence[Offered], shares: Mapping[int, float], most: int) -> Ladder | None:
    """The best ladder of at most `most` of `offered`, all of different widths and one context, as one command builds
    them; None where none serves all exactly."""
    return best_of(_exact_ladders(offered, min(shares), most), shares)


def best_of(ladders: Iterable[Sequence[Offered]], shares: Mapping[int, float]) -> Ladder | None:
    """The best of `ladders`; None where none holds every length."""
    found = []
    for windows in ladders:
        try:
            found.append(ladder_of(windows, shares))
        except BadInput:  # a length that only a trimmed window would hold, padded
            continue
    bound = TIE * min((ladder.expected.ms for ladder in found), default=0.0)
    tied = [ladder for ladder in found if ladder.expected.ms <= bound]
    return min(tied, key=_economy, default=None)


def _economy(ladder: Ladder) -> tuple[float, float, float, float]:
    """By what ladders that cost about the same are told apart."""
    return ladder.steady_ms, ladder.memory_mb, ladder.expected.first_audio_ms, ladder.expected.ms


def _exact_ladders(offered: Sequence[Offered], shortest: int, most: int) -> Iterator[tuple[Offered, ...]]:
    for count in range(1, most + 1):
        for some in combinations(offered, count):
            widths = {window.rung.width for window in some}
            contexts = {(window.rung.left, window.rung.right) for window in some}
            exact = any(window.rung.masked or window.rung.width <= shortest for window in some)
            if exact and len(widths) == count and len(contexts) == 1:
                yield some
