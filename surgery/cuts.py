"""The passes that make an engine cheaper, where the layer table of a target shows that they do.

A graph compiles without any of them. Each states in its declaration on which targets it pays; docs/cuts.md has the
figures.
"""

from __future__ import annotations

from contracts.targets import EVERY_TARGET
from surgery.declaration import Declaration, Pass
from surgery.fold_batch_normalization import fold_batch_normalization
from surgery.fold_channel_flips import fold_channel_flips
from surgery.fold_neutral_operands import fold_neutral_operands
from surgery.fold_scales import fold_scales
from surgery.fold_shifts import fold_shifts
from surgery.fuse_affine_steps import fuse_affine_steps
from surgery.fuse_instance_norm import fuse_instance_norm
from surgery.fuse_layer_norm import fuse_layer_norm
from surgery.rewrite_affine_as_depthwise import rewrite_affine_as_depthwise
from surgery.rewrite_channel_differences import rewrite_channel_differences
from surgery.rewrite_constant_divisions import rewrite_constant_divisions
from surgery.rewrite_masked_choices import rewrite_masked_choices
from surgery.rewrite_means_as_pools import rewrite_means_as_pools
from surgery.rewrite_narrow_conv import rewrite_narrow_conv
from surgery.rewrite_squares import rewrite_squares
from surgery.rewrite_transposed_conv import rewrite_transposed_conv
from surgery.rewrite_wide_conv_pad import rewrite_wide_conv_pad


def every_cut(target: str | None) -> tuple[Pass, ...]:
    """All of them in their order; those that decide place by place do so for `target` (None: for every target).

    Attention's masks and normalisations come first, before their scales and shifts are taken for steps of their own;
    then what folds into weights, at no cost; then the form of what is left; and last transposed convolutions and the
    zeros around others, whose shuffles and Concats would hide one layer from the next.
    """
    return (
        rewrite_masked_choices(),
        fuse_layer_norm(),
        fuse_instance_norm(target),
        rewrite_means_as_pools(),
        rewrite_channel_differences(),
        fold_neutral_operands(),
        fold_batch_normalization(),
        fold_channel_flips(),
        fold_scales(),
        fold_shifts(),
        fuse_affine_steps(),
        rewrite_affine_as_depthwise(),
        rewrite_constant_divisions(),
        rewrite_squares(),
        rewrite_narrow_conv(),
        rewrite_transposed_conv(target),
        rewrite_wide_conv_pad(),
    )


def cuts(target: str | None) -> tuple[Pass, ...]:
    """Those that pay on `target`; None: those that pay on every target."""
    return tuple(bound for bound in every_cut(target) if runs_for(bound.declaration, target))


def other_forms(target: str | None) -> dict[str, dict[str, Pass]]:
    """Further forms of cuts, by the name of the cut and one of their own: the same algebra, chosen by another rule."""
    return {
        "rewrite_transposed_conv": {"by cycles": rewrite_transposed_conv(target, by="cycles")},
        "fuse_instance_norm": {"for every target": fuse_instance_norm()},
    }


def runs_for(declaration: Declaration, target: str | None) -> bool:
    """Whether a pass runs on a graph for `target`: where it pays, or where that is not the question.

    Args:
        declaration: of the pass.
        target: None for a graph that is for all of them.
    """
    wanted = EVERY_TARGET if target is None else {target}
    return declaration.pays_on is None or wanted <= declaration.pays_on
