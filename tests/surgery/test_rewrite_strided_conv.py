"""Strided convolutions as ones of smaller stride over blocks: equal in onnxruntime, and only where it is needed."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper

from contracts.convolution_fields import STRIDE_LIMIT
from surgery.rewrite_strided_conv import rewrite_strided_conv
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.convolutions import left_alone, one_node, rewritten, the_node

PASS = rewrite_strided_conv()


def conv1d(length: int, kernel: int, stride: int, channels: tuple[int, int] = (6, 4), **options: Any) -> ir.Model:
    given, made = channels
    group = options.get("group", 1)
    return one_node("Conv", [1, given, length], [made, given // group, kernel], strides=[stride], **options)


def conv2d(sizes: tuple[int, int], kernel: tuple[int, int], strides: tuple[int, int], **options: Any) -> ir.Model:
    return one_node("Conv", [1, 3, *sizes], [4, 3, *kernel], strides=list(strides), **options)


@pytest.mark.parametrize(
    "original",
    [
        *(conv1d(20 * s + 7, 2 * s, s, pads=[s // 2, s // 2]) for s in (9, 11, 13, 15, 17, 18, 30, 60)),
        conv1d(1800, 30, 15, (18, 64), pads=[7, 7]),
        conv1d(60 * 21 + 1, 30, 15, (22, 8), pads=[8, 7], bias=8),
        conv1d(60 * 21 + 1, 18, 9, (22, 8)),
        conv1d(100, 3, 9),
        conv1d(100, 1, 9),
        conv1d(100, 3, 9, pads=[0, 20]),
        conv1d(100, 3, 9, pads=[20, 0]),
        conv1d(100, 5, 11, dilations=[7], pads=[3, 4]),
        conv1d(99, 9, 9, dilations=[2]),
        conv1d(100, 9, 9),
        conv1d(90, 17, 17),
        conv1d(90, 9, 9, pads=[0, 1]),
        conv1d(100, 4, 9, group=2),
        conv1d(100, 4, 9, (6, 12), group=6, bias=12),
        conv1d(100, 4, 9, auto_pad="VALID"),
        conv1d(100, 4, 9, opset=11),
        conv1d(100, 4, 9, opset=19),
        conv1d(100, 4, 9, kernel_shape=[4]),
        conv1d(8, 3, 9),
        conv1d(2, 2, 9, pads=[1, 0]),
        conv1d(12, 3, 19, dilations=[3], pads=[5, 2]),
        one_node("Conv", [3, 6, 100], [4, 6, 5], strides=[9], pads=[2, 2]),
        conv2d((40, 41), (3, 4), (9, 11), pads=[1, 2, 0, 1]),
        conv2d((40, 1), (18, 1), (9, 1)),
        conv2d((1, 100), (1, 18), (1, 9)),
        conv2d((20, 100), (3, 18), (2, 9), dilations=[2, 1]),
        conv2d((20, 15), (3, 15), (16, 17)),
        one_node("Conv", [2, 4, 30, 31], [4, 2, 3, 3], strides=[9, 10], group=2, pads=[1, 1, 1, 1]),
        one_node("Conv", [1, 2, 12, 30, 7], [3, 2, 2, 4, 2], strides=[1, 9, 2]),
    ],
    ids=lambda made: str(list(the_node(made).attributes.values())),
)
def test_rewrite_strided_conv_is_equal_when_the_stride_overflows(original: ir.Model) -> None:
    made = the_node(rewritten(PASS, original))
    assert max(made.attributes.get_ints("strides") or ()) in (*range(1, STRIDE_LIMIT + 1), 10, 16)
    assert made.attributes.get_int("group") == the_node(original).attributes.get_int("group")


def test_rewrite_strided_conv_keeps_fp16_when_the_graph_is_fp16() -> None:
    made = rewritten(PASS, conv1d(100, 4, 9, dtype=np.float16, bias=4), least_db=60.0)
    assert {value.dtype for node in made.graph for value in node.outputs} == {ir.DataType.FLOAT16}


@pytest.mark.parametrize(
    "original",
    [
        *(conv1d(300, 3, s) for s in (1, 2, 7, 8, 10, 12, 14, 16, 20, 32, 64)),
        conv1d(1800, 32, 16, (18, 64), pads=[8, 8]),
        conv1d(90, 9, 9),
        conv1d(90, 15, 15),
        conv1d(17, 17, 17),
        conv1d(3, 3, 17, pads=[0, 2]),
        conv1d(1, 1, 9, dilations=[3]),
        conv2d((30, 90), (3, 9), (3, 9), pads=[1, 0, 1, 0]),
        conv2d((20, 3), (3, 3), (2, 9)),
        one_node("MaxPool", [1, 4, 100], strides=[9], kernel_shape=[3]),
        one_node("ConvTranspose", [1, 4, 10], [4, 4, 9], strides=[9]),
        conv1d(4, 9, 9),
    ],
    ids=lambda made: str(list(the_node(made).attributes.values())),
)
def test_rewrite_strided_conv_leaves_the_graph_alone_when_it_builds_clean(original: ir.Model) -> None:
    left_alone(PASS, original)


@pytest.mark.parametrize(
    ("length", "kernel", "stride", "pads", "wanted"),
    [
        (1800, 30, 15, [7, 7], (5, 3, 7)),  # 90 channels times 7 cost less than 54 times 11 or 270 times 3
        (3840, 120, 60, [30, 30], (30, 2, 4)),
        (1100, 22, 11, [5, 6], (11, 1, 3)),
    ],
)
def test_rewrite_strided_conv_takes_the_cheapest_blocks_when_the_stride_has_divisors(
    length: int, kernel: int, stride: int, pads: list[int], wanted: tuple[int, int, int]
) -> None:
    made = rewritten(PASS, conv1d(length, kernel, stride, (18, 8), pads=pads))
    node = the_node(made)
    assert node.inputs[1] is not None
    assert node.inputs[1].shape == ir.Shape([8, 18 * wanted[0], wanted[2]])
    assert node.attributes.get_ints("strides") == (wanted[1],)
    assert [other.op_type for other in made.graph] == ["Reshape", "Transpose", "Reshape", "Conv"]


@pytest.mark.parametrize(
    ("length", "kernel", "pads", "op"),
    [(1801, 18, [7, 7], "Concat"), (1801, 10, [0, 0], "Concat"), (1801, 9, [0, 0], "Slice"), (28, 10, [29, 14], "Pad")],
)
def test_rewrite_strided_conv_fits_the_length_when_it_is_no_multiple(
    length: int, kernel: int, pads: list[int], op: str
) -> None:
    made = rewritten(PASS, conv1d(length, kernel, 9, pads=pads))
    assert next(node.op_type for node in made.graph) == op


def test_rewrite_strided_conv_keeps_shared_weights_and_outputs_when_others_use_them() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], "c", strides=[9], kernel_shape=[4]),
        helper.make_node("Conv", ["x", "w"], ["b"], "same", strides=[9], kernel_shape=[4]),
        helper.make_node("Conv", ["x", "w"], ["plain"], "plain", kernel_shape=[4]),
        helper.make_node("Relu", ["a"], ["y"], "relu"),
    ]
    outputs = [tensor(name, [1, 3, length]) for name, length in (("a", 11), ("b", 11), ("y", 11), ("plain", 97))]
    weight = constant("w", np.random.default_rng(1).standard_normal((3, 2, 4)))
    made = rewritten(PASS, model(nodes, [tensor("x", [1, 2, 100])], outputs, [weight]), hits=2)
    assert "w" in made.graph.initializers
    added = [node.name for node in made.graph if node.op_type in {"Reshape", "Transpose", "Concat"}]
    assert all(name is not None and name.startswith("rewrite_strided_conv/") for name in added)
    assert len(set(added)) == len(added)


def test_rewrite_strided_conv_drops_the_old_weights_when_nothing_uses_them() -> None:
    assert "w" not in rewritten(PASS, conv1d(100, 4, 9)).graph.initializers


def test_rewrite_strided_conv_finds_the_length_when_no_shape_is_stated_inside() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], "r"),
        helper.make_node("Conv", ["r", "w"], ["y"], "c", strides=[9], kernel_shape=[4]),
    ]
    weight = constant("w", np.ones((3, 2, 4)))
    rewritten(PASS, model(nodes, [tensor("x", [1, 2, 100])], [tensor("y", [1, 3, "t"])], [weight]))
