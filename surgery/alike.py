"""Whether two graphs compute the same, node for node: what a pass left that changed names or the header only."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from surgery.scopes import graphs_of

_DRAWING = "Random", "Bernoulli", "Multinomial", "Dropout"
"""How operators begin that may draw."""


def draws(model: ir.Model) -> bool:
    """Whether a run of `model` may give other numbers than the last one did."""
    nodes = [*model.graph.all_nodes(), *(node for function in model.functions.values() for node in function)]
    return any(node.op_type.startswith(_DRAWING) for node in nodes)


def alike(one: ir.Model, other: ir.Model) -> bool:
    """Whether both have the same nodes in the same order, joined alike, on the same weights, with like outer names.

    What this cannot vouch for is unlike: functions, nested graphs, operators that draw.
    """
    if one.functions or other.functions or draws(one) or len(one.graph) != len(other.graph):
        return False
    a, b = one.graph, other.graph
    if _named(a.inputs) != _named(b.inputs) or [v.name for v in a.outputs] != [v.name for v in b.outputs]:
        return False
    stands_for: dict[ir.Value, ir.Value] = dict(zip(a.inputs, b.inputs, strict=True))
    for left, right in zip(a, b, strict=True):
        if not _like_nodes(left, right, one, other, stands_for):
            return False
        stands_for.update(zip(left.outputs, right.outputs, strict=True))
    return all(stands_for.get(v) is w or _like_weights(v, w) for v, w in zip(a.outputs, b.outputs, strict=True))


def _named(values: Sequence[ir.Value]) -> list[tuple[str | None, ir.TypeProtocol | None, ir.Shape | None, bool]]:
    return [(value.name, value.type, value.shape, value.is_initializer()) for value in values]


def _like_nodes(
    left: ir.Node, right: ir.Node, one: ir.Model, other: ir.Model, stands_for: dict[ir.Value, ir.Value]
) -> bool:
    return (
        left.op_identifier() == right.op_identifier()
        and one.opset_imports.get(left.domain) == other.opset_imports.get(right.domain)
        and not any(True for node in (left, right) for _ in graphs_of(node))
        and left.attributes.keys() == right.attributes.keys()
        and all(_like_attributes(left.attributes[name], right.attributes[name]) for name in left.attributes)
        and len(left.outputs) == len(right.outputs)
        and [bool(value.name) for value in left.outputs] == [bool(value.name) for value in right.outputs]
        and len(left.inputs) == len(right.inputs)
        and all(_like_inputs(v, w, stands_for) for v, w in zip(left.inputs, right.inputs, strict=True))
    )


def _like_inputs(v: ir.Value | None, w: ir.Value | None, stands_for: dict[ir.Value, ir.Value]) -> bool:
    if v is None or w is None:
        return v is w
    return stands_for.get(v) is w or _like_weights(v, w)


def _like_weights(v: ir.Value, w: ir.Value) -> bool:
    made = any(value.producer() is not None or value.is_graph_input() for value in (v, w))
    return not made and v.const_value is not None and _like_tensors(v.const_value, w.const_value)


def _like_attributes(left: ir.Attr, right: ir.Attr) -> bool:
    if left.type != right.type or left.is_ref() or right.is_ref():
        return False
    if left.type == ir.AttributeType.TENSOR:
        return _like_tensors(left.as_tensor(), right.as_tensor())
    return left.type in _PLAIN and bool(left.value == right.value)


_PLAIN = {getattr(ir.AttributeType, name) for name in ("FLOAT", "FLOATS", "INT", "INTS", "STRING", "STRINGS")}


def _like_tensors(left: ir.TensorProtocol, right: ir.TensorProtocol | None) -> bool:
    """The same tensor, or the same bytes of one type and shape."""
    if left is right:
        return True
    if right is None or left.dtype != right.dtype or left.shape != right.shape or left.dtype == ir.DataType.STRING:
        return False
    return left.tobytes() == right.tobytes()
