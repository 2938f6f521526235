"""How far a stage's sines must be right: what they saw, with margins; and whether other inputs stay within that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import onnx_ir as ir

from contracts.errors import Refusal
from contracts.verdicts import Verdict, at_most
from converters.stages import FloatArray
from surgery.declaration import Pass
from surgery.rewrite_sines import rewrite_sines
from surgery.sine_forms import Form, covered_by

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


def cuts_in_order(
    model: ir.Model, reaches: Sequence[FloatArray], form: Form, path: Path
) -> Callable[[str | None], tuple[Pass, ...]]:
    """A stage's own cuts for a target: its sines, to be in `form`.

    Args:
        model: the exported graph.
        reaches: of each of its sines in order, by channel.
        form: of all of them.
        path: the checkpoint, for a sentence.

    Raises:
        Refusal: the graph has other sines.
    """
    sines = [node.outputs[0] for node in model.graph if node.op_type == "Sin"]
    channels = [value.shape[1] if value.shape is not None else None for value in sines]
    if channels != [len(reach) for reach in reaches]:
        raise Refusal(
            f"{path}: the exported graph's {len(sines)} sines are not the {len(reaches)} of its module, in order: this "
            "version of torch exports it otherwise."
        )
    reach = {str(value.name): part for value, part in zip(sines, reaches, strict=True)}
    return lambda target: (rewrite_sines(form=form, reach_pi=reach, target=target),)
