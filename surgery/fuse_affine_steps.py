"""Fuse a row of multiplications and additions by constants into one of each, in the order that the compiler merges.

Before:  ((x + b) * a + d) * c        c - (x * a)        b + (a * x)        Relu(c - x)
After:   x * s + t, s and t the second inputs, one number or one for each channel

The compiler makes a BatchNormalization, one pass over the tensor, of a Mul and the Add behind it, and takes a Relu in
too (BatchNormalizationRelu). Not where the Add stands before the Mul, where a constant is the first input, or where it
is subtracted from; and two such pairs stay two (measured, 2.3.2, the same on every target). c - x alone takes one pass;
before a Relu it becomes -1 * x + c, which takes that in.

(x + b) * a as a * x + a b rounds to fp16 at other places: where x is near -b, the rounding of a counts. It is no more
than what the rounding of x itself does there.

Left alone: what the compiler merges as it stands, rows of one kind among it, or takes into the weights of a layer
before or a convolution behind; what comes from no convolution through elementwise operators (between MatMuls the
compiler turns the tensor before a BatchNormalization, and back); constants that vary along another axis than the
channels; the steps of a Gelu or HardSwish that is spelled out (`surgery.spelled_activations`); values between that
others read; a scale that fp16 does not hold in full precision, or a shift beyond its range; ranks other than 3 and 4;
and what the toolkit would take for zero then (`surgery.affine_steps.would_be_zeroed`).

Exact: (x + b) a = a x + a b.
"""

from __future__ import annotations

import re

import numpy as np
import onnx_ir as ir

from contracts.targets import EVERY_TARGET
from surgery.affine_steps import (
    MATCHES,
    Affine,
    affine_ending_at,
    is_convolved,
    may_be_step,
    take_affine,
    would_be_zeroed,
)
from surgery.channel_layout import lies_in_channels
from surgery.declaration import Declaration, Exact, Pass
from surgery.graph import graph_of, only_reader
from surgery.graph_builder import Builder, sizes_of
from surgery.linear_layers import Array
from surgery.matching import Matched, is_one_of
from surgery.node_rewrites import rewrite_nodes
from surgery.spelled_activations import is_spelled

RELU = Matched("Relu")

MERGED = re.compile("s+a+|[sS]+|[aA]+|r")
"""The rows of kinds (`Affine.kinds`) that the compiler passes over the tensor once for, as they are."""

TAKEN_IN = re.compile("[sS]+$")
"""Of a row, what a convolution behind it takes into its weights."""

DECLARATION = Declaration(
    name="fuse_affine_steps",
    summary="multiplications and additions by constants in a row become one of each, which the compiler merges",
    exactness=Exact("(x + b) a = a x + a b"),
    after=frozenset(
        {
            "decompose_functions",
            "fold_constants",
            "fold_neutral_operands",
            "fold_scales",
            "fold_shifts",
            "normalise_double",
            "normalise_float32",
            "rewrite_sines",
        }
    ),
    matches=MATCHES,
    pays_on=EVERY_TARGET,
)


def fuse_affine_steps() -> Pass:
    """The pass; its hits are rows of steps."""
    return Pass(DECLARATION, lambda model: rewrite_nodes(model, may_be_step, _plan, _apply))


def _plan(node: ir.Node) -> Affine | None:
    affine = affine_ending_at(node)
    if affine is None or not affine.fits_half or not lies_in_channels(affine.value) or would_be_zeroed(affine):
        return None
    if any(map(is_spelled, affine.nodes)):
        return None
    if _is_one_pass(affine) and not _is_turned_for_relu(affine):
        return None
    changes = np.any(affine.scale != 1.0) or np.any(affine.shift != 0.0)
    return affine if changes else None  # what changes nothing has no form here


def _is_one_pass(affine: Affine) -> bool:
    """Whether the compiler passes over the tensor once for it, at most."""
    kinds = TAKEN_IN.sub("", affine.kinds) if is_convolved(affine.output) else affine.kinds
    return not kinds or MERGED.fullmatch(kinds) is not None


def _is_turned_for_relu(affine: Affine) -> bool:
    """Whether it is c - x, and all that reads it is a Relu."""
    reader = only_reader(affine.output)
    return affine.kinds == "r" and reader is not None and is_one_of(reader, (RELU,))


def _apply(affine: Affine) -> None:
    node = affine.nodes[-1]
    make = Builder(graph_of(node), node, f"{DECLARATION.name}/{affine.output.name}")
    made, sizes = affine.value, sizes_of(affine.value)
    scale, shift = (values.astype(np.float32) for values in (affine.scale, affine.shift))
    is_one = bool(np.all(scale == scale[0]) and np.all(shift == shift[0]))
    if np.any(scale != 1.0):
        made = make.add("Mul", [made, make.constant("scale", _spread(scale, sizes, is_one))], sizes, "scaled")
    if np.any(shift != 0.0):
        made = make.add("Add", [made, make.constant("shift", _spread(shift, sizes, is_one))], sizes, "shifted")
    take_affine(affine, made)


def _spread(values: Array, sizes: list[int], is_one: bool) -> Array:
    """As it broadcasts with a tensor of `sizes`: one number, or one for each channel."""
    return values[0] if is_one else np.ascontiguousarray(values.reshape(1, -1, *[1] * (len(sizes) - 2)))
