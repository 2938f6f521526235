"""The types and shapes of one node's outputs, from those of its inputs: shape inference a node at a time.

Whole-graph inference stops where a size is computed by a chain that it does not follow; a pass that folds such a chain
knows its value and goes on behind it. What a file states of its inner tensors is not trusted: only what follows from
its inputs, for a stated shape may be stale.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx
import onnx_ir as ir
from onnx import defs, shape_inference

from surgery.matching import ONNX_DOMAINS

MOST_SIZES = 1024
"""Longest constant that is shown to inference: sizes, pads, axes and split lengths. A rank-8 Pad has 16."""

Types = dict[ir.Value, onnx.TypeProto]


def stated_type(value: ir.Value) -> onnx.TypeProto | None:
    """What the file says of `value`; None where it says no type."""
    if value.type is None:
        return None
    stated = ir.to_proto(value.type)
    if value.shape is not None:
        ir.serde.serialize_shape_into(stated, value.shape)
    return stated


def tensor_type(weight: ir.Value) -> onnx.TypeProto:
    """The type of a constant."""
    tensor = weight.const_value
    assert tensor is not None
    return onnx.helper.make_tensor_type_proto(int(tensor.dtype), list(tensor.shape.numpy()))


def is_constant(value: ir.Value | None) -> bool:
    """Whether `value` is a weight that no caller can replace."""
    return value is not None and value.const_value is not None and not value.is_graph_input()


def type_of(value: ir.Value, types: Mapping[ir.Value, onnx.TypeProto]) -> onnx.TypeProto | None:
    """The type of `value`: a constant's own, else what is known by now. No constant is put into `types`: as a key it
    would outlive its node, with all its memory."""
    return tensor_type(value) if is_constant(value) else types.get(value)


def output_types(node: ir.Node, types: Mapping[ir.Value, onnx.TypeProto], opset: int) -> Types:
    """What ONNX's inference says of the outputs of `node`, without those it says nothing of.

    A node of another domain, and one with nested graphs, keeps what the file states of its outputs.
    """
    made = [value for value in node.outputs if value.name]
    if node.domain not in ONNX_DOMAINS or any(attribute.type in _GRAPHS for attribute in node.attributes.values()):
        return {value: stated for value in made if (stated := stated_type(value)) is not None}
    read = [value for value in node.inputs if value is not None]
    known = {value.name or "": kind for value in read if (kind := type_of(value, types)) is not None}
    if len(known) < len({value.name for value in read}):
        return {}
    constants = [value for value in read if is_constant(value)]
    try:
        inferred = shape_inference.infer_node_outputs(
            defs.get_schema(node.op_type, opset, ""),
            ir.to_proto(node),
            known,
            {value.name or "": ir.to_proto(tensor) for value in constants if (tensor := _small(value)) is not None},
            opset_imports=[onnx.helper.make_opsetid("", opset)],
        )
    except Exception:  # noqa: BLE001 - onnx raises bare subclasses of Exception here; a node nobody can type stays
        return {}
    return {value: inferred[value.name] for value in made if value.name in inferred}


def static_sizes(kind: onnx.TypeProto | None) -> tuple[int, ...] | None:
    """The shape, where every size is a known number."""
    if kind is None or not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
        return None
    sizes = kind.tensor_type.shape.dim
    if any(not size.HasField("dim_value") or size.dim_value < 0 for size in sizes):
        return None
    return tuple(size.dim_value for size in sizes)


_GRAPHS = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)


def _small(weight: ir.Value) -> ir.TensorProtocol | None:
    tensor = weight.const_value
    return tensor if tensor is not None and tensor.size <= MOST_SIZES else None
