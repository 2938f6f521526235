"""How far the generator's sines must be right: measured on sentences, with margins; and the pass that makes them so."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir

from contracts.errors import Refusal
from contracts.verdicts import Verdict
from converters.kokoro.opening import Opening
from converters.kokoro.utterances import FloatArray
from converters.sine_reach import reach_verdict, reaches_for
from models.kokoro.runs import Seam, run, watched_sines
from surgery.declaration import Pass
from surgery.rewrite_sines import CONVOLVED, rewrite_sines
from surgery.sine_forms import FOLDED

CONVOLVED_STEPS = (0, 1, 2)
"""So many of a sine's affine steps, the last ones, are convolutions in its other forms; all are in the usual one."""


def reaches_of(opening: Opening, seams: Sequence[Seam]) -> list[FloatArray]:
    """How far each sine must be right, by channel, in units of pi: with margins, what it saw on `seams`."""
    return reaches_for(arguments_of(opening, seams))


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
    return (reach_verdict(reaches, arguments_of(opening, seams), "sentences"),)


def sine_cuts(
    opening: Opening, model: ir.Model, reaches: Sequence[FloatArray]
) -> Callable[[str | None], tuple[Pass, ...]]:
    """The stage's own cuts for a target: its sines."""
    reach = _reach(opening, model, reaches)
    return lambda target: (rewrite_sines(form=opening.geometry.form, reach_pi=reach, target=target),)


def sine_forms(
    opening: Opening, model: ir.Model, reaches: Sequence[FloatArray]
) -> Callable[[str | None], dict[str, dict[str, Pass | None]]]:
    """Its other forms: fewer of a sine's steps as convolutions, which read less and take cycles (docs/sine.md)."""
    form, reach = opening.geometry.form, _reach(opening, model, reaches)

    def forms(target: str | None) -> dict[str, dict[str, Pass | None]]:
        if target not in CONVOLVED or form not in FOLDED:
            return {}
        return {
            "rewrite_sines": {
                f"{form.value}, {most} convolved": rewrite_sines(
                    form=form, reach_pi=reach, target=target, convolved=most
                )
                for most in CONVOLVED_STEPS
            }
        }

    return forms


def _reach(opening: Opening, model: ir.Model, reaches: Sequence[FloatArray]) -> dict[str, FloatArray]:
    """How far each sine of the graph goes, by the name of its output.

    Raises:
        Refusal: the graph's sines are not the module's.
    """
    sines = [str(node.outputs[0].name) for node in model.graph if node.op_type == "Sin"]
    if not sines or len(sines) % len(reaches):
        raise Refusal(
            f"{opening.file.path}: the exported graph has {len(sines)} sines, its module {len(reaches)}: this version "
            "of torch exports it otherwise."
        )
    # Windows inside the graph have the module's sines once each, in its order.
    return {name: reaches[place % len(reaches)] for place, name in enumerate(sines)}
