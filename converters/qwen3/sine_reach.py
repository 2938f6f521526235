"""How far the decoder's sines must be right: measured on a stream, with margins; and the pass that makes them so."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir

from contracts.verdicts import Verdict
from converters.qwen3.opening import Opening
from converters.qwen3.streams import FloatArray
from converters.sine_reach import cuts_in_order, reach_verdict, reaches_for
from models.qwen3.config import DILATIONS
from surgery.declaration import Pass
from surgery.sine_forms import FOLDED


def reaches_of(opening: Opening) -> list[FloatArray]:
    """How far each SnakeBeta's sine must be right, by channel, in units of pi: with margins, what it saw."""
    return reaches_for(opening.whole[1])


def reach_verdicts(opening: Opening, reaches: Sequence[FloatArray]) -> tuple[Verdict, ...]:
    """The verdict on other codes, where the sines are folded."""
    return (reach_verdict(reaches, opening.others, "codes"),) if opening.geometry.form in FOLDED else ()


def sine_cuts(
    opening: Opening, model: ir.Model, reaches: Sequence[FloatArray]
) -> Callable[[str | None], tuple[Pass, ...]]:
    """The stage's own cuts for a target: its sines.

    Raises:
        Refusal: the graph's sines are not the module's.
    """
    # Those up to the first block's end stand in the graph once, the others twice: body, then head.
    first = 1 + 2 * len(DILATIONS)
    return cuts_in_order(model, [*reaches, *reaches[first:]], opening.geometry.form, opening.file.path)
