"""How far the decoder's sines must be right: measured on a stream, with margins; and the pass that makes them so."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from contracts.errors import Refusal
from contracts.verdicts import Verdict, at_most
from converters.qwen3.opening import Opening
from converters.qwen3.streams import FloatArray
from models.qwen3.config import DILATIONS
from surgery.declaration import Pass
from surgery.rewrite_sines import rewrite_sines
from surgery.sine_forms import FOLDED, covered_by

SITE_MARGIN, CHANNEL_MARGIN = 1.5, 2.0
"""How much further than what was seen a sine is folded, and each of its channels, as far as the sine goes: Kokoro's
margins, measured there on five voices. Further out nothing breaks: a sine is taken for zero there."""

SMALLEST_REACH = 0.1
"""In units of pi, of a channel that was silent in the whole stream: no fold is spared below 1."""


def reaches_of(opening: Opening) -> list[FloatArray]:
    """How far each SnakeBeta's sine must be right, by channel, in units of pi: with margins, what it saw."""
    found = []
    for largest in opening.whole[1]:
        site = covered_by(largest.max() * SITE_MARGIN)
        found.append(np.clip(largest * CHANNEL_MARGIN, SMALLEST_REACH, site).astype(np.float32))
    return found


def reach_verdict(reaches: Sequence[FloatArray], seen: Sequence[FloatArray]) -> Verdict:
    """Whether the sines' arguments stay where the sines are right.

    Args:
        reaches: for each sine and channel, how far it is folded for, in units of pi.
        seen: how far its arguments went.
    """
    shares = [float(np.max(went / covered_by(reach))) for went, reach in zip(seen, reaches, strict=True)]
    site = int(np.argmax(shares))
    return at_most(
        "sine.reach",
        shares[site],
        1.0,
        "of the covered range",
        f"the largest argument of {len(shares)} sines on codes that the reach was not measured on (sine {site})",
    )


def reach_verdicts(opening: Opening, reaches: Sequence[FloatArray]) -> tuple[Verdict, ...]:
    """The verdict on other codes, where the sines are folded."""
    return (reach_verdict(reaches, opening.others),) if opening.geometry.form in FOLDED else ()


def sine_cuts(
    opening: Opening, model: ir.Model, reaches: Sequence[FloatArray]
) -> Callable[[str | None], tuple[Pass, ...]]:
    """The stage's own cuts for a target: its sines.

    Raises:
        Refusal: the graph's sines are not the module's.
    """
    sines = [node.outputs[0] for node in model.graph if node.op_type == "Sin"]
    # Those up to the first block's end stand in the graph once, the others twice: body, then head.
    first = 1 + 2 * len(DILATIONS)
    order = [*reaches, *reaches[first:]]
    channels = [value.shape[1] if value.shape is not None else None for value in sines]
    if channels != [len(reach) for reach in order]:
        raise Refusal(
            f"{opening.file.path}: the exported graph's {len(sines)} sines are not the {len(order)} of its module, in "
            "order: this version of torch exports it otherwise."
        )
    reach = {str(value.name): part for value, part in zip(sines, order, strict=True)}
    form = opening.geometry.form
    return lambda target: (rewrite_sines(form=form, reach_pi=reach, target=target),)
