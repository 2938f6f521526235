"""Write LayerNormalization the one way the toolkit reads it.

Before:  LayerNormalization without axis or epsilon (KeyError 'LayerNormalization')
After:   axis and epsilon written out; the defaults are -1 and 1e-5
Before:  x [1, a, b, c] normalised over three axes or four ("cannot reshape array")
After:   Reshape to [1, a b c], the same over the last axis, Reshape back

Measured with rknn-toolkit2 2.3.2 for rk3588. It takes every other axis and rank (68 to 71 dB), and a missing bias. A
Mean or InvStdDev that is read is `decompose_layer_norm_statistics`'s.

Exact: the definition of the operator; the same numbers are normalised together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from surgery.declaration import Declaration, Exact, Pass, Rewritten
from surgery.inferred import static_shape
from surgery.matching import Matched, is_one_of
from surgery.node_rewrites import rewrite_nodes
from surgery.splice import Draft, constant, splice, whole_numbers
from surgery.weights import weight_of

AXIS, EPSILON = -1, 1e-5
"""ONNX's defaults."""

DECLARATION = Declaration(
    name="normalise_layer_norm",
    summary="LayerNormalization with axis and epsilon written out, over axes the toolkit takes",
    exactness=Exact("the operator's definition"),
    after=frozenset({"decompose_layer_norm_statistics", "fold_constants", "normalise_empty_slots"}),
    matches=(
        Matched(
            "LayerNormalization",
            used=frozenset({"axis", "epsilon"}),
            irrelevant={"stash_type": "kept; the type it computes in"},
        ),
    ),
)

_RANK, _BATCH, _HIGHEST_AXIS = 4, 1, 1
"""The toolkit dies of an input of this rank and batch that is normalised from this axis on, or an earlier one."""


@dataclass(frozen=True)
class _Norm:
    """A node to rewrite; the shape of its input where that must be flattened, from `axis` on."""

    node: ir.Node
    axis: int
    shape: tuple[int, ...] | None


def normalise_layer_norm() -> Pass:
    """The pass; its hits are the nodes it changed."""
    return Pass(DECLARATION, _rewrite)


def _rewrite(model: ir.Model) -> Rewritten:
    return rewrite_nodes(model, _is_matched, _look, _replace)


def _is_matched(node: ir.Node) -> bool:
    return is_one_of(node, DECLARATION.matches)


def _look(node: ir.Node) -> _Norm | None:
    """The plan for one node; None where it stays as it is."""
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else AXIS
    shape = _shape_to_flatten(node, axis, static_shape(node.inputs[0])) if node.inputs else None
    written = "axis" in node.attributes and "epsilon" in node.attributes
    return None if written and shape is None else _Norm(node, axis, shape)


def _shape_to_flatten(node: ir.Node, axis: int, shape: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """The input's shape where the toolkit dies of it, and the weights are constants."""
    if shape is None or (len(shape), shape[0]) != (_RANK, _BATCH) or axis % _RANK > _HIGHEST_AXIS:
        return None
    weights = [weight_of(value) for value in node.inputs[1:] if value is not None]
    normalised = math.prod(shape[axis % _RANK :])
    others = any(value.name for value in node.outputs[1:])
    return shape if not others and all(one is not None and one.size == normalised for one in weights) else None


def _replace(norm: _Norm) -> None:
    node = norm.node
    node.attributes.setdefault("axis", ir.AttrInt64("axis", AXIS))
    node.attributes.setdefault("epsilon", ir.AttrFloat32("epsilon", EPSILON))
    if norm.shape is None:
        return
    draft = Draft()
    lead = math.prod(norm.shape[: norm.axis % _RANK])
    flat = draft.add("Reshape", node.inputs[0], whole_numbers([lead, math.prod(norm.shape) // lead]))
    made = _over_last_axis(draft, node, flat, [_flattened(value) for value in node.inputs[1:]])
    splice(node, draft.nodes, [draft.add("Reshape", made, whole_numbers(norm.shape))], DECLARATION.name)


def _flattened(value: ir.Value | None) -> ir.Value | None:
    weight = weight_of(value)
    return None if weight is None or value is None else constant(weight.reshape(-1), value.dtype or ir.DataType.FLOAT)


def _over_last_axis(draft: Draft, node: ir.Node, x: ir.Value, weights: Sequence[ir.Value | None]) -> ir.Value:
    epsilon, stash_type = node.attributes["epsilon"], node.attributes.get("stash_type")
    return draft.add("LayerNormalization", x, *weights, axis=-1, epsilon=epsilon, stash_type=stash_type)
