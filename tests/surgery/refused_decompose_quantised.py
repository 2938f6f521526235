"""Quantised graphs that have no float form, for each precondition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import TensorProto, helper

from surgery.decompose_quantised import INSIDE, ONE_SCALE, RESCALED, SAME_SCALE, WHOLE_NUMBERS, decompose_quantised
from surgery.decompose_quantised_operators import CONSTANT, HAS_FORM, decompose_quantised_operators
from tests.gates.small_graphs import constant, model, proto, tensor
from tests.surgery.refusals import Refusal

U8, I8, I32, FLOAT = TensorProto.UINT8, TensorProto.INT8, TensorProto.INT32, TensorProto.FLOAT
WEIGHT = constant("w", np.arange(12).reshape(4, 3), np.uint8)


def node(op: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs, outputs, op, **attributes)


def static(
    *nodes: onnx.NodeProto, kind: int = FLOAT, given: int = FLOAT, constants: Sequence[Any] = (), opset: int = 17
) -> ir.Model:
    """x, the scale s and the zero point z, and whatever `nodes` make y of."""
    return model(
        nodes, [tensor("x", [4], given)], [tensor("y", [4], kind)],
        [constant("s", 0.1), constant("z", 3, np.uint8), *constants], opset=opset,
    )  # fmt: skip


QUANTISE = node("QuantizeLinear", ["x", "s", "z"], ["q"])
DEQUANTISE = node("DequantizeLinear", ["q", "s", "z"], ["y"])


def scale_is_computed() -> ir.Model:
    return static(node("ReduceMax", ["x"], ["s1"]), node("QuantizeLinear", ["x", "s1", "z"], ["q"]),
                  node("DequantizeLinear", ["q", "s1", "z"], ["y"]))  # fmt: skip


def several_scales() -> ir.Model:
    scales = [constant("ss", [0.1, 0.2, 0.3, 0.4]), constant("zz", [1, 2, 3, 4], np.uint8)]
    return static(node("QuantizeLinear", ["x", "ss", "zz"], ["q"], axis=0),
                  node("DequantizeLinear", ["q", "ss", "zz"], ["y"], axis=0), constants=scales)  # fmt: skip


def eighth_floats() -> ir.Model:
    zero = helper.make_tensor("f", TensorProto.FLOAT8E4M3FN, [], [0.0])
    return static(node("QuantizeLinear", ["x", "s", "f"], ["q"]), node("DequantizeLinear", ["q", "s", "f"], ["y"]),
                  constants=[zero], opset=19)  # fmt: skip


def other(name: str) -> ir.Model:
    """Dequantised by another scale `s1` or zero point `z1`, or by none."""
    read = {"s1": ["q", "s1", "z"], "z1": ["q", "s", "z1"], "none": ["q", "s"]}[name]
    others = [constant("s1", 0.2), constant("z1", 4, np.uint8)]
    return static(QUANTISE, node("DequantizeLinear", read, ["y"]), constants=others)


def product(*nodes: onnx.NodeProto, zero: str = "z", extra: Sequence[Any] = ()) -> ir.Model:
    """An integer product `i` of x quantised dynamically and w, and what `nodes` make y of."""
    quantise = node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"])
    multiply = node("MatMulInteger", ["q", "w", *([zero] if zero else [])], ["i"])
    constants = [WEIGHT, constant("ws", 0.1), constant("three", 3, np.uint8), *extra]
    return model([quantise, multiply, *nodes], [tensor("x", [2, 4])], [tensor("y", [2, 3])], constants)


CAST = node("Cast", ["i"], ["f"], to=FLOAT)
BOTH = node("Mul", ["s", "ws"], ["sw"])
RESCALE = node("Mul", ["f", "sw"], ["y"])


def twice() -> ir.Model:
    return product(CAST, node("Mul", ["f", "f"], ["y"]))


def biased(divisor: str) -> ir.Model:
    """The bias `b` is divided by `divisor` instead of the scales."""
    steps = [
        BOTH,
        node("Div", ["b", divisor], ["b0"]),
        node("Cast", ["b0"], ["b1"], to=I32),
        node("Add", ["i", "b1"], ["j"]),
        node("Cast", ["j"], ["f"], to=FLOAT),
        RESCALE,
    ]
    return product(*steps, extra=[constant("b", [1, 2, 3])])


def fixed_bias() -> ir.Model:
    steps = [BOTH, node("Add", ["i", "b"], ["j"]), node("Cast", ["j"], ["f"], to=FLOAT), RESCALE]
    return product(*steps, extra=[constant("b", [1, 2, 3], np.int32)])


def other_zero(name: str) -> ir.Model:
    return product(CAST, BOTH, RESCALE, zero=name)


def integers_out() -> ir.Model:
    return static(node("QuantizeLinear", ["x", "s", "z"], ["y"]), kind=U8)


def integers_in() -> ir.Model:
    return static(node("DequantizeLinear", ["x", "s", "z"], ["y"]), given=U8)


def scale_read_too() -> ir.Model:
    return product(CAST, BOTH, node("Mul", ["f", "sw"], ["r"]), node("Mul", ["r", "s"], ["y"]))


def integers_given() -> ir.Model:
    nodes = [node("MatMulInteger", ["x", "w"], ["i"]), CAST, node("Mul", ["f", "ws"], ["y"])]
    return model(nodes, [tensor("x", [2, 4], U8)], [tensor("y", [2, 3])], [WEIGHT, constant("ws", 0.1)])


def _of(precondition: str, at: str, got: str, build: Any, *arguments: Any) -> Refusal:
    return Refusal(decompose_quantised(), precondition, at, got, lambda: build(*arguments))


def microsoft(*nodes: onnx.NodeProto, constants: Sequence[Any] = (), shape: Sequence[int] = (1, 2, 4)) -> ir.Model:
    """`nodes` make y of x; onnxruntime's operators are known."""
    made = proto(nodes, [tensor("x", shape)], [tensor("y", [None] * 3)],  # type: ignore[list-item]
                 [constant("s", 0.1), constant("z", 3, np.uint8), *constants])  # fmt: skip
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return ir.from_proto(made)


def operator(op: str, inputs: Sequence[str], domain: str = "com.microsoft", **options: Any) -> ir.Model:
    """x, quantised to q, through one operator and back."""
    constants = options.pop("constants", ())
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("ReduceMax", ["x"], ["top"], keepdims=0),
        node("QuantizeLinear", ["top", "s", "z"], ["qtop"]),
        node("Cast", ["x"], ["b"], to=I32),
        helper.make_node(op, inputs, ["r"], op, domain=domain, **options),
        node("DequantizeLinear", ["r", "s", "z"], ["y"]),
    ]
    return microsoft(*nodes, constants=constants)


SCALES = (constant("ss", [0.1, 0.2]), constant("zz", [1, 2], np.uint8), constant("c", [True], bool))
KERNEL = (constant("k", np.ones((2, 2, 1)), np.uint8), *SCALES)
UNEVEN = (constant("k", np.ones((4, 3)), np.uint8), constant("four", [0.1, 0.2, 0.3, 0.4]))
LSTM = ["x", "w8", "r8", "", "", "", "", "", "s", "z", "s", "z"]


def computed_weights() -> ir.Model:
    nodes = [
        node("DynamicQuantizeLinear", ["x"], ["w8", "_s", "_z"]),
        helper.make_node("DynamicQuantizeLSTM", ["x", "w8", "w8", *LSTM[3:]], ["y"], "net", domain="com.microsoft",
                         hidden_size=1),
    ]  # fmt: skip
    return microsoft(*nodes)


def _operator(got: str, op: str, inputs: Sequence[str], domain: str = "com.microsoft", **options: Any) -> Refusal:
    build = lambda: operator(op, inputs, domain, **options)  # noqa: E731
    return Refusal(decompose_quantised_operators(), CONSTANT, op, got, build)


_Q, _TOP = ["q", "s", "z"], ["q", "top", "z"]

REFUSALS = (
    _of(ONE_SCALE, "QuantizeLinear", "the scale is computed", scale_is_computed),
    _of(ONE_SCALE, "QuantizeLinear", "4 scales", several_scales),
    _of(WHOLE_NUMBERS, "QuantizeLinear", "FLOAT8E4M3FN", eighth_floats),
    _of(SAME_SCALE, "DequantizeLinear", "node 'QuantizeLinear' quantises by another", other, "s1"),
    _of(SAME_SCALE, "DequantizeLinear", "node 'QuantizeLinear' quantises by another", other, "z1"),
    _of(SAME_SCALE, "DequantizeLinear", "node 'QuantizeLinear' quantises by another", other, "none"),
    _of(RESCALED, "MatMulInteger", "Add reads 'f'", product, CAST, BOTH, node("Add", ["f", "sw"], ["y"])),
    _of(RESCALED, "MatMulInteger", "'f' is read 2 times", twice),
    _of(RESCALED, "MatMulInteger", "'y' is read 0 times", product, CAST, node("Mul", ["f", "ws"], ["y"])),
    _of(RESCALED, "MatMulInteger", "its bias is divided by other scales", biased, "ws"),
    _of(RESCALED, "MatMulInteger", "a bias that is not divided by the scales", fixed_bias),
    _of(RESCALED, "MatMulInteger", "'x' is neither constant nor quantised", integers_given),
    _of(RESCALED, "MatMulInteger", "the zero point of 'q' is not its own", other_zero, "three"),
    _of(RESCALED, "MatMulInteger", "the zero point of 'q' is not its own", other_zero, ""),
    _of(INSIDE, "QuantizeLinear", "'y' is an output of the graph", integers_out),
    _of(INSIDE, "QuantizeLinear", "Cast reads 'q'", static, QUANTISE, node("Cast", ["q"], ["y"], to=FLOAT)),
    _of(INSIDE, "DynamicQuantizeLinear", "Mul reads 's'", scale_read_too),
    _of(INSIDE, "DequantizeLinear", "'x' is not quantised in the graph", integers_in),
    *(
        Refusal(decompose_quantised_operators(), HAS_FORM, op, f"{op} has none", lambda op=op: operator(op, ["q"]))  # type: ignore[misc]
        for op in ("QAttention", "QOrderedMatMul", "QLinearReduceMean", "GatherBlockQuantized")
    ),
    _operator("the scale or zero point of 'q' is computed", "QLinearAdd", [*_TOP, *_Q, "s", "z"]),
    _operator("the scale or zero point of 'q' is computed", "QLinearSigmoid", ["q", "s", "qtop", "s", "z"]),
    _operator("the scale of its output is computed", "QLinearLeakyRelu", [*_Q, "top", "z"]),
    _operator("'q' has 2 scales", "QLinearMul", ["q", "ss", "zz", *_Q, "s", "z"], constants=SCALES),
    _operator("'q' has 2 scales", "QLinearWhere", ["c", "q", "ss", "zz", *_Q, "s", "z"], constants=SCALES),
    _operator("'q' has 2 scales", "QLinearConcat", ["s", "z", "q", "ss", "zz", *_Q], constants=SCALES, axis=1),
    _operator("its axis 1 is one of opset 12", "QLinearSoftmax", [*_Q, "s", "z"], axis=1, opset=12),
    _operator("its channels come last", "QLinearGlobalAveragePool", [*_Q, "s", "z"], channels_last=1),
    _operator(
        "its channels come last", "QLinearConv", [*_Q, "k", "s", "z", "s", "z"], constants=KERNEL, channels_last=1
    ),
    _operator("'k' is computed", "QLinearConv", [*_Q, "k", "top", "z", "s", "z"], "", constants=KERNEL),
    _operator("its bias 'b' or the scales", "QLinearConv", [*_Q, "k", "s", "z", "s", "z", "b"], "", constants=KERNEL),
    _operator("do not fit each other", "DynamicQuantizeMatMul", ["x", "k", "four"], constants=UNEVEN),
    _operator("its weights are computed", "DynamicQuantizeMatMul", ["x", "q", "s", "z"]),
    _operator(
        "reordered or of 2 bits", "MatMulNBits", ["x", "k", "ss"], constants=KERNEL, bits=2, K=1, N=2, block_size=16
    ),
    Refusal(decompose_quantised_operators(), CONSTANT, "net", "its weights are computed", computed_weights),
)
