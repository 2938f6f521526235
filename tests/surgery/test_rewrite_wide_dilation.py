"""Wide dilations as columns: equal in onnxruntime, and only where the hardware's fields overflow."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper

from surgery.rewrite_wide_dilation import rewrite_wide_dilation
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.convolutions import left_alone, one_node, rewritten, the_node

PASS = rewrite_wide_dilation()


def dilated(length: int, kernel: int, dilation: int, channels: tuple[int, int] = (2, 3), **options: Any) -> ir.Model:
    given, made = channels
    weight = [made, given // options.get("group", 1), kernel]
    return one_node("Conv", [1, given, length], weight, dilations=[dilation], **options)


@pytest.mark.parametrize(
    "original",
    [
        dilated(8192, 3, 64, pads=[64, 64]),
        dilated(8192, 3, 64, pads=[128, 0], bias=3),
        dilated(5581, 3, 512, pads=[512, 512]),
        dilated(5581, 3, 50, pads=[3, 4]),
        dilated(5581, 2, 50),
        dilated(4230, 2, 33, auto_pad="VALID"),
        dilated(700, 9, 200, pads=[1700, 900]),
        dilated(4100, 5, 32, (4, 6), group=2, bias=6),
        dilated(4100, 5, 32, (4, 4), group=4, opset=11),
        dilated(300, 32, 2, pads=[31, 31], opset=19),
        dilated(300, 40, 7, pads=[5, 100]),
        dilated(2795, 3, 32),
        dilated(700, 17, 32),
        one_node("Conv", [2, 3, 4000], [4, 3, 3], dilations=[100]),
        one_node("Conv", [1, 3, 1, 4000], [4, 3, 1, 3], dilations=[1, 100], pads=[0, 7, 0, 9]),
        one_node("Conv", [1, 3, 4000, 1], [4, 3, 3, 1], dilations=[100, 1], bias=4),
    ],
    ids=lambda made: str(list(the_node(made).attributes.values())),
)
def test_rewrite_wide_dilation_is_equal_when_a_field_overflows(original: ir.Model) -> None:
    made = rewritten(PASS, original)
    assert "w" not in made.graph.initializers
    assert not any("dilations" in node.attributes for node in made.graph)
    assert all(str(node.name).startswith("rewrite_wide_dilation/") for node in made.graph)


def test_rewrite_wide_dilation_only_reshapes_when_the_dilation_divides_the_length() -> None:
    made = rewritten(PASS, dilated(8192, 3, 64, pads=[64, 64]))
    assert [node.op_type for node in made.graph] == ["Reshape", "Conv", "Reshape"]


def test_rewrite_wide_dilation_keeps_fp16_when_the_graph_is_fp16() -> None:
    made = rewritten(PASS, dilated(4100, 3, 50, dtype=np.float16, bias=3), least_db=50.0)
    assert {value.dtype for node in made.graph for value in node.outputs} == {ir.DataType.FLOAT16}


@pytest.mark.parametrize(
    "original",
    [
        dilated(16384, 3, 31),
        dilated(2794, 3, 32),
        dilated(16384, 1, 64),
        dilated(300, 31, 2),
        dilated(1300, 40, 32),
        dilated(700, 15, 32),
        dilated(300, 40, 1),
        dilated(10000, 3, 64, strides=[2]),
        dilated(10000, 3, 64, auto_pad="SAME_UPPER"),
        one_node("Conv", [1, 3, 2, 5000], [4, 3, 1, 3], dilations=[1, 100]),
        one_node("Conv", [1, 3, 1, 5000], [4, 3, 1, 3], dilations=[1, 100], pads=[1, 0, 0, 0]),
        one_node("Conv", [1, 3, 5000], [4, 3, 3]),
        one_node("Conv", [1, 3, "t"], [4, 3, 3], dilations=[100]),
        one_node("MaxPool", [1, 3, 5000], kernel_shape=[3], dilations=[100]),
        one_node("Conv", [1, 3, 5000], [4, 3, 3], dilations=[100, 100]),
    ],
    ids=lambda made: str(list(the_node(made).attributes.values())),
)
def test_rewrite_wide_dilation_leaves_the_graph_alone_when_it_fits_or_is_not_known(original: ir.Model) -> None:
    left_alone(PASS, original)


def test_rewrite_wide_dilation_leaves_the_graph_alone_when_the_weights_are_computed() -> None:
    nodes = [
        helper.make_node("Mul", ["w", "scale"], ["scaled"], "mul"),
        helper.make_node("Conv", ["x", "scaled"], ["y"], "c", dilations=[100], kernel_shape=[3]),
    ]
    inputs = [tensor("x", [1, 2, 5000]), tensor("scale", [1])]
    left_alone(PASS, model(nodes, inputs, [tensor("y", [1, 3, "t"])], [constant("w", np.ones((3, 2, 3)))]))


def test_rewrite_wide_dilation_rewrites_each_of_a_stack_when_they_follow_one_another() -> None:
    names = ["x", "a", "b", "y"]
    nodes = [
        helper.make_node("Conv", [names[i], "w"], [names[i + 1]], f"c{i}", dilations=[d], pads=[d, d])
        for i, d in enumerate((64, 128, 256))
    ]
    weight = constant("w", np.random.default_rng(1).standard_normal((2, 2, 3)))
    rewritten(PASS, model(nodes, [tensor("x", [1, 2, 4096])], [tensor("y", [1, 2, 4096])], [weight]), hits=3)
