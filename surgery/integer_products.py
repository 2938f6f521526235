"""Integer products of dynamically quantised graphs, and the scales that make numbers of them again.

(a_q - a_zero) @ (b_q - b_zero) * (a_scale * b_scale) is about a @ b.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from surgery.matching import ONNX_DOMAINS
from surgery.quantised import CHOOSING, Numbers, carries, chosen_from
from surgery.weights import tensor_of

PRODUCTS = frozenset({"MatMulInteger", "ConvInteger"})
FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.DOUBLE, ir.DataType.BFLOAT16)
_ROUNDING = frozenset({"Cast", "Floor", "Round"})


@dataclass(frozen=True)
class Bias:
    """A bias that is divided by the scales, rounded and added to the integers.

    Attributes:
        value: the bias as a number.
        chain: what changes its shape on the way, in order.
    """

    value: ir.Value
    chain: tuple[ir.Node, ...]


@dataclass(frozen=True)
class Product:
    """An integer product that can be a float one.

    Attributes:
        node: the MatMulInteger or ConvInteger.
        end: the Mul whose output is the float product.
        dynamic: for each of its two factors the DynamicQuantizeLinear it comes from; None for a constant, or for
            what is chosen from one.
        factor: the product of the constant scales.
        bias: what is added to the integers.
    """

    node: ir.Node
    end: ir.Node
    dynamic: tuple[ir.Node | None, ir.Node | None]
    factor: Numbers
    bias: Bias | None


@dataclass
class _Scales:
    """A product of scales: how often each dynamic one, and the constant rest."""

    dynamic: Counter[ir.Value]
    constant: Numbers

    def __mul__(self, other: _Scales) -> _Scales:
        return _Scales(self.dynamic + other.dynamic, self.constant * other.constant)


def is_onnx(node: ir.Node | None, *operators: str) -> bool:
    """Whether `node` is one of these operators of ONNX's own domain."""
    return node is not None and node.domain in ONNX_DOMAINS and node.op_type in operators


def quantiser_of(value: ir.Value | None) -> ir.Node | None:
    """The node that quantised `value`, looked for through operators that carry it."""
    node = None if value is None else value.producer()
    while node is not None and carries(node):
        first = node.inputs[0]
        node = None if first is None else first.producer()
    return node if is_onnx(node, "QuantizeLinear", "DynamicQuantizeLinear") or _is_ms_quantiser(node) else None


def product_at(node: ir.Node) -> Product | str:
    """The float product that `node` can be; or what stands in the way."""
    dynamic = []
    for index in (0, 1):
        source = _factor(node, index)
        if isinstance(source, str):
            return source
        dynamic.append(source)
    wanted = Counter(source.outputs[1] for source in dynamic if source is not None)
    value, end, scales, bias = node.outputs[0], node, _Scales(Counter(), np.array(1.0)), None
    divisor: _Scales | None = None
    is_number, is_scaled = False, bool(wanted)
    while scales.dynamic != wanted or not is_number or not is_scaled or end is node:
        uses = list(value.uses())
        if len(uses) != 1 or value.is_graph_output():
            return f"'{value.name}' is read {len(uses)} times"
        end, index = uses[0]
        if is_onnx(end, "Cast") and end.attributes["to"].as_int() in FLOATS:
            is_number = True
        elif is_onnx(end, "Mul") and is_number and (more := _scales(end.inputs[1 - index])) is not None:
            scales, is_scaled = scales * more, True
        elif is_onnx(end, "Add") and not is_number and bias is None:
            found = _bias(end.inputs[1 - index])
            if found is None:
                return f"'{value.name}' gets a bias that is not divided by the scales"
            bias, divisor = found
        else:
            return f"{end.op_type} reads '{value.name}'"
        value = end.outputs[0]
    if divisor is not None and not _same(divisor, scales):
        return "its bias is divided by other scales"
    return Product(node, end, (dynamic[0], dynamic[1]), scales.constant, bias)


def _factor(node: ir.Node, index: int) -> ir.Node | str | None:
    """The DynamicQuantizeLinear that a factor comes from; None for a constant or a choice from one; or a trouble."""
    zero_point = node.inputs[index + 2] if len(node.inputs) > index + 2 else None
    chosen = chosen_from(node.inputs[index])
    if chosen is not None:
        zero = tensor_of(zero_point)
        if zero_point is not None and zero is None:
            return f"the zero point of '{chosen.weight.name}' is computed"
        several = chosen.chain and zero is not None and zero.size != 1
        return f"'{chosen.weight.name}' has several zero points, and is chosen from" if several else None
    source = quantiser_of(node.inputs[index])
    name = None if node.inputs[index] is None else node.inputs[index].name  # type: ignore[union-attr]
    if source is None or source.op_type != "DynamicQuantizeLinear":
        return f"'{name}' is neither constant nor quantised by DynamicQuantizeLinear"
    if zero_point is None or zero_point is not source.outputs[2]:
        return f"the zero point of '{name}' is not its own"
    return source


def _scales(value: ir.Value | None) -> _Scales | None:
    """What `value` is the product of, if of scales alone."""
    todo, found = [value], _Scales(Counter(), np.array(1.0))
    while todo:
        part = todo.pop()
        tensor = tensor_of(part)
        if tensor is not None:
            found = found * _Scales(Counter(), tensor.numpy())
            continue
        node = None if part is None else part.producer()
        if part is None or node is None:
            return None
        if is_onnx(node, "DynamicQuantizeLinear") and part is node.outputs[1]:
            found = found * _Scales(Counter([part]), np.array(1.0))
        elif is_onnx(node, "Mul"):
            todo += node.inputs
        elif is_onnx(node, "Identity", "Squeeze"):
            todo.append(node.inputs[0])
        else:
            return None
    return found


def _bias(value: ir.Value | None) -> tuple[Bias, _Scales] | None:
    """The bias behind round(bias / scales), and these scales."""
    chain: list[ir.Node] = []
    node = None if value is None else value.producer()
    while node is not None and not is_onnx(node, "Div"):
        if is_onnx(node, *CHOOSING):
            chain.append(node)
        elif not is_onnx(node, *_ROUNDING):
            return None
        node = None if node.inputs[0] is None else node.inputs[0].producer()
    scales = None if node is None else _scales(node.inputs[1])
    if node is None or scales is None or node.inputs[0] is None:
        return None
    return Bias(node.inputs[0], tuple(reversed(chain))), scales


def _same(one: _Scales, other: _Scales) -> bool:
    return one.dynamic == other.dynamic and np.array_equal(one.constant, other.constant)


def _is_ms_quantiser(node: ir.Node | None) -> bool:
    return node is not None and node.domain == "com.microsoft" and node.op_type == "QuantizeLinear"
