"""Transposed convolutions by phases: equal in onnxruntime, and only where the kernel's fields overflow."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper

from surgery.rewrite_long_transposed_conv import rewrite_long_transposed_conv
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.convolutions import left_alone, one_node, rewritten, the_node

PASS = rewrite_long_transposed_conv()


def up(kernel: int, stride: int, length: int = 13, channels: tuple[int, int] = (6, 4), **options: Any) -> ir.Model:
    given, made = channels
    group = options.get("group", 1)
    weight = [given, made // group, kernel]
    return one_node("ConvTranspose", [1, given, length], weight, strides=[stride], **options)


def up2d(kernel: tuple[int, int], strides: tuple[int, int], batch: int = 1, **options: Any) -> ir.Model:
    return one_node("ConvTranspose", [batch, 3, 5, 7], [3, 2, *kernel], strides=list(strides), **options)


@pytest.mark.parametrize(
    "original",
    [
        *(up(k, s) for k in (17, 31, 32, 64) for s in (1, 2, 4, 8)),
        *(up(2 * s, s, pads=[s // 2, s // 2], bias=4) for s in (9, 10, 12, 15, 16, 300)),
        up(3, 10),
        up(34, 3),
        up(64, 4, pads=[30, 30], bias=4),
        up(63, 4, pads=[31, 31], output_padding=[3]),
        up(33, 8, pads=[0, 20]),
        up(40, 2, pads=[38, 0]),
        up(40, 2, pads=[45, 3]),
        up(40, 1, pads=[5, 6]),
        up(20, 2, dilations=[3], pads=[2, 1]),
        up(18, 3, dilations=[2]),
        up(17, 2, group=2, bias=4),
        up(17, 2, channels=(4, 4), group=4),
        up(17, 2, length=1),
        up(17, 2, auto_pad="VALID"),
        up(17, 2, opset=11),
        up(17, 2, opset=19, kernel_shape=[17]),
        one_node("ConvTranspose", [3, 4, 9], [4, 2, 17], strides=[2], bias=2),
        up2d((3, 17), (1, 2)),
        up2d((17, 3), (2, 1), bias=2),
        up2d((17, 3), (2, 1), batch=2),
        up2d((33, 18), (1, 1), pads=[3, 1, 2, 0]),
        up2d((1, 17), (1, 2), dilations=[2, 1], output_padding=[0, 1]),
    ],
    ids=lambda made: str(list(the_node(made).attributes.values())),
)
def test_rewrite_long_transposed_conv_is_equal_when_a_kernel_field_overflows(original: ir.Model) -> None:
    made = rewritten(PASS, original)
    assert "ConvTranspose" not in [node.op_type for node in made.graph]
    assert not {"w", "b"} & set(made.graph.initializers)
    assert all(str(node.name).startswith("rewrite_long_transposed_conv/") for node in made.graph)


def test_rewrite_long_transposed_conv_adds_no_more_than_the_shuffle_when_the_length_is_whole() -> None:
    made = rewritten(PASS, up(64, 4, pads=[30, 30]))
    assert [node.op_type for node in made.graph] == ["Conv", "Reshape", "Transpose", "Reshape"]


def test_rewrite_long_transposed_conv_keeps_fp16_when_the_graph_is_fp16() -> None:
    made = rewritten(PASS, up(20, 2, dtype=np.float16, bias=4), least_db=50.0)
    assert {value.dtype for node in made.graph for value in node.outputs} == {ir.DataType.FLOAT16}


@pytest.mark.parametrize(
    "original",
    [
        *(up(16, s) for s in (1, 2, 4, 8)),
        up(17, 2, pads=[1, 0]),
        up(31, 2, pads=[15, 15]),
        up(31, 3),
        up(12, 6, pads=[3, 3]),
        up(14, 7),
        up2d((3, 17), (1, 3)),
        up2d((2, 18), (2, 9)),
        up2d((17, 17), (2, 2)),
        up(17, 2, auto_pad="SAME_UPPER"),
        up(17, 2, output_shape=[26]),
        one_node("Conv", [1, 2, 90], [3, 2, 40]),
    ],
    ids=lambda made: str(list(the_node(made).attributes.values())),
)
def test_rewrite_long_transposed_conv_leaves_the_graph_alone_when_it_fits_or_is_not_known(original: ir.Model) -> None:
    left_alone(PASS, original)


@pytest.mark.parametrize("computed", ["w", "b", "x"])
def test_rewrite_long_transposed_conv_leaves_the_graph_alone_when_something_is_computed(computed: str) -> None:
    nodes = [
        helper.make_node("Mul", [computed, "scale"], ["scaled"], "mul"),
        helper.make_node(
            "ConvTranspose",
            ["scaled" if name == computed else name for name in ("x", "w", "b")],
            ["y"],
            "c",
            kernel_shape=[20],
            strides=[2],
        ),
    ]
    weights = [constant("w", np.ones((2, 3, 20))), constant("b", np.ones(3))]
    made = model(nodes, [tensor("x", [1, 2, 9]), tensor("scale", [1])], [tensor("y", [1, 3, 36])], weights)
    if computed == "x":
        rewritten(PASS, made)
    else:
        left_alone(PASS, made)


def test_rewrite_long_transposed_conv_keeps_the_outputs_name_when_others_read_it_too() -> None:
    nodes = [
        helper.make_node("ConvTranspose", ["x", "w"], ["y"], "c", kernel_shape=[20], strides=[2]),
        helper.make_node("Relu", ["y"], ["z"], "relu"),
    ]
    outputs = [tensor("y", [1, 3, 36]), tensor("z", [1, 3, 36])]
    rewritten(PASS, model(nodes, [tensor("x", [1, 2, 9])], outputs, [constant("w", np.ones((2, 3, 20)))]))
