"""Which integer products are products of numbers, and what stands in the way of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto

from surgery.integer_products import Product, is_onnx, product_at, quantiser_of
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.interfaces import node

QUANTISE = node("DynamicQuantizeLinear", "x", "q xs xz")
INTEGER = node("MatMulInteger", "q w xz", "i")
NUMBER = node("Cast", "i", "f", to=TensorProto.FLOAT)
SCALES = node("Mul", "xs ws", "s")
SCALED = node("Mul", "f s", "y")


def graph(nodes: Sequence[onnx.NodeProto], outputs: Sequence[Any] = (), opset: int = 17) -> ir.Model:
    weights = [constant("w", np.ones((4, 3)), np.int8), constant("ws", [0.5, 2, 0.25]), constant("two", 2.0)]
    weights += [constant("b", np.ones(3)), constant("shape", [2, 4], np.int64), constant("xc", [1], np.uint8)]
    inputs = [tensor("x", [2, 4]), tensor("dw", [4, 3], TensorProto.INT8), tensor("dz", [], TensorProto.UINT8)]
    return model(nodes, inputs, [tensor("y", [2, 3]), *outputs], weights, opset=opset)


def found(nodes: Sequence[onnx.NodeProto], **options: Any) -> Product | str:
    made = graph(nodes, **options)
    return product_at(next(one for one in made.graph if one.op_type == "MatMulInteger"))


def test_product_at_ends_at_the_mul_when_all_scales_are_multiplied_with() -> None:
    got = found([QUANTISE, INTEGER, NUMBER, SCALES, SCALED])
    assert isinstance(got, Product)
    assert (got.node.name, got.end.name, got.bias) == ("n_i", "n_y", None)
    assert [source and source.op_type for source in got.dynamic] == ["DynamicQuantizeLinear", None]
    np.testing.assert_array_equal(got.factor, [0.5, 2, 0.25])


def test_product_at_goes_on_when_the_scales_come_one_by_one() -> None:
    got = found([QUANTISE, INTEGER, NUMBER, node("Mul", "f xs", "a"), node("Mul", "a ws", "y")])
    assert isinstance(got, Product)
    assert got.end.name == "n_a"  # what is behind is a Mul of numbers as any other
    assert got.factor == 1


def test_product_at_has_a_bias_when_one_is_divided_by_the_same_scales() -> None:
    biased = [
        node("Div", "b s", "d"),
        node("Round", "d", "r"),
        node("Cast", "r", "bi", to=TensorProto.INT32),
        node("Add", "i bi", "sum"),
        node("Cast", "sum", "f", to=TensorProto.FLOAT),
    ]
    got = found([QUANTISE, INTEGER, SCALES, *biased, SCALED])
    assert isinstance(got, Product)
    assert got.bias is not None
    assert (got.bias.value.name, got.bias.chain) == ("b", ())


ADDED = [node("Add", "i bi", "sum"), node("Cast", "sum", "f", to=TensorProto.FLOAT)]
OTHER_SCALES = [node("Div", "b xs", "d"), node("Cast", "d", "bi", to=TensorProto.INT32), *ADDED]
NO_DIVISION = [node("Cast", "b", "bi", to=TensorProto.INT32), *ADDED]


@pytest.mark.parametrize(
    ("nodes", "wanted"),
    [
        ([QUANTISE, node("MatMulInteger", "q dw xz", "i"), NUMBER, SCALES, SCALED], "'dw' is neither constant"),
        ([QUANTISE, node("MatMulInteger", "q w dz", "i"), NUMBER, SCALES, SCALED], "zero point of 'q' is not its own"),
        ([QUANTISE, node("MatMulInteger", "q w xc", "i"), NUMBER, SCALES, SCALED], "zero point of 'q' is not its own"),
        ([QUANTISE, INTEGER, NUMBER, node("Add", "f two", "y")], "Add reads 'f'"),
        ([QUANTISE, INTEGER, NUMBER, node("Mul", "f f", "y")], "'f' is read 2 times"),
        ([QUANTISE, INTEGER, NUMBER, node("Sub", "f xs", "y")], "Sub reads 'f'"),
        ([QUANTISE, INTEGER, SCALES, *OTHER_SCALES, SCALED], "its bias is divided by other scales"),
        ([QUANTISE, INTEGER, SCALES, *NO_DIVISION, SCALED], "'i' gets a bias that is not divided by the scales"),
    ],
)
def test_product_at_says_what_stands_in_the_way_when_it_is_no_product(
    nodes: Sequence[onnx.NodeProto], wanted: str
) -> None:
    got = found(nodes)
    assert isinstance(got, str)
    assert wanted in got


def test_product_at_says_so_when_the_integers_are_an_output() -> None:
    got = found([QUANTISE, INTEGER, NUMBER, SCALES, SCALED], outputs=[tensor("i", [2, 3], TensorProto.INT32)])
    assert got == "'i' is read 1 times"


def test_quantiser_of_is_found_when_operators_carry_the_integers() -> None:
    made = graph([QUANTISE, node("Reshape", "q shape", "r"), node("Transpose", "r", "t"), node("Cast", "t", "y", to=1)])
    carried, cast = made.graph[2].outputs[0], made.graph[3].outputs[0]
    assert quantiser_of(carried) is made.graph[0]
    assert quantiser_of(cast) is None
    assert quantiser_of(made.graph.inputs[0]) is None
    assert quantiser_of(None) is None


def test_is_onnx_asks_for_the_domain_too_when_the_operator_is_one_of_these() -> None:
    assert is_onnx(ir.node("Mul", []), "Add", "Mul")
    assert is_onnx(ir.node("Mul", [], domain="ai.onnx"), "Mul")
    assert not is_onnx(ir.node("Mul", [], domain="com.microsoft"), "Mul")
    assert not is_onnx(ir.node("Mul", []), "Add")
    assert not is_onnx(None, "Mul")
