"""Compute in floats what a graph computes in 8-bit integers.

Before: static, y = op(DequantizeLinear(QuantizeLinear(x, s, z), s, z)).
After: y = op(Clip(x, (low - z) * s, (high - z) * s)), low and high of the 8-bit type. The saturation is kept, because
quantisers drop a Relu whose zero they saturate at (onnxruntime quantize_static).
Or dynamic, q, s, z = DynamicQuantizeLinear(x); y = Cast(MatMulInteger(q, w, z, w_z)) * (s * w_s), maybe with
round(bias / (s * w_s)) added to the integers; ConvInteger likewise.
After: y = MatMul(x, (w - w_z) * w_s) + bias. DynamicQuantizeLinear's range is that of x: nothing saturates.

The toolkit refuses DynamicQuantizeLinear; of DequantizeLinear it makes an int8 engine with int8 inputs and outputs,
where three layers have 32 to 35 dB in the simulator, or dies (IndexError in "fuse ops", asymmetric per-channel MatMul;
both 2.3.2, rk3588).

Preconditions, each with the node named: the scales of quantised activations are one constant a tensor; what is
dequantised was quantised by the same scale and zero point; 8, 16 or 4-bit integers; an integer product comes out as a
number only by the scales of its factors; no integer leaves or enters the graph.

Bounded: the rounding of activations is gone. Source: `surgery.quantised.EIGHT_BITS`, measured on graphs that
quantize_static and quantize_dynamic of onnxruntime 1.23 made. A Clip costs a pass over the tensor where it comes behind
an activation function (Conv and Clip are one layer, Conv and LeakyRelu no longer are): the float model is faster.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import common

from surgery.declaration import Declaration, Pass, Refused, Rewritten
from surgery.float_products import chosen_factor, float_product, insert_before
from surgery.fold_dequantised_weights import DEQUANTISING
from surgery.integer_products import PRODUCTS, Product, is_onnx, product_at, quantiser_of
from surgery.matching import Matched, opset_of
from surgery.naming import node_label
from surgery.quantised import EIGHT_BITS, LEVELS, chosen_from, saturation
from surgery.splice import Draft, constant, splice
from surgery.weights import tensor_of

ONE_SCALE = "one constant scale and zero point for a quantised tensor"
WHOLE_NUMBERS = "a tensor quantised to integers"
SAME_SCALE = "a tensor dequantised by the scale and zero point it was quantised by"
RESCALED = "a product of integers that its factors' scales make a number of"
INSIDE = "quantised values inside the graph only"

_BOUNDS_AS_INPUTS_SINCE = 11
"""Before it the bounds of Clip are attributes (ONNX operator changelog)."""

_FLOAT_MODEL = "the model as it was before quantisation"

DECLARATION = Declaration(
    name="decompose_quantised",
    summary="8-bit arithmetic becomes float arithmetic; saturation stays, rounding goes",
    exactness=EIGHT_BITS,
    after=frozenset({"fold_constants", "fold_dequantised_weights", "decompose_quantised_operators"}),
    matches=(
        Matched("QuantizeLinear", irrelevant={"axis": "of several scales", "saturate": "for fp8 only"}),
        Matched("DequantizeLinear", irrelevant={"axis": "of several scales"}),
        Matched("DynamicQuantizeLinear"),
        Matched("MatMulInteger"),
        Matched(
            "ConvInteger",
            irrelevant=dict.fromkeys(
                ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"), "Conv takes it over as it is"
            ),
        ),
    ),
    preconditions=(ONE_SCALE, WHOLE_NUMBERS, SAME_SCALE, RESCALED, INSIDE),
)


def decompose_quantised() -> Pass:
    """The pass; its hits are the dequantised tensors and the integer products."""

    def rewrite(given: ir.Model) -> Rewritten:
        refused = tuple(_refusals(given.graph))
        places = [*_dequantisers(given.graph), *_products(given.graph)]
        if refused or not places:
            return Rewritten(given, 0, refused or tuple(_left_over(given.graph)))
        model = given.clone()
        floats: dict[ir.Value, ir.Value] = {}
        products = [found for node in _products(model.graph) if isinstance(found := product_at(node), Product)]
        for product in products:
            factors = [
                chosen_factor(product.node, index, DECLARATION.name)
                if source is None
                else _float_of(product.node.inputs[index], floats)
                for index, source in enumerate(product.dynamic)
            ]
            float_product(product, factors, DECLARATION.name)
        for node in _dequantisers(model.graph):
            _replace(node, _float_of(node.inputs[0], floats))
        common.RemoveUnusedNodesPass()(model)
        left_over = tuple(_left_over(model.graph))
        return Rewritten(given, 0, left_over) if left_over else Rewritten(model, hits=len(places))

    return Pass(DECLARATION, rewrite)


def _dequantisers(graph: ir.Graph) -> list[ir.Node]:
    """Every DequantizeLinear of a tensor that is quantised in the graph."""
    return [node for node in graph if _dequantises(node) and quantiser_of(node.inputs[0]) is not None]


def _products(graph: ir.Graph) -> list[ir.Node]:
    return [node for node in graph if is_onnx(node, *PRODUCTS)]


def _dequantises(node: ir.Node) -> bool:
    return node.op_type == "DequantizeLinear" and node.domain in DEQUANTISING


def _quantises(node: ir.Node) -> bool:
    return node.op_type == "QuantizeLinear" and node.domain in DEQUANTISING


def _refusals(graph: ir.Graph) -> Iterator[Refused]:
    for node in graph:
        if _quantises(node):
            yield from _of_quantiser(node)
        elif _dequantises(node):
            yield from _of_dequantiser(node)
        elif is_onnx(node, *PRODUCTS):
            found = product_at(node)
            if isinstance(found, str):
                yield Refused(node_label(node), RESCALED, _FLOAT_MODEL, found)


def _of_quantiser(node: ir.Node) -> Iterator[Refused]:
    scale, zero = _parameters(node)
    if scale is None or scale.size != 1:
        got = "the scale is computed" if scale is None else f"{scale.size} scales"
        yield Refused(node_label(node), ONE_SCALE, _FLOAT_MODEL, got)
    elif zero is not None and zero.dtype not in LEVELS:
        yield Refused(node_label(node), WHOLE_NUMBERS, _FLOAT_MODEL, zero.dtype.name)


def _of_dequantiser(node: ir.Node) -> Iterator[Refused]:
    source = quantiser_of(node.inputs[0])
    if source is None:
        if chosen_from(node.inputs[0]) is None:  # else `fold_dequantised_weights` is for it
            yield Refused(node_label(node), INSIDE, _FLOAT_MODEL, f"'{_name(node)}' is not quantised in the graph")
    elif not _agree(source, node):
        yield Refused(node_label(node), SAME_SCALE, _FLOAT_MODEL, f"{node_label(source)} quantises by another")


def _name(node: ir.Node) -> str | None:
    return None if node.inputs[0] is None else node.inputs[0].name


def _parameters(node: ir.Node) -> tuple[ir.TensorProtocol | None, ir.TensorProtocol | None]:
    """The constant scale and zero point of a QuantizeLinear or DequantizeLinear."""
    return tensor_of(node.inputs[1]), tensor_of(node.inputs[2]) if len(node.inputs) > 2 else None


def _agree(source: ir.Node, node: ir.Node) -> bool:
    """Whether `node` dequantises by what `source` quantised by."""
    if source.op_type == "DynamicQuantizeLinear":
        return tuple(node.inputs[1:]) == tuple(source.outputs[1:])
    return all(_equal(one, other) for one, other in zip(_parameters(source), _parameters(node), strict=True))


def _equal(one: ir.TensorProtocol | None, other: ir.TensorProtocol | None) -> bool:
    values = [
        np.zeros(1) if tensor is None else tensor.numpy().astype(np.float64).reshape(-1) for tensor in (one, other)
    ]
    return bool(np.array_equal(values[0], values[1]))


def _float_of(value: ir.Value | None, floats: dict[ir.Value, ir.Value]) -> ir.Value:
    """What a quantised value stands for, as a float in the graph; `floats` holds what was made before."""
    assert value is not None
    node = value.producer()
    assert node is not None
    if node.op_type == "DynamicQuantizeLinear":
        assert node.inputs[0] is not None
        return node.inputs[0]
    if value not in floats:
        if _quantises(node):
            made = _clip(node)
        else:
            first = _float_of(node.inputs[0], floats)
            made = ir.node(node.op_type, [first, *node.inputs[1:]], node.attributes, num_outputs=len(node.outputs))
        insert_before(node, made, DECLARATION.name)
        floats.update(zip(node.outputs, made.outputs, strict=True))
    return floats[value]


def _clip(node: ir.Node) -> ir.Node:
    """What QuantizeLinear does to a number besides rounding it."""
    scale, zero = _parameters(node)
    assert scale is not None
    dtype, at = (ir.DataType.UINT8, 0) if zero is None else (zero.dtype, int(zero.numpy().reshape(())))
    low, high = saturation(float(scale.numpy().reshape(())), at, dtype)
    if opset_of(node) < _BOUNDS_AS_INPUTS_SINCE:
        return ir.node("Clip", [node.inputs[0]], {"min": low, "max": high})
    return ir.node("Clip", [node.inputs[0], constant(low, scale.dtype), constant(high, scale.dtype)])


def _replace(node: ir.Node, value: ir.Value) -> None:
    """Read `value` where the output of a DequantizeLinear was read."""
    if node.outputs[0].is_graph_output():
        draft = Draft()
        result = draft.add("Identity", value)
        splice(node, draft.nodes, [result], DECLARATION.name)
    else:
        node.outputs[0].replace_all_uses_with(value)


def _left_over(graph: ir.Graph) -> Iterator[Refused]:
    """Quantised values that something else reads than what makes numbers of them."""
    for node in graph:
        if not _quantises(node) and not is_onnx(node, "DynamicQuantizeLinear"):
            continue
        for value in node.outputs:
            readers = [f"{use.node.op_type} reads '{value.name}'" for use in value.uses()]
            readers += [f"'{value.name}' is an output of the graph"] if value.is_graph_output() else []
            yield from (Refused(node_label(node), INSIDE, _FLOAT_MODEL, reader) for reader in readers[:1])
