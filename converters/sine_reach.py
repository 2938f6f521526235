"""How far a stage's sines must be right: what they saw, with margins; and whether other inputs stay within that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from contracts.verdicts import Verdict, at_most
from converters.stages import FloatArray
from surgery.sine_forms import covered_by

SITE_MARGIN, CHANNEL_MARGIN = 1.5, 2.0
"""How much further than what was seen a sine is folded, and each of its channels, as far as the sine goes. Measured on
Kokoro: in five voices, other sentences stayed within 0.82 of what that covers; at 1.25 and 1.5 single channels went
beyond. A fold more than needed costs: at 4 the worst of four windows has 60.0 dB in the simulator, at 2 it has 63.0
(docs/kokoro.md). Further out nothing breaks: a sine is taken for zero there."""

SMALLEST_REACH = 0.1
"""In units of pi, of a channel that was silent in all that was seen: no fold is spared below 1."""


def reaches_for(arguments: Iterable[FloatArray]) -> list[FloatArray]:
    """How far each sine must be right, by channel [C], in units of pi.

    Args:
        arguments: how far each went, by channel, in units of pi.
    """
    found = []
    for largest in arguments:
        site = covered_by(largest.max() * SITE_MARGIN)
        found.append(np.clip(largest * CHANNEL_MARGIN, SMALLEST_REACH, site).astype(np.float32))
    return found


def reach_verdict(reaches: Sequence[FloatArray], seen: Sequence[FloatArray], what: str) -> Verdict:
    """Whether the sines' arguments stay where the sines are right.

    Args:
        reaches: for each sine and channel, how far it is folded for, in units of pi.
        seen: how far its arguments went.
        what: what they were seen on, and the reaches not measured: "sentences".
    """
    shares = [float(np.max(went / covered_by(reach))) for went, reach in zip(seen, reaches, strict=True)]
    site = int(np.argmax(shares))
    return at_most(
        "sine.reach",
        shares[site],
        1.0,
        "of the covered range",
        f"the largest argument of {len(shares)} sines on {what} that the reach was not measured on (sine {site})",
    )
