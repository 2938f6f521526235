from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import NodeProto, helper

from surgery.rewrite_self_products import rewrite_self_products
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.one_operator import equal_after, left_alone, operators

PASS = rewrite_self_products()


def node(op: str, inputs: str, output: str, **attributes: Any) -> NodeProto:
    return helper.make_node(op, inputs.split(), [output], f"to_{output}", **attributes)


def turned(given: str, output: str, *perm: int) -> NodeProto:
    return node("Transpose", given, output, perm=perm or (0, 2, 1))


def graph(*nodes: NodeProto, shape: Sequence[int] = (1, 8, 8), output: Sequence[int] = (1, 8, 8)) -> ir.Model:
    """x and q, both of `shape`, to y."""
    rng = np.random.default_rng(1)
    weights = [
        constant("heads", [1, 8, 2, 4], np.int64),
        constant("rows", [8, 8], np.int64),
        constant("one", [0], np.int64),
        constant("scale", 0.25),
        constant("w", rng.standard_normal((8, 8))),
        constant("mask", np.where(np.arange(8) < 6, 0, -1e4)),
    ]
    return model(list(nodes), [tensor("x", shape), tensor("q", shape)], [tensor("y", output)], weights)


ATTENTION = (node("Softmax", "m", "p", axis=-1), node("MatMul", "p x", "y"))

ONE = {
    "x x^T": graph(turned("x", "t"), node("MatMul", "x t", "y")),
    "x^T x": graph(turned("x", "t"), node("MatMul", "t x", "y")),
    "of rank 2": graph(turned("x", "t", 1, 0), node("MatMul", "x t", "y"), shape=(8, 8), output=(8, 8)),
    "of rank 4": graph(
        turned("x", "t", 0, 1, 3, 2), node("MatMul", "x t", "y"), shape=(1, 2, 8, 8), output=(1, 2, 8, 8)
    ),
    "behind others": graph(
        node("Relu", "x", "r"), turned("r", "t"), node("MatMul", "r t", "m"), node("Tanh", "m", "y")
    ),
    "heads": graph(
        node("Reshape", "x heads", "r"), turned("r", "a", 0, 2, 1, 3), turned("r", "b", 0, 2, 3, 1),
        node("MatMul", "a b", "y"), output=(1, 2, 8, 8),
    ),
    "squeezed": graph(
        node("Squeeze", "x one", "s"), node("Identity", "s", "i"), turned("x", "t"), node("Flatten", "t", "f"),
        node("Reshape", "f rows", "g"), node("MatMul", "i g", "h"), node("Unsqueeze", "h one", "y"),
    ),
    "gemm": graph(node("Gemm", "x x", "y", transB=1), shape=(8, 8), output=(8, 8)),
    "gemm with a sum": graph(
        turned("x", "t", 1, 0), node("Gemm", "x t q", "y", alpha=0.5, beta=2.0), shape=(8, 8), output=(8, 8)
    ),
    "keys are values": graph(turned("x", "t"), node("MatMul", "q t", "m"), *ATTENTION),
    "queries are values": graph(
        node("MatMul", "x w", "k"), turned("k", "t"), node("MatMul", "x t", "m"), *ATTENTION
    ),
    "scaled and masked": graph(
        turned("x", "t"), node("MatMul", "q t", "n"), node("Mul", "scale n", "o"), node("Add", "o mask", "m"),
        *ATTENTION,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE)
def test_one_side_gets_a_tensor_of_its_own_when_both_are_of_one(name: str) -> None:
    made = equal_after(PASS, ONE[name])
    assert operators(made).count("LeakyRelu") == 1
    (parting,) = [node for node in made.graph if node.op_type == "LeakyRelu"]
    assert parting.attributes["alpha"].as_float() == 1.0
    assert len(parting.outputs[0].uses()) == 1
    left_alone(PASS, made)


def test_attention_of_one_tensor_is_parted_twice() -> None:
    made = equal_after(PASS, graph(turned("x", "t"), node("MatMul", "x t", "m"), *ATTENTION), hits=2)
    assert operators(made) == ["Transpose", "LeakyRelu", "MatMul", "Softmax", "LeakyRelu", "LeakyRelu", "MatMul"]


@pytest.mark.parametrize(
    "original",
    [
        graph(node("MatMul", "x x", "y")),
        graph(node("Gemm", "x x", "y"), shape=(8, 8), output=(8, 8)),
        graph(node("Gemm", "x x", "y", transA=1, transB=1), shape=(8, 8), output=(8, 8)),
        graph(turned("q", "t"), node("MatMul", "x t", "y")),
        graph(node("Relu", "x", "r"), turned("x", "t"), node("MatMul", "r t", "y")),
        graph(node("Transpose", "w", "t", perm=[1, 0]), node("MatMul", "w t", "v"), node("MatMul", "x v", "y")),
        graph(node("MatMul", "x w", "a"), node("MatMul", "x w", "b"), node("Add", "a b", "y")),
        graph(turned("x", "t"), node("MatMul", "q t", "m"), node("MatMul", "m x", "y")),
        graph(
            node("MatMul", "x w", "k"), turned("k", "t"), node("MatMul", "q t", "m"), *ATTENTION
        ),
        graph(node("Tanh", "x", "m"), *ATTENTION),
        graph(turned("x", "t"), node("Add", "x t", "y")),
    ],
    ids=[
        "square", "square gemm", "both turned", "two", "another", "constant", "projections", "no softmax",
        "projected keys", "no scores", "no product",
    ],
)  # fmt: skip
def test_graph_is_left_alone_when_the_sides_are_of_two_or_build_as_they_are(original: ir.Model) -> None:
    left_alone(PASS, original)
