"""Long pools as rows or parts: equal in onnxruntime to the bit, and only where the pooling unit's fields overflow."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper

from surgery.rewrite_long_pool import rewrite_long_pool
from tests.gates.small_graphs import model, tensor
from tests.surgery.convolutions import left_alone, one_node, rewritten, the_node

PASS = rewrite_long_pool()


def pool(op: str, length: int | str, kernel: int, stride: int, batch: int = 1, **options: Any) -> ir.Model:
    return one_node(op, [batch, 3, length], kernel_shape=[kernel], strides=[stride], **options)


@pytest.mark.parametrize(
    ("original", "operators"),
    [
        (pool("MaxPool", 16384, 2, 2), ["Reshape", "MaxPool", "Reshape"]),
        (pool("AveragePool", 16384, 4, 4), ["Reshape", "AveragePool", "Reshape"]),
        (pool("MaxPool", 30003, 5, 5, batch=2), ["Slice", "Reshape", "MaxPool", "Reshape"]),
        (pool("AveragePool", 24578, 7, 7, auto_pad="VALID"), ["Slice", "Reshape", "AveragePool", "Reshape"]),
        (pool("MaxPool", 8209 * 2, 2, 2), [*["Slice", "MaxPool"] * 3, "Concat"]),  # 8209 is a prime
        (pool("MaxPool", 8193, 3, 1, pads=[1, 1]), [*["Slice", "MaxPool"] * 2, "Concat"]),
        (pool("MaxPool", 20000, 3, 2, pads=[1, 1], opset=11), [*["Slice", "MaxPool"] * 3, "Concat"]),
        (pool("MaxPool", 20000, 8, 3, pads=[7, 2], opset=19), [*["Slice", "MaxPool"] * 3, "Concat"]),
        (pool("AveragePool", 20000, 3, 2), [*["Slice", "AveragePool"] * 3, "Concat"]),
        (pool("MaxPool", 20000, 2, 9), [*["Slice", "MaxPool"] * 3, "Concat"]),
    ],
    ids=lambda made: str(list(the_node(made).attributes.values())) if isinstance(made, ir.Model) else "",
)
def test_rewrite_long_pool_is_equal_when_the_axis_is_too_long(original: ir.Model, operators: list[str]) -> None:
    made = rewritten(PASS, original, least_db=float("inf") if "MaxPool" in operators else 120.0)
    assert [node.op_type for node in made.graph] == operators


@pytest.mark.parametrize(
    "original",
    [
        pool("MaxPool", 8192, 3, 1, pads=[1, 1]),
        pool("MaxPool", 8193, 2, 2),
        pool("MaxPool", 20000, 9, 9),
        pool("MaxPool", 20000, 1, 1),
        pool("MaxPool", 20000, 2, 2, ceil_mode=1),
        pool("MaxPool", 20000, 2, 2, dilations=[2]),
        pool("MaxPool", 20000, 2, 2, auto_pad="SAME_UPPER"),
        pool("MaxPool", "t", 2, 2),
        pool("AveragePool", 20000, 8, 8),
        pool("AveragePool", 20000, 3, 1, pads=[1, 1]),
        one_node("MaxPool", [1, 3, 20000, 2], kernel_shape=[2, 2], strides=[2, 2]),
        one_node("LpPool", [1, 3, 20000], kernel_shape=[2], strides=[2]),
    ],
    ids=lambda made: str(list(the_node(made).attributes.values())),
)
def test_rewrite_long_pool_leaves_the_graph_alone_when_it_fits_or_is_not_known(original: ir.Model) -> None:
    left_alone(PASS, original)


def test_rewrite_long_pool_leaves_the_graph_alone_when_indices_are_wanted() -> None:
    nodes = [helper.make_node("MaxPool", ["x"], ["y", "i"], "c", kernel_shape=[2], strides=[2])]
    outputs = [tensor("y", [1, 1, 8192]), tensor("i", [1, 1, 8192], 7)]
    left_alone(PASS, model(nodes, [tensor("x", [1, 1, 16384])], outputs))


def test_rewrite_long_pool_keeps_fp16_when_the_graph_is_fp16() -> None:
    made = rewritten(PASS, pool("MaxPool", 16384, 2, 2, dtype=np.float16), least_db=float("inf"))
    assert {value.dtype for node in made.graph for value in node.outputs} == {ir.DataType.FLOAT16}
