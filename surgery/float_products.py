"""The float form of an integer product."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from surgery.graph import graph_of
from surgery.integer_products import Product
from surgery.naming import node_stem
from surgery.quantised import Numbers, chosen_from
from surgery.splice import Draft, constant, name_drafted, splice
from surgery.weights import tensor_of

_FLOAT_FORM = {"MatMulInteger": "MatMul", "ConvInteger": "Conv"}


def float_product(product: Product, factors: Sequence[ir.Value | None], made_by: str) -> None:
    """Put MatMul or Conv in the place of `product`'s end.

    Args:
        product: what to replace; its graph is changed.
        factors: the factors that vary as floats; None for one that is constant.
        made_by: the pass.
    """
    node, rest = product.node, product.factor
    inputs = list(factors)
    for index, factor in enumerate(factors):
        if factor is None:
            weight = _centred(node, index)
            scaled = _scaled(weight, rest, node.op_type, index)
            inputs[index] = constant(weight if scaled is None else scaled)
            rest = rest if scaled is None else np.array(1.0)
    draft = Draft()
    bias = product.bias
    if bias is not None and node.op_type == "ConvInteger" and _is_channels(bias.value, inputs[1]):
        inputs, bias = [*inputs, bias.value], None
    result = draft.add(_FLOAT_FORM[node.op_type], *inputs, **{name: a.value for name, a in node.attributes.items()})
    if not np.all(rest == 1):
        result = draft.add("Mul", result, constant(rest))
    if bias is not None:
        added = bias.value
        for step in bias.chain:
            draft.nodes.append(ir.node(step.op_type, [added, *step.inputs[1:]], step.attributes))
            added = draft.nodes[-1].outputs[0]
        result = draft.add("Add", result, added)
    splice(product.end, draft.nodes, [result], made_by)


def chosen_factor(node: ir.Node, index: int, made_by: str) -> ir.Value | None:
    """A factor of `node` that is chosen from a constant: the same choice from that as float32 without its zero point,
    put into the graph; None for any other factor."""
    chosen = chosen_from(node.inputs[index])
    if chosen is None or not chosen.chain:
        return None
    value = constant(_without_zero(node, index, chosen.tensor))
    for step in reversed(chosen.chain):
        made = ir.node(step.op_type, [value, *step.inputs[1:]], step.attributes)
        insert_before(step, made, made_by)
        value = made.outputs[0]
    return value


def insert_before(node: ir.Node, made: ir.Node, made_by: str) -> None:
    """Put `made` before `node`, under a name that says which pass made it; its new constants become weights."""
    graph = graph_of(node)
    name_drafted(graph, made, f"{node_stem(node)}/{made_by}", f"{node.outputs[0].name}.{made_by}")
    graph.insert_before(node, made)


def _centred(node: ir.Node, index: int) -> Numbers:
    """The constant factor without its zero point, as float32."""
    tensor = tensor_of(node.inputs[index])
    assert tensor is not None
    return _without_zero(node, index, tensor)


def _without_zero(node: ir.Node, index: int, tensor: ir.TensorProtocol) -> Numbers:
    """What the factor at `index` holds, less the zero point that `node` gives it, as float32."""
    zero = tensor_of(node.inputs[index + 2]) if len(node.inputs) > index + 2 else None
    weight: Numbers = tensor.numpy().astype(np.float32)
    if zero is not None:
        weight -= _along(zero.numpy().astype(np.float32), weight, _output_axis(node.op_type, index))
    return weight


def _output_axis(op: str, index: int) -> int:
    """The axis of a constant factor that the output keeps: rows of A, columns of B, filters of a Conv."""
    return 0 if op == "ConvInteger" else (-1 if index else -2)


def _along(values: Numbers, weight: Numbers, axis: int) -> Numbers:
    """One value, or one for each index of `axis`, so that it works on `weight`."""
    if values.size == 1:
        return values.reshape(())
    shape = [1] * weight.ndim
    shape[axis] = values.size
    return values.reshape(shape)


def _scaled(weight: Numbers, scale: Numbers, op: str, index: int) -> Numbers | None:
    """`weight` times a scale of the output; None where the scale does not lie along the weight's axis of it."""
    if scale.size == 1:
        weight *= np.float32(scale.reshape(()))
        return weight
    axis = _output_axis(op, index)
    of_output = (1 - weight.ndim) if op == "ConvInteger" else axis
    lies_along = scale.ndim >= -of_output and scale.shape[of_output] == scale.size == weight.shape[axis]
    if weight.ndim < 2 or not lies_along:
        return None
    weight *= _along(scale.astype(np.float32).reshape(-1), weight, axis)
    return weight


def _is_channels(value: ir.Value, weight: ir.Value | None) -> bool:
    """Whether `value` is a constant with one entry a filter, as Conv takes its bias."""
    tensor, filters = tensor_of(value), None if weight is None else weight.shape
    return tensor is not None and filters is not None and tuple(tensor.shape.numpy()) == (filters[0],)
