"""Float forms of integer products, against numpy on the numbers that the integers stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto
from onnx_ir.passes import common

from surgery.float_products import chosen_factor, float_product, insert_before
from surgery.integer_products import Product, product_at
from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import run
from tests.surgery.graphs import check
from tests.surgery.interfaces import node

QUANTISE = node("DynamicQuantizeLinear", "x", "q xs xz")
NUMBER = node("Cast", "i", "f", to=TensorProto.FLOAT)
SCALED = [node("Mul", "xs ws", "s"), node("Mul", "f s", "y")]
RANDOM = np.random.default_rng(3)
W = RANDOM.integers(-128, 128, (4, 3)).astype(np.int8)
FILTERS = RANDOM.integers(0, 256, (2, 3, 3)).astype(np.uint8)


def graph(nodes: Sequence[onnx.NodeProto], shape: Sequence[int], made: Sequence[int], **constants: Any) -> ir.Model:
    weights = [constant(name, array, np.asarray(array).dtype) for name, array in constants.items()]
    return model(nodes, [tensor("x", shape)], [tensor("y", made)], weights)


def product(made: ir.Model, op: str) -> Product:
    found = product_at(next(one for one in made.graph if one.op_type == op))
    assert isinstance(found, Product)
    return found


def floating(made: ir.Model, op: str) -> list[str]:
    """Make the product a float one of x, and drop what led to the integers; the operators that are left."""
    float_product(product(made, op), [made.graph.inputs[0], None], "test")
    common.RemoveUnusedNodesPass()(made)
    check(made)
    return [one.op_type for one in made.graph]


@pytest.mark.parametrize(
    ("scale", "zero"),
    [
        (np.float32(0.5), np.int8(3)),
        (np.array([0.5, 2, 0.25], np.float32), np.array([3, -7, 0], np.int8)),
        (np.array([0.5], np.float32), None),
    ],
    ids=["one scale", "a scale each column", "no zero point"],
)
def test_float_product_is_a_matmul_of_what_the_weights_stand_for_when_they_are_constant(scale: Any, zero: Any) -> None:
    inputs = "q w xz" if zero is None else "q w xz wz"
    zeros = {} if zero is None else {"wz": zero}
    made = graph(
        [QUANTISE, node("MatMulInteger", inputs, "i"), NUMBER, *SCALED], [2, 4], [2, 3], w=W, ws=scale, **zeros
    )
    assert floating(made, "MatMulInteger") == ["MatMul"]
    x = RANDOM.standard_normal((2, 4)).astype(np.float32)
    centred = W.astype(np.float64) - (0 if zero is None else np.asarray(zero, np.float64))
    np.testing.assert_allclose(run(made, {"x": x})["y"], x @ (centred * scale), rtol=1e-5)


@pytest.mark.parametrize("biased", [False, True])
def test_float_product_is_a_conv_with_its_attributes_when_the_filters_are_constant(biased: bool) -> None:
    conv = node("ConvInteger", "q w xz wz", "i", pads=[1, 1], strides=[2])
    tail = [node("Mul", "xs ws", "s"), node("Mul", "f s", "y")]
    nodes = [QUANTISE, conv, NUMBER, *tail]
    if biased:  # round(b / scales), added to the integers, as onnxruntime's quantiser writes it
        nodes = [
            QUANTISE,
            tail[0],
            node("Div", "b s", "d"),
            node("Floor", "d", "r"),
            node("Cast", "r", "bi", to=TensorProto.INT32),
            node("Reshape", "bi column", "bc"),
            conv,
            node("Add", "i bc", "sum"),
            node("Cast", "sum", "f", to=TensorProto.FLOAT),
            tail[1],
        ]
    b = np.array([1.5, -2.5], np.float32)
    made = graph(
        nodes, [1, 3, 9], [1, 2, 5], w=FILTERS, wz=np.uint8(128), ws=np.float32(0.125), b=b, column=np.array([1, 2, 1])
    )
    assert floating(made, "ConvInteger") == ["Conv"]
    x = RANDOM.standard_normal((1, 3, 9)).astype(np.float32)
    padded = np.pad(x[0].astype(np.float64), ((0, 0), (1, 1)))
    weight = (FILTERS.astype(np.float64) - 128) * 0.125
    sums = [[(padded[:, 2 * o : 2 * o + 3] * one).sum() for o in range(5)] for one in weight]
    wanted = np.array(sums) + (b[:, None] if biased else 0)
    np.testing.assert_allclose(run(made, {"x": x})["y"][0], wanted, rtol=1e-5, atol=1e-5)


def test_float_product_multiplies_behind_when_the_scale_lies_along_no_column() -> None:
    scale = np.array([[2.0], [4.0]], np.float32)
    made = graph([QUANTISE, node("MatMulInteger", "q w xz", "i"), NUMBER, *SCALED], [2, 4], [2, 3], w=W, ws=scale)
    assert floating(made, "MatMulInteger") == ["MatMul", "Mul"]
    x = RANDOM.standard_normal((2, 4)).astype(np.float32)
    np.testing.assert_allclose(run(made, {"x": x})["y"], (x @ W.astype(np.float64)) * scale, rtol=1e-5)


def test_chosen_factor_is_the_same_choice_of_floats_when_rows_of_a_table_are_chosen() -> None:
    table = RANDOM.integers(0, 256, (5, 4)).astype(np.uint8)
    nodes = [
        QUANTISE,
        node("Gather", "table rows", "g"),
        node("Transpose", "g", "t", perm=[1, 0]),
        node("MatMulInteger", "q t xz tz", "i"),
        NUMBER,
        *SCALED,
    ]
    rows = tensor("rows", [3], TensorProto.INT64)
    weights = [constant("table", table, np.uint8), constant("tz", 7, np.uint8), constant("ws", 0.5)]
    made = model(nodes, [tensor("x", [2, 4]), rows], [tensor("y", [2, 3])], weights)
    integer = next(one for one in made.graph if one.op_type == "MatMulInteger")
    assert chosen_factor(integer, 0, "test") is None
    factor = chosen_factor(integer, 1, "test")
    float_product(product(made, "MatMulInteger"), [made.graph.inputs[0], factor], "test")
    common.RemoveUnusedNodesPass()(made)
    check(made)
    assert [one.op_type for one in made.graph] == ["Gather", "Transpose", "MatMul", "Mul"]
    x, ids = RANDOM.standard_normal((2, 4)).astype(np.float32), np.array([4, 0, 2])
    wanted = x @ (table[ids].astype(np.float64) - 7).T * 0.5
    np.testing.assert_allclose(run(made, {"x": x, "rows": ids})["y"], wanted, rtol=1e-5)


def test_chosen_factor_is_none_when_the_factor_is_the_constant_itself() -> None:
    made = graph(
        [QUANTISE, node("MatMulInteger", "q w xz", "i"), NUMBER, *SCALED], [2, 4], [2, 3], w=W, ws=np.float32(1)
    )
    assert chosen_factor(next(one for one in made.graph if one.op_type == "MatMulInteger"), 1, "test") is None


def test_insert_before_names_a_node_after_the_pass_and_its_neighbour() -> None:
    made = model([node("Neg", "x", "y")], [tensor("x", [2])], [tensor("y", [2])])
    new = ir.node("Abs", [made.graph.inputs[0]])
    insert_before(made.graph[0], new, "test")
    assert made.graph[0] is new
    assert (new.name, new.outputs[0].name) == ("n_y/test", "y.test.0")
