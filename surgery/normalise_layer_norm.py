"""Write LayerNormalization the one way the toolkit reads it.

Before:  LayerNormalization without axis or epsilon (KeyError 'LayerNormalization')
After:   axis and epsilon written out; the defaults are -1 and 1e-5
Before:  Mean or InvStdDev read (the toolkit gives the first output alone)
After:   Mean = ReduceMean(x), InvStdDev = 1 / Sqrt(ReduceMean((x - Mean)^2) + epsilon), beside the first output
Before:  x [1, a, b, c] normalised over three axes or four ("cannot reshape array")
After:   Reshape to [1, a b c] ([1 a b c]), the same over the last axis, Reshape back
Measured with rknn-toolkit2 2.3.2 for rk3588. It takes every other axis and rank (68 to 71 dB), and a missing bias.

Preconditions, where Mean or InvStdDev is read: an input of known rank, of float32.

Exact: the definition of the operator; the mean of the same numbers in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from onnx_ir import convenience

from surgery.declaration import Declaration, Exact, Pass, Refused, Rewritten
from surgery.interface import inferred, node_label, static_shape
from surgery.matching import Matched, is_one_of
from surgery.splice import Draft, constant, splice, whole_numbers

AXIS, EPSILON = -1, 1e-5
"""ONNX's defaults."""

KNOWN_RANK = "an input of known rank"
FLOAT32 = "an input of float32"

DECLARATION = Declaration(
    name="normalise_layer_norm",
    summary="LayerNormalization with axis and epsilon written out and one output, over axes the toolkit takes",
    exactness=Exact("the operator's definition"),
    matches=(Matched("LayerNormalization", used=frozenset({"axis", "epsilon", "stash_type"})),),
    preconditions=(KNOWN_RANK, FLOAT32),
)

_AXES_ATTRIBUTE_UP_TO = 17
"""Highest opset in which ReduceMean has its axes as an attribute (ONNX changelog)."""


@dataclass(frozen=True)
class _Norm:
    """A node to rewrite.

    Attributes:
        node: the LayerNormalization.
        axis: as given, or the default.
        statistics: whether Mean and InvStdDev are read.
        rank: of the input; 0 where nothing needs it.
        shape: of the input, where it must be flattened for the toolkit.
    """

    node: ir.Node
    axis: int
    statistics: tuple[bool, bool]
    rank: int
    shape: tuple[int, ...] | None


def normalise_layer_norm() -> Pass:
    """The pass; its hits are the nodes it changed."""
    return Pass(DECLARATION, _rewrite)


def _rewrite(model: ir.Model) -> Rewritten:
    if not any(is_one_of(node, DECLARATION.matches) for node in model.graph):
        return Rewritten(model, 0)
    copy = model.clone()
    known = inferred(copy)
    looked = [_look(node, known) for node in copy.graph if is_one_of(node, DECLARATION.matches)]
    norms = [found for found in looked if isinstance(found, _Norm)]
    refused = tuple(found for found in looked if isinstance(found, Refused))
    if not norms or refused:
        return Rewritten(model, 0, refused)
    for norm in norms:
        _replace(norm, copy.opset_imports.get("", _AXES_ATTRIBUTE_UP_TO))
    return Rewritten(copy, hits=len(norms))


def _look(node: ir.Node, known: Mapping[str, ir.Value]) -> _Norm | Refused | None:
    """The plan for one node; None where it stays as it is."""
    x = node.inputs[0]
    assert x is not None
    of_input = known.get(x.name or "", x)
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else AXIS
    read = [value is not None and _is_read(value) for value in (*node.outputs[1:], None, None)]
    statistics = (read[0], read[1])
    rank = 0 if of_input.shape is None else len(of_input.shape)
    if any(statistics):
        if not rank:
            return Refused(node_label(node), KNOWN_RANK, "its shape", f"'{x.name}' has none")
        if of_input.dtype not in (None, ir.DataType.FLOAT):
            return Refused(node_label(node), FLOAT32, "float32 for its mean and deviation", str(of_input.dtype))
    shape = _shape_to_flatten(node, axis, static_shape(of_input))
    written = "axis" in node.attributes and "epsilon" in node.attributes
    if written and not any(statistics) and shape is None:
        return None
    return _Norm(node, axis, statistics, rank, shape)


def _is_read(value: ir.Value) -> bool:
    return bool(value.uses()) or value.is_graph_output()


def _shape_to_flatten(node: ir.Node, axis: int, shape: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """The input's shape where the toolkit dies of it: rank 4, a batch of 1, three axes or more."""
    if shape is None or len(shape) != 4 or shape[0] != 1 or axis % 4 > 1:
        return None
    weights = [_weight(value) for value in node.inputs[1:] if value is not None]
    normalised = int(np.prod(shape[axis % 4 :]))
    return shape if all(weight is not None and weight.size == normalised for weight in weights) else None


def _weight(value: ir.Value) -> ir.TensorProtocol | None:
    return None if value.is_graph_input() else convenience.get_const_tensor(value)


def _replace(norm: _Norm, opset: int) -> None:
    node = norm.node
    node.attributes.setdefault("axis", ir.AttrInt64("axis", AXIS))
    epsilon = node.attributes.setdefault("epsilon", ir.AttrFloat32("epsilon", EPSILON)).as_float()
    if norm.shape is None and not any(norm.statistics):
        return
    x = node.inputs[0]
    assert x is not None
    draft = Draft()
    made = [_normalised(draft, x, norm)]
    if any(norm.statistics):
        axes = list(range(norm.axis % norm.rank, norm.rank))
        mean = _mean(draft, x, axes, opset)
        made += [_inverse_deviation(draft, x, mean, axes, epsilon, opset)] if norm.statistics[1] else []
        made[1:1] = [mean] if norm.statistics[0] else []
    for value, read in zip(node.outputs[1:], norm.statistics, strict=False):
        value.name = value.name if read else None
    splice(node, draft.nodes, made, DECLARATION.name)


def _normalised(draft: Draft, x: ir.Value, norm: _Norm) -> ir.Value:
    weights = list(norm.node.inputs[1:])
    if norm.shape is None:
        return _same(draft, x, weights, norm, norm.axis)
    lead = int(np.prod(norm.shape[: norm.axis % 4]))
    flat = draft.add("Reshape", x, whole_numbers([lead, int(np.prod(norm.shape)) // lead]))
    tensors = [None if value is None else convenience.get_const_tensor(value) for value in weights]
    flattened = [None if one is None else constant(one.numpy().reshape(-1), one.dtype) for one in tensors]
    return draft.add("Reshape", _same(draft, flat, flattened, norm, -1), whole_numbers(norm.shape))


def _same(draft: Draft, x: ir.Value, weights: Sequence[ir.Value | None], norm: _Norm, axis: int) -> ir.Value:
    given = norm.node.attributes
    epsilon, stash_type = given["epsilon"], given.get("stash_type")
    return draft.add("LayerNormalization", x, *weights, axis=axis, epsilon=epsilon, stash_type=stash_type)


def _mean(draft: Draft, x: ir.Value, axes: list[int], opset: int) -> ir.Value:
    if opset <= _AXES_ATTRIBUTE_UP_TO:
        return draft.add("ReduceMean", x, axes=axes, keepdims=1)
    return draft.add("ReduceMean", x, whole_numbers(axes), keepdims=1)


def _inverse_deviation(
    draft: Draft, x: ir.Value, mean: ir.Value, axes: list[int], epsilon: float, opset: int
) -> ir.Value:
    off = draft.add("Sub", x, mean)
    variance = _mean(draft, draft.add("Mul", off, off), axes, opset)
    return draft.add("Div", constant([1.0]), draft.add("Sqrt", draft.add("Add", variance, constant([epsilon]))))
