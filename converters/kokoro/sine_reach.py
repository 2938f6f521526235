"""How far the generator's sines must be right: measured on sentences, with margins; and the pass that makes them so."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from contracts.errors import Refusal
from contracts.verdicts import Verdict
from converters.kokoro import evidence
from converters.kokoro.opening import Opening
from converters.kokoro.utterances import FloatArray
from models.kokoro.runs import Seam, run, watched_sines
from surgery.declaration import Pass
from surgery.rewrite_sines import rewrite_sines
from surgery.sine_forms import FOLDED, covered_by

SITE_MARGIN, CHANNEL_MARGIN = 1.5, 2.0
"""How much further than what was seen a sine is folded, and each of its channels, as far as the sine goes. In five
voices, other sentences stayed within 0.82 of what that covers; at 1.25 and 1.5 single channels went beyond. A fold more
than needed costs: at 4 the worst of four windows has 60.0 dB in the simulator, at 2 it has 63.0 (docs/kokoro.md).
Further out nothing breaks: a sine is taken for zero there."""

SMALLEST_REACH = 0.1
"""In units of pi, of a channel that was silent in all sentences: no fold is spared below 1."""


def reaches_of(opening: Opening, seams: Sequence[Seam]) -> list[FloatArray]:
    """How far each sine must be right, by channel, in units of pi: with margins, what it saw on `seams`."""
    found = []
    for largest in arguments_of(opening, seams):
        site = covered_by(largest.max() * SITE_MARGIN)
        found.append(np.clip(largest * CHANNEL_MARGIN, SMALLEST_REACH, site).astype(np.float32))
    return found


def arguments_of(opening: Opening, seams: Sequence[Seam]) -> list[FloatArray]:
    """How far the sines' arguments go on `seams`: for each sine, in the graph's order, by channel, in units of pi."""
    with watched_sines(opening.turned) as largest:
        for seam in seams:
            run(opening.turned, seam)
    return list(largest)


def reach_verdicts(opening: Opening, reaches: Sequence[FloatArray], seams: Sequence[Seam]) -> tuple[Verdict, ...]:
    """The verdict on the arguments that `seams` have, where the sines are folded."""
    if opening.geometry.form not in FOLDED:
        return ()
    return (evidence.reach_verdict(reaches, arguments_of(opening, seams)),)


def sine_cuts(
    opening: Opening, model: ir.Model, reaches: Sequence[FloatArray]
) -> Callable[[str | None], tuple[Pass, ...]]:
    """The stage's own cuts for a target: its sines."""
    sines = [str(node.outputs[0].name) for node in model.graph if node.op_type == "Sin"]
    if not sines or len(sines) % len(reaches):
        raise Refusal(
            f"{opening.file.path}: the exported graph has {len(sines)} sines, its module {len(reaches)}: this version "
            "of torch exports it otherwise."
        )
    # Windows inside the graph have the module's sines once each, in its order.
    reach = {name: reaches[place % len(reaches)] for place, name in enumerate(sines)}
    return lambda target: (rewrite_sines(form=opening.geometry.form, reach_pi=reach, target=target),)
