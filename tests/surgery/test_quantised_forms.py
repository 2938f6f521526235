"""Float forms of quantised operators, against onnxruntime on the operators themselves and numpy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from surgery.quantised_forms import FORMS, WITHOUT_FORM
from surgery.splice import Draft, splice
from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import Array, run

RANDOM = np.random.default_rng(3)
U8 = TensorProto.UINT8
SCALES: Mapping[str, Any] = {"s": np.float32(0.03), "z": np.uint8(120), "so": np.float32(0.05), "zo": np.uint8(130)}


def quantised(
    op: str, inputs: str, shape: tuple[int, ...], made: int = U8, domain: str = "com.microsoft", **options: Any
) -> ir.Model:
    """One operator on a uint8 `x` (and `u`) of `shape`, and other constants."""
    constants = {**SCALES, **options.pop("constants", {})}
    rank = options.pop("rank", len(shape))
    read = [name if name != "-" else "" for name in inputs.split()]
    node = helper.make_node(op, read, ["y"], "op", domain=domain, **options)
    given = [tensor(name, shape, U8) for name in ("x", "u") if name in read]
    weights = [constant(name, array, array.dtype) for name, array in constants.items() if name in read]
    proto = as_of(node, given, made, rank, weights)
    return ir.from_proto(proto)


def as_of(node: onnx.NodeProto, given: list[Any], made: int, rank: int, weights: list[Any]) -> onnx.ModelProto:
    graph = helper.make_graph(
        [node], "small", given, [tensor("y", [f"d{axis}" for axis in range(rank)], made)], weights
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def floating(made: ir.Model) -> str | None:
    """Put the float form in the place of the one node; why there is none."""
    node = made.graph[0]
    draft = Draft()
    value = FORMS[node.domain, node.op_type](node, draft)
    if isinstance(value, str):
        return value
    splice(node, draft.nodes, [value], "test")
    assert node.op_type not in [one.op_type for one in made.graph]
    return None


def levels(*shape: int) -> Array:
    return RANDOM.integers(0, 256, shape).astype(np.uint8)


W8 = {"w": levels(4, 3), "sw": np.array([0.01, 0.02, 0.03], np.float32), "zw": np.array([128, 120, 7], np.uint8)}
FILTERS = {
    "w": RANDOM.integers(-128, 128, (2, 3, 3)).astype(np.int8),
    "sw": np.array([0.01, 0.02], np.float32),
    "zw": np.zeros(2, np.int8),
    "b": np.array([300, -500], np.int32),
}
OPERATORS: dict[str, tuple[str, tuple[int, ...], dict[str, Any]]] = {
    "QLinearMatMul": ("x s z w sw zw so zo", (2, 4), {"constants": {**W8, "so": np.float32(0.2)}, "domain": ""}),
    "QLinearConv": ("x s z w sw zw so zo b", (1, 3, 9), {"constants": FILTERS, "domain": "", "pads": [1, 1]}),
    "QGemm": ("x s z w sw zw - so zo", (2, 4), {"constants": {**W8, "sw": W8["sw"][:1], "zw": W8["zw"][:1]}}),
    "QLinearAdd": ("x s z u s z so zo", (2, 4), {}),
    "QLinearMul": ("x s z u s z so zo", (2, 4), {}),
    "QLinearLeakyRelu": ("x s z so zo", (2, 4), {"alpha": 0.1}),
    "QLinearSigmoid": ("x s z so zo", (2, 4), {"constants": {"so": np.float32(1 / 256), "zo": np.uint8(0)}}),
    "QLinearGlobalAveragePool": ("x s z so zo", (1, 3, 4, 5), {}),
    "QLinearAveragePool": ("x s z so zo", (1, 3, 4, 5), {"kernel_shape": [2, 2]}),
    "QLinearSoftmax": (
        "x s z so zo",
        (2, 4),
        {"constants": {"so": np.float32(1 / 256), "zo": np.uint8(0)}, "axis": -1, "opset": 13},
    ),
    "QLinearConcat": ("so zo x s z u s z", (2, 4), {"axis": 1}),
}


@pytest.mark.parametrize("op", OPERATORS)
def test_form_gives_the_operators_levels_when_its_scales_are_constant(op: str) -> None:
    inputs, shape, options = OPERATORS[op]
    made = quantised(op, inputs, shape, **options)
    feed = {value.name or "": levels(*shape) for value in made.graph.inputs}
    wanted = run(made, feed)["y"].astype(int)
    assert floating(made) is None
    got = run(made, feed)["y"].astype(int)
    assert np.abs(got - wanted).max() <= 1  # half a level, rounded on either side
    assert len(np.unique(wanted)) > 1


def test_n_bits_is_a_matmul_of_the_unpacked_weights_when_they_are_of_four_bits() -> None:
    columns, depth, block = 3, 32, 16
    levels4 = RANDOM.integers(0, 16, (columns, depth))
    packed = (levels4[:, ::2] | levels4[:, 1::2] << 4).astype(np.uint8).reshape(columns, depth // block, block // 2)
    scale = RANDOM.uniform(0.1, 1, (columns, depth // block)).astype(np.float32)
    node = helper.make_node(
        "MatMulNBits",
        ["x", "w", "s"],
        ["y"],
        "op",
        domain="com.microsoft",
        K=depth,
        N=columns,
        bits=4,
        block_size=block,
    )
    weights = [constant("w", packed, np.uint8), constant("s", scale.reshape(-1))]
    made = model([node], [tensor("x", [2, depth])], [tensor("y", [2, columns])], weights)
    assert floating(made) is None
    x = RANDOM.standard_normal((2, depth)).astype(np.float32)
    weight = (levels4 - 8.0) * np.repeat(scale, block, axis=1)
    np.testing.assert_allclose(run(made, {"x": x})["y"], x @ weight.T, rtol=1e-4, atol=1e-4)


def test_dynamic_matmul_is_one_of_the_weights_numbers() -> None:
    names = ["x", "w", "sw", "zw", "b"]
    node = helper.make_node("DynamicQuantizeMatMul", names, ["y"], "op", domain="com.microsoft")
    bias = np.array([1, 2, 3], np.float32)
    weights = [constant(name, array, array.dtype) for name, array in {**W8, "b": bias}.items()]
    made = model([node], [tensor("x", [2, 4])], [tensor("y", [2, 3])], weights)
    assert floating(made) is None
    assert [one.op_type for one in made.graph] == ["MatMul", "Add"]
    x = RANDOM.standard_normal((2, 4)).astype(np.float32)
    weight = (W8["w"].astype(np.float64) - W8["zw"]) * W8["sw"]
    np.testing.assert_allclose(run(made, {"x": x})["y"], x @ weight + bias, rtol=1e-5)


@pytest.mark.parametrize(
    ("original", "why"),
    [
        (
            quantised("QLinearAveragePool", "x s z so zo", (1, 4, 5, 3), kernel_shape=[2, 2], channels_last=1),
            "channels",
        ),
        (quantised("QLinearSoftmax", "x s z so zo", (2, 4), axis=0, opset=11), "its axis 0 is one of opset 11"),
        (quantised("QLinearSigmoid", "x u z so zo", (2, 4)), "the scale or zero point of 'x' is computed"),
        (quantised("QLinearAdd", "x s z u s z x zo", (2, 4)), "the scale of its output is computed"),
        (quantised("DynamicQuantizeMatMul", "x u s z", (2, 4)), "its weights are computed"),
    ],
    ids=["channels last", "several axes", "scale computed", "scale of the output", "weights"],
)
def test_form_says_what_stands_in_the_way_when_there_is_none(original: ir.Model, why: str) -> None:
    got = floating(original)
    assert got is not None
    assert why in got


def test_operators_without_a_form_have_none() -> None:
    assert not {op for _, op in FORMS} & WITHOUT_FORM
