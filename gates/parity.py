"""Parity: a graph after a rewrite against the graph before it, in onnxruntime fp32."""

from __future__ import annotations

import math
from collections.abc import Sequence

from contracts.errors import RknnTtsError
from contracts.verdicts import Verdict
from gates.session import Feeds, Model, Session, as_session
from gates.snr import Comparison, compare_outputs, verdict_of, worst


def parity(
    name: str, before: Model | Session, after: Model | Session, feeds: Sequence[Feeds], minimum_db: float
) -> Verdict:
    """Verdict that `after` computes what `before` computes.

    Args:
        name: the gate's name.
        before: the graph before the rewrite.
        after: the graph after it, with the same inputs and outputs.
        feeds: inputs to run both on; the worst feed and output count.
        minimum_db: the least signal-to-noise ratio that passes, in dB.

    Returns:
        The verdict; `measured` is the worst ratio in dB, inf where bit-identical. A graph that does not run fails.
    """
    try:
        comparison = compare_graphs(before, after, feeds)
    except RknnTtsError as error:
        comparison = Comparison(math.nan, "", f"it could not run: {error}")
    count = f"{len(feeds)} feed{'s' * (len(feeds) != 1)}"
    return verdict_of(name, comparison, minimum_db, f"outputs after against before, worst of {count}")


def parity_db(before: Model | Session, after: Model | Session, feeds: Sequence[Feeds]) -> float:
    """The plain figure of `parity` (for a pass record): the worst ratio in dB, NaN where they cannot be compared.

    Raises:
        RknnTtsError: one of the graphs does not load or run.
    """
    comparison = compare_graphs(before, after, feeds)
    return math.nan if comparison.problem else comparison.snr_db


def compare_graphs(before: Model | Session, after: Model | Session, feeds: Sequence[Feeds]) -> Comparison:
    """The worst comparison of two graphs over all feeds and outputs.

    Raises:
        RknnTtsError: one of the graphs does not load or run.
    """
    first, second = as_session(before), as_session(after)
    return worst(
        compare_outputs(first.run(feed), second.run(feed)).at(f"feed {number}" if len(feeds) > 1 else "")
        for number, feed in enumerate(feeds, start=1)
    )
