"""Broadcasts over long axes: equal in onnxruntime and against numpy, and only where a field overflows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from contracts.axis_fields import LONGEST_SPREAD
from surgery.declaration import EXACT_PARITY_DB
from surgery.rewrite_long_broadcast import rewrite_long_broadcast
from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import run, snr_db
from tests.surgery.convolutions import left_alone, rewritten

PASS = rewrite_long_broadcast()

LONG = LONGEST_SPREAD + 1

BIT_FOR_BIT = float("inf")

RECIPROCAL = ["Expand", "Clip", "Div", "Slice", "Mul"]

Shape = Sequence[int | str]


def binary(op: str, left: Shape, right: Shape, dtype: int = TensorProto.FLOAT, opset: int = 17) -> ir.Model:
    """y = x op m."""
    rank = max(len(left), len(right))
    outputs = [tensor("y", [f"d{axis}" for axis in range(rank)], dtype)]
    inputs = [tensor("x", left, dtype), tensor("m", right, dtype)]
    return model([helper.make_node(op, ["x", "m"], ["y"], "c")], inputs, outputs, opset=opset)


def operators(made: ir.Model) -> list[str]:
    return [node.op_type for node in made.graph]


@pytest.mark.parametrize("opset", [13, 17, 19])
@pytest.mark.parametrize("narrow", [[1, 3, 1], [1, 1, 1], [1]])
@pytest.mark.parametrize("length", [LONG, 30720])
def test_rewrite_long_broadcast_adds_the_negative_when_a_number_a_channel_is_subtracted(
    length: int, narrow: list[int], opset: int
) -> None:
    original = binary("Sub", [1, 3, length], narrow, opset=opset)
    assert operators(rewritten(PASS, original, least_db=BIT_FOR_BIT)) == ["Neg", "Add"]


@pytest.mark.parametrize("narrow", [[1, 3, 1], [1, 1, 1], [1]])
def test_rewrite_long_broadcast_adds_to_the_negative_when_it_is_subtracted_from_a_number(narrow: list[int]) -> None:
    original = binary("Sub", narrow, [1, 3, LONG])
    assert operators(rewritten(PASS, original, least_db=BIT_FOR_BIT)) == ["Neg", "Add"]


@pytest.mark.parametrize("narrow", [[1, 3, 1], [1, 1, 1], [1]])
def test_rewrite_long_broadcast_multiplies_by_the_reciprocal_when_it_is_divided(narrow: list[int]) -> None:
    assert operators(rewritten(PASS, binary("Div", [1, 3, LONG], narrow))) == RECIPROCAL


def test_rewrite_long_broadcast_divides_as_numpy_does_when_divisors_are_not_ordinary() -> None:
    divisors = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -3.0, 65504.0], np.float32)
    made = PASS.rewrite(binary("Div", [1, 8, LONG], [1, 8, 1])).model
    x = np.random.default_rng(0).standard_normal((1, 8, LONG)).astype(np.float32)
    (y,) = run(made, {"x": x, "m": divisors.reshape(1, 8, 1)}).values()
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(y, x / divisors.reshape(1, 8, 1), rtol=3e-7)


@pytest.mark.parametrize("swapped", [False, True])
def test_rewrite_long_broadcast_expands_a_mask_when_it_multiplies_all_channels(swapped: bool) -> None:
    full, mask = [1, 3, LONG], [1, 1, LONG]
    original = binary("Mul", mask, full) if swapped else binary("Mul", full, mask)
    assert operators(rewritten(PASS, original, least_db=BIT_FOR_BIT)) == ["Expand", "Mul"]


def test_rewrite_long_broadcast_expands_a_mask_once_when_several_products_read_it() -> None:
    nodes = [
        helper.make_node("Mul", ["x", "m"], ["a"]),
        helper.make_node("Mul", ["m", "a"], ["b"]),
        helper.make_node("Mul", ["z", "m"], ["y"]),
    ]
    inputs = [tensor("x", [1, 3, LONG]), tensor("m", [1, 1, LONG]), tensor("z", [1, 5, LONG])]
    outputs = [tensor("b", [1, 3, LONG]), tensor("y", [1, 5, LONG])]
    made = rewritten(PASS, model(nodes, inputs, outputs), hits=3, least_db=BIT_FOR_BIT)
    assert operators(made) == ["Expand", "Mul", "Mul", "Expand", "Mul"]


@settings(deadline=None, max_examples=25)
@given(
    op=st.sampled_from(["Sub", "Div", "Mul"]),
    channels=st.integers(1, 5),
    length=st.integers(LONGEST_SPREAD - 2, LONGEST_SPREAD + 40),
    narrow=st.sampled_from(["step", "mask", "number", "full"]),
    swapped=st.booleans(),
)
def test_rewrite_long_broadcast_is_equal_whatever_the_shapes(
    op: str, channels: int, length: int, narrow: str, swapped: bool
) -> None:
    shapes = {"step": [1, channels, 1], "mask": [1, 1, length], "number": [1], "full": [1, channels, length]}
    full, part = shapes["full"], shapes[narrow]
    original = binary(op, part, full) if swapped else binary(op, full, part)
    random = np.random.default_rng(length)
    feed = {
        str(value.name): (random.standard_normal(value.shape.numpy()) + 3).astype(np.float32)  # type: ignore[union-attr]
        for value in original.graph.inputs
    }
    wanted, made = run(original, feed)["y"], run(PASS.rewrite(original).model, feed)["y"]
    assert snr_db(wanted, made) >= EXACT_PARITY_DB


def test_rewrite_long_broadcast_keeps_fp16_when_the_graph_is_fp16() -> None:
    for op, least_db in (("Sub", BIT_FOR_BIT), ("Div", 60.0)):
        made = rewritten(PASS, binary(op, [1, 3, LONG], [1, 3, 1], TensorProto.FLOAT16), least_db=least_db)
        assert {value.dtype for node in made.graph for value in node.outputs} == {ir.DataType.FLOAT16}


def test_rewrite_long_broadcast_keeps_the_operands_when_others_read_them_too() -> None:
    nodes = [
        helper.make_node("GlobalAveragePool", ["x"], ["m"]),
        helper.make_node("Sub", ["x", "m"], ["d"]),
        helper.make_node("Mul", ["d", "d"], ["y"]),
    ]
    outputs = [tensor("y", [1, 3, LONG]), tensor("d", [1, 3, LONG]), tensor("m", [1, 3, 1])]
    made = rewritten(PASS, model(nodes, [tensor("x", [1, 3, LONG])], outputs), least_db=BIT_FOR_BIT)
    assert operators(made) == ["GlobalAveragePool", "Neg", "Add", "Mul"]


def test_rewrite_long_broadcast_serves_a_nested_graph_when_that_captures_the_difference() -> None:
    def branch(op: str) -> object:
        return helper.make_graph([helper.make_node(op, ["d"], [op])], op, [], [tensor(op, [1, 3, LONG])])

    nodes = [
        helper.make_node("Sub", ["x", "m"], ["d"]),
        helper.make_node("If", ["k"], ["y"], then_branch=branch("Relu"), else_branch=branch("Neg")),
    ]
    inputs = [tensor("x", [1, 3, LONG]), tensor("m", [1, 3, 1]), tensor("k", [], TensorProto.BOOL)]
    original = model(nodes, inputs, [tensor("y", [1, 3, LONG])])
    made = PASS.rewrite(original)
    random = np.random.default_rng(2)
    feed = {
        "x": random.standard_normal((1, 3, LONG)).astype(np.float32),
        "m": random.standard_normal((1, 3, 1)).astype(np.float32),
        "k": np.array(True),
    }
    assert made.hits == 1
    np.testing.assert_array_equal(run(made.model, feed)["y"], np.maximum(feed["x"] - feed["m"], 0))


@pytest.mark.parametrize(
    "original",
    [
        binary("Sub", [1, 3, LONGEST_SPREAD], [1, 3, 1]),
        binary("Mul", [1, 3, LONGEST_SPREAD], [1, 1, LONGEST_SPREAD]),
        binary("Sub", [1, 3, LONG], [1, 3, LONG]),
        binary("Sub", [1, 3, LONG], [1, 1, LONG]),
        binary("Div", [1, 3, LONG], [1, 1, LONG]),
        binary("Div", [1, 3, 1], [1, 3, LONG]),
        binary("Add", [1, 3, LONG], [1, 3, 1]),
        binary("Add", [1, 3, LONG], [1, 1, LONG]),
        binary("Mul", [1, 3, LONG], [1, 3, 1]),
        binary("Mul", [1, 3, LONG], [LONG]),
        binary("Sub", [1, 3, LONG], [3, 1]),
        binary("Sub", [2, 3, LONG], [2, 3, 1]),
        binary("Mul", [2, 3, LONG], [1, 1, LONG]),
        binary("Sub", [1, 1, LONG], [1, 1, 1]),
        binary("Sub", [1, 3, 1], [1, 1, LONG]),
        binary("Mul", [1, 3, 1], [1, 1, LONG]),
        binary("Sub", [1, 3, 2, LONG], [1, 3, 1, 1]),
        binary("Sub", [3, LONG], [3, 1]),
        binary("Sub", [1, 3, "t"], [1, 3, 1]),
        binary("Sub", [1, 3, LONG], [1, "c", 1]),
        binary("Sub", [1, 3, LONG], [1, 3, 1], opset=12),
        binary("Sub", [1, 3, LONG], [1, 3, 1], opset=7),
        binary("Sub", [1, 3, LONG], [1, 3, 1], TensorProto.INT64),
        binary("Sub", [1, 3, LONG], [1, 3, 1], TensorProto.DOUBLE),
    ],
    ids=lambda made: " ".join(str(part) for part in [operators(made)[0], *(v.shape for v in made.graph.inputs)]),
)
def test_rewrite_long_broadcast_leaves_the_graph_alone_when_it_fits_or_is_not_known(original: ir.Model) -> None:
    left_alone(PASS, original)


@pytest.mark.parametrize(("op", "shape"), [("Sub", [1, 3, 1]), ("Div", [1, 3, 1]), ("Mul", [1, 1, LONG])])
def test_rewrite_long_broadcast_leaves_the_graph_alone_when_the_operand_is_constant(op: str, shape: list[int]) -> None:
    values = constant("m", np.ones(shape))
    weight = helper.make_node(op, ["x", "m"], ["y"], "c")
    shapes = [tensor("x", [1, 3, LONG])], [tensor("y", [1, 3, LONG])]
    left_alone(PASS, model([weight], *shapes, [values]))
    left_alone(PASS, model([helper.make_node("Constant", [], ["m"], value=values), weight], *shapes))


def test_rewrite_long_broadcast_leaves_the_graph_alone_when_the_operator_is_of_another_domain() -> None:
    node = helper.make_node("Sub", ["x", "m"], ["y"], "c", domain="com.example")
    inputs = [tensor("x", [1, 3, LONG]), tensor("m", [1, 3, 1])]
    original = model([node], inputs, [tensor("y", [1, 3, LONG])])
    original.graph.opset_imports["com.example"] = 1
    left_alone(PASS, original)


def normalisation(mean: str, root: str = "Sqrt", outputs: Sequence[str] = ("y",)) -> ir.Model:
    """x less its mean, over its deviation."""
    attributes: dict[str, Any] = {"axes": [2], "keepdims": 1} if mean == "ReduceMean" else {}
    nodes = [
        helper.make_node(mean, ["x"], ["m"], **attributes),
        helper.make_node("Sub", ["x", "m"], ["d"]),
        helper.make_node("Mul", ["d", "d"], ["q"]),
        helper.make_node(mean, ["q"], ["v"], **attributes),
        helper.make_node("Add", ["v", "e"], ["w"]),
        helper.make_node(root, ["w"], ["s"]),
        helper.make_node("Div", ["d", "s"], ["y"]),
    ]
    return model(
        nodes, [tensor("x", [1, 3, LONG])], [tensor(name, [1, 3, LONG]) for name in outputs], [constant("e", [1e-5])]
    )


def test_rewrite_long_broadcast_leaves_a_normalisation_alone_when_the_toolkit_knows_it() -> None:
    left_alone(PASS, normalisation("ReduceMean"))


@pytest.mark.parametrize(
    "original",
    [
        normalisation("GlobalAveragePool"),
        normalisation("ReduceMean", "Exp"),
        normalisation("ReduceMean", outputs=["y", "d"]),
    ],
    ids=["by pools", "by no root", "read elsewhere"],
)
def test_rewrite_long_broadcast_rewrites_a_normalisation_when_the_toolkit_spreads_its_mean(original: ir.Model) -> None:
    made = rewritten(PASS, original, hits=2)
    assert [node.op_type for node in made.graph if node.op_type in ("Sub", "Neg", "Clip")] == ["Neg", "Clip"]
