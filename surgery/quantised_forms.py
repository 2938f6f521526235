"""The float forms of operators that take or give quantised tensors.

Each function drafts nodes for one operator and returns what stands for its output, or a sentence of what stands in the
way. Layouts: ONNX operator specification (QLinearConv, QLinearMatMul) and onnxruntime's contrib operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx_ir as ir

from surgery.graph import input_at
from surgery.quantised import Numbers, chosen_from, dequantised
from surgery.splice import Draft, constant
from surgery.weights import tensor_of

Form = Callable[[ir.Node, Draft], "ir.Value | str"]

_CHANNELS_LAST = "channels_last"


def _input(node: ir.Node, index: int) -> ir.Value | None:
    return input_at(node, index)


def _number(node: ir.Node, draft: Draft, index: int, axis: int = 0) -> ir.Value | str:
    """The float of a quantised input at `index`, its scale and zero point behind it.

    A constant is made float here, and so is one that values are chosen from: `fold_dequantised_weights` has run.
    """
    value, scale, zero = (_input(node, index + offset) for offset in range(3))
    known = [tensor_of(part) for part in (value, scale, zero)]
    if known[1] is None or (zero is not None and known[2] is None):
        return f"the scale or zero point of '{None if value is None else value.name}' is computed"
    if known[0] is not None:
        return constant(dequantised(known[0], known[1], known[2], axis), known[1].dtype)
    if known[1].size != 1:
        return f"'{None if value is None else value.name}' has {known[1].size} scales"
    chosen = chosen_from(value)
    if chosen is None:
        return draft.add("DequantizeLinear", value, scale, zero)
    made = constant(dequantised(chosen.tensor, known[1], known[2]), known[1].dtype)
    for step in reversed(chosen.chain):
        made = draft.add(step.op_type, made, *step.inputs[1:], copied=step.attributes)
    return made


def _attributes(node: ir.Node, *dropped: str) -> dict[str, ir.Attr]:
    return {name: value for name, value in node.attributes.items() if name not in dropped}


def _quantise(node: ir.Node, draft: Draft, value: ir.Value, index: int) -> ir.Value | str:
    scale = tensor_of(_input(node, index))
    if scale is None or scale.size != 1:
        return "the scale of its output is computed, or there are several"
    return draft.add("QuantizeLinear", value, node.inputs[index], _input(node, index + 1))


def _elementwise(op: str, *operands: int, result: int) -> Form:
    """An operator on quantised inputs that lie at `operands`, whose output's scale lies at `result`."""

    def form(node: ir.Node, draft: Draft) -> ir.Value | str:
        if node.attributes.get_int(_CHANNELS_LAST, 0):
            return "its channels come last"
        numbers = [_number(node, draft, index) for index in operands]
        trouble = next((number for number in numbers if isinstance(number, str)), None)
        if trouble is not None:
            return trouble
        made = ir.node(op, numbers, _attributes(node, _CHANNELS_LAST))  # type: ignore[arg-type]
        draft.nodes.append(made)
        return _quantise(node, draft, made.outputs[0], result)

    return form


def _concat(node: ir.Node, draft: Draft) -> ir.Value | str:
    numbers = [_number(node, draft, index) for index in range(2, len(node.inputs), 3)]
    trouble = next((number for number in numbers if isinstance(number, str)), None)
    if trouble is not None:
        return trouble
    made = ir.node("Concat", numbers, node.attributes)  # type: ignore[arg-type]
    draft.nodes.append(made)
    return _quantise(node, draft, made.outputs[0], 0)


def _where(node: ir.Node, draft: Draft) -> ir.Value | str:
    one, other = _number(node, draft, 1), _number(node, draft, 4)
    if isinstance(one, str) or isinstance(other, str):
        return one if isinstance(one, str) else str(other)
    return _quantise(node, draft, draft.add("Where", node.inputs[0], one, other), 7)


def _product(op: str, weight_axis: Callable[[ir.Node], int], bias: int, result: int) -> Form:
    """A product of the inputs at 0 and 3, with 32-bit integers at `bias` that have the scale of the product."""

    def form(node: ir.Node, draft: Draft) -> ir.Value | str:
        if node.attributes.get_int(_CHANNELS_LAST, 0):
            return "its channels come last"
        one, other = _number(node, draft, 0), _number(node, draft, 3, weight_axis(node))
        added = _bias(node, bias)
        for part in (one, other, added):
            if isinstance(part, str):
                return part
        read = [one, other, *([] if added is None else [added])]
        made = ir.node(op, read, _attributes(node, _CHANNELS_LAST))  # type: ignore[arg-type]
        draft.nodes.append(made)
        # QGemm without a scale for its output gives floats.
        is_float = _input(node, result) is None
        return made.outputs[0] if is_float else _quantise(node, draft, made.outputs[0], result)

    return form


def _bias(node: ir.Node, index: int) -> ir.Value | str | None:
    value = _input(node, index)
    if value is None:
        return None
    parts = [tensor_of(part) for part in (value, node.inputs[1], node.inputs[4])]
    if any(part is None for part in parts):
        return f"its bias '{value.name}' or the scales of it are computed"
    integers, one, other = (part.numpy() for part in parts if part is not None)
    alpha = node.attributes.get_float("alpha", 1.0)
    return constant((integers * (one * other * np.float32(alpha))).astype(np.float32))


def _softmax(node: ir.Node, draft: Draft) -> ir.Value | str:
    axis, opset = node.attributes.get_int("axis", -1), node.attributes.get_int("opset", 13)
    if axis != -1 and opset < 13:  # several axes before opset 13
        return f"its axis {axis} is one of opset {opset}"
    number = _number(node, draft, 0)
    return number if isinstance(number, str) else _quantise(node, draft, draft.add("Softmax", number, axis=axis), 3)


def _dynamic_matmul(node: ir.Node, draft: Draft) -> ir.Value | str:
    weight, bias = _weight(node, 1, 2, 3, -1), _input(node, 4)
    if isinstance(weight, str):
        return weight
    result = draft.add("MatMul", node.inputs[0], constant(weight))
    return result if bias is None else draft.add("Add", result, bias)


def _integer_to_float(node: ir.Node, draft: Draft) -> ir.Value | str:
    """As MatMulInteger, which `decompose_quantised` knows."""
    one, other, bias = node.inputs[2], node.inputs[3], _input(node, 6)
    product = draft.add("MatMulInteger", *node.inputs[:2], _input(node, 4), _input(node, 5))
    number = draft.add("Cast", product, to=ir.DataType.FLOAT.value)
    result = draft.add("Mul", number, draft.add("Mul", one, other))
    return result if bias is None else draft.add("Add", result, bias)


def _dynamic_lstm(node: ir.Node, draft: Draft) -> ir.Value | str:
    weights = [_lstm_weight(node, index, 8 + 2 * (index - 1)) for index in (1, 2)]
    trouble = next((weight for weight in weights if isinstance(weight, str)), None)
    if trouble is not None:
        return trouble
    read = [node.inputs[0], *(constant(weight) for weight in weights), *node.inputs[3:8]]
    while read[-1] is None:
        read.pop()
    made = ir.node("LSTM", read, node.attributes, num_outputs=len(node.outputs))
    draft.nodes.append(made)
    return made.outputs[0]


def _lstm_weight(node: ir.Node, index: int, scale: int) -> Numbers | str:
    """A weight [directions, in, 4 * hidden] as LSTM has it: [directions, 4 * hidden, in]."""
    parts = [tensor_of(_input(node, at)) for at in (index, scale, scale + 1)]
    if parts[0] is None or parts[1] is None:
        return "its weights are computed"
    factor, zero = parts[1].numpy(), 0 if parts[2] is None else parts[2].numpy().astype(np.int32)
    # One for each direction, or one for each direction and column.
    shape = (factor.shape[0], 1, -1)
    centred = parts[0].numpy().astype(np.int32) - (zero if isinstance(zero, int) else zero.reshape(shape))
    return np.ascontiguousarray((centred.astype(np.float32) * factor.reshape(shape)).transpose(0, 2, 1))


def _weight(node: ir.Node, index: int, scale: int, zero: int, axis: int) -> Numbers | str:
    parts = [tensor_of(_input(node, at)) for at in (index, scale, zero)]
    if parts[0] is None or parts[1] is None:
        return "its weights are computed"
    return dequantised(parts[0], parts[1], parts[2], axis)


def _n_bits(node: ir.Node, draft: Draft) -> ir.Value | str:
    """Weights [n, blocks, bytes] of 4 or 8 bits, low nibble first; a scale and a zero point a block."""
    bits, size = node.attributes.get_int("bits", 4), node.attributes.get_int("block_size", 0)
    columns, depth = node.attributes.get_int("N", 0), node.attributes.get_int("K", 0)
    packed, scale, zero = (tensor_of(_input(node, at)) for at in (1, 2, 3))
    if packed is None or scale is None or bits not in (4, 8) or _input(node, 4) is not None:
        return f"its weights are computed, reordered or of {bits} bits"
    blocks = -(-depth // size)
    factor = scale.numpy().reshape(columns, blocks, 1)
    centre: Numbers = np.full((columns, blocks, 1), 1 << (bits - 1), np.int32)
    if zero is not None and zero.dtype == ir.DataType.UINT8:
        centre = _unpacked(zero.numpy().reshape(columns, -1), bits)[:, :blocks, None]
    elif zero is not None:
        centre = zero.numpy().reshape(columns, blocks, 1)
    weight = (_unpacked(packed.numpy().reshape(columns, blocks, -1), bits) - centre) * factor
    weight = np.ascontiguousarray(weight.reshape(columns, -1)[:, :depth].T.astype(factor.dtype))
    result = draft.add("MatMul", node.inputs[0], constant(weight, scale.dtype))
    bias = _input(node, 5)
    return result if bias is None else draft.add("Add", result, bias)


def _unpacked(packed: Numbers, bits: int) -> Numbers:
    if bits == 8:
        return packed.astype(np.int32)
    return np.stack([packed & 15, packed >> 4], axis=-1).reshape(*packed.shape[:-1], -1).astype(np.int32)


_CONV = _product("Conv", lambda node: 0, bias=8, result=6)

FORMS: Mapping[tuple[str, str], Form] = {
    ("", "QLinearConv"): _CONV,
    ("", "QLinearMatMul"): _product("MatMul", lambda node: -1, bias=8, result=6),
    **{
        ("com.microsoft", op): form
        for op, form in {
            "QLinearConv": _CONV,
            "QGemm": _product("Gemm", lambda node: 1 - node.attributes.get_int("transB", 0), bias=6, result=7),
            "QLinearAdd": _elementwise("Add", 0, 3, result=6),
            "QLinearMul": _elementwise("Mul", 0, 3, result=6),
            "QLinearLeakyRelu": _elementwise("LeakyRelu", 0, result=3),
            "QLinearSigmoid": _elementwise("Sigmoid", 0, result=3),
            "QLinearGlobalAveragePool": _elementwise("GlobalAveragePool", 0, result=3),
            "QLinearAveragePool": _elementwise("AveragePool", 0, result=3),
            "QLinearSoftmax": _softmax,
            "QLinearConcat": _concat,
            "QLinearWhere": _where,
            "DynamicQuantizeMatMul": _dynamic_matmul,
            "MatMulIntegerToFloat": _integer_to_float,
            "DynamicQuantizeLSTM": _dynamic_lstm,
            "MatMulNBits": _n_bits,
        }.items()
    },
}
"""The form of each operator by domain and type."""

WITHOUT_FORM = frozenset(
    {"GatherBlockQuantized", "MatMulBnb4", "MatMulFpQ4", "QAttention", "QEmbedLayerNormalization", "QMoE"}
    | {"QLinearReduceMean", "QuantizeBFP", "DequantizeBFP"}
)
"""Quantised operators of onnxruntime (contrib operators of 1.23) that have none here."""
