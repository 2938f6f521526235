"""The passes that make an engine cheaper, where the layer table of a target shows that they do.

A graph compiles without any of them. Each states in its declaration on which targets it pays; docs/cuts.md has the
figures.
"""

from __future__ import annotations

from contracts.targets import EVERY_TARGET
from surgery.declaration import Pass
from surgery.fold_batch_normalization import fold_batch_normalization
from surgery.fold_channel_flips import fold_channel_flips
from surgery.fold_neutral_operands import fold_neutral_operands
from surgery.fold_scales import fold_scales
from surgery.fold_shifts import fold_shifts


def every_cut(target: str | None) -> tuple[Pass, ...]:
    """All of them in their order; those that decide place by place do so for `target` (None: for every target)."""
    del target
    return (
        fold_neutral_operands(),
        fold_batch_normalization(),
        fold_scales(),
        fold_shifts(),
        fold_channel_flips(),
    )


def cuts(target: str | None) -> tuple[Pass, ...]:
    """Those that pay on `target`; None: those that pay on every target."""
    wanted = EVERY_TARGET if target is None else {target}
    return tuple(bound for bound in every_cut(target) if wanted <= (bound.declaration.pays_on or EVERY_TARGET))
