"""Sizes that overflow a hardware field are named, and what builds clean is never refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper

from contracts.verdicts import Status
from gates.graphs import with_shapes
from gates.hardware_fields import GATE, hardware_fields
from tests.gates.small_graphs import constant, model, tensor


def one(op: str, shape: list[int | str], kernel: list[int], **attributes: Any) -> ir.Model:
    """x [shape] through the node `n0`, of four channels."""
    convolution = op.startswith("Conv")
    weights = [constant("w", np.ones([4, 4 // attributes.get("group", 1), *kernel]))] if convolution else []
    node = helper.make_node(op, ["x", *(["w"] if convolution else [])], ["y"], "n0", kernel_shape=kernel, **attributes)
    outputs = [tensor("y", [f"d{place}" for place in range(len(shape))])]
    return with_shapes(model([node], [tensor("x", shape)], outputs, weights, opset=19))


CLEAN = [
    (one("Conv", [1, 4, 1800], [32], strides=[16], pads=[8, 8]), "rk3588"),
    (one("Conv", [1, 4, 90], [9], strides=[9]), "rk3588"),
    (one("Conv", [1, 4, 9, 90], [3, 9], strides=[2, 9]), "rk3588"),
    (one("Conv", [1, 4, 7], [7], strides=[30]), "rk3588"),
    (one("Conv", [1, 4, 300], [255]), "rk3588"),
    (one("Conv", [1, 4, 300], [31], dilations=[2]), "rk3588"),
    (one("Conv", [1, 4, 300], [32], dilations=[2]), "rk3576"),
    (one("Conv", [1, 4, 1300], [40], dilations=[32]), "rk3588"),
    (one("Conv", [1, 4, 700], [15], dilations=[32]), "rk3588"),
    (one("Conv", [1, 4, 240001], [3]), "rk3588"),
    (one("Conv", [1, 4, "t"], [3], strides=[9]), "rk3588"),
    (one("Conv", [1, 4, 100], [3], strides=[9], auto_pad="SAME_UPPER"), "rk3588"),
    (one("Conv", [1, 4, 100], [3], strides=[0]), "rk3588"),
    (one("Conv", [1, 4, 9, 9, 99], [1, 1, 3], strides=[1, 1, 9]), "rk3588"),
    (one("Conv", [1, 4, 100], [3], strides=[9]), "rv1106"),
    (one("Conv", [1, 4, 100], [3], strides=[9]), None),
    (one("ConvTranspose", [1, 4, 20], [16], strides=[8]), "rk3588"),
    (one("ConvTranspose", [1, 4, 20], [17], strides=[2], pads=[1, 0]), "rk3588"),
    (one("ConvTranspose", [1, 4, 20], [31], strides=[2]), "rk3562"),
    (one("ConvTranspose", [1, 4, 20], [32], strides=[2]), "rk3576"),
    (one("ConvTranspose", [1, 4, 20], [64], strides=[9]), "rk3588"),
    (one("ConvTranspose", [1, 4, 20], [6], strides=[9], dilations=[2]), "rk3566"),
    (one("ConvTranspose", [1, 4, 20], [32], strides=[7]), "rk3576"),
    (one("ConvTranspose", [1, 4, 20], [64], strides=[2], output_shape=[102]), "rk3588"),
    (one("MaxPool", [1, 4, 8192], [3], pads=[1, 1]), "rk3588"),
    (one("MaxPool", [1, 4, 8193], [2], strides=[2]), "rk3588"),
    (one("MaxPool", [1, 4, 16384], [9], strides=[9]), "rk3588"),
    (one("MaxPool", [1, 4, 16384], [1]), "rk3588"),
    (one("AveragePool", [1, 4, 16384], [8], strides=[8]), "rk3588"),
    (one("AveragePool", [1, 4, 16384], [2], strides=[2]), "rk3576"),
    (one("AveragePool", [1, 4, 16384], [3], pads=[1, 1]), "rk3588"),
    (one("AveragePool", [1, 4, 100], [9], strides=[9], pads=[4, 4]), "rk3588"),
    (one("AveragePool", [1, 4, 100], [9], strides=[9], ceil_mode=1), "rk3588"),
]


@pytest.mark.parametrize(("made", "target"), CLEAN)
def test_hardware_fields_passes_when_every_size_fits_or_is_not_known(made: ir.Model, target: str | None) -> None:
    verdict = hardware_fields(made, target)
    assert (verdict.gate, verdict.status) == (GATE, Status.PASSED)


OVERFLOWS = [
    (one("Conv", [1, 4, 1800], [30], strides=[15], pads=[7, 7]), "rk3588", "has stride 15", "v2:0x1014:0:0x7"),
    (one("Conv", [1, 4, 1800], [30], strides=[15], pads=[7, 7]), "rk3576", "has stride 15", "f2:0x1014:0:0x7"),
    (one("Conv", [1, 4, 100], [3], strides=[9], group=2), "rk3566", "has stride 9", "lite:0x1014:0:0x7"),
    (one("Conv", [1, 4, 100], [3], strides=[9], auto_pad="VALID"), "rk3562", "has stride 9", "t4:0x1014:0:0x7"),
    (one("Conv", [1, 4, 100, 20], [3, 3], strides=[9, 2]), "rk3588", "has stride 9", "v2:0x1014:3:0x7"),
    (one("Conv", [1, 4, 300], [32], dilations=[2]), "rk3588", "kernel of 32 with dilation 2", "v2:0x1038:24:0x1f"),
    (one("Conv", [1, 4, 300, 9], [33, 3], dilations=[2, 1]), "rk3588", "kernel of 33", "v2:0x1038:16:0x1f"),
    (one("Conv", [1, 4, 300], [33], dilations=[2]), "rk3576", "and at most 32 fit", "f2:0x1024:24:0x1f"),
    (one("Conv", [1, 4, 700], [17], dilations=[32]), "rk3588", "strided over", "v2:0x1014:0:0x7"),
    (one("Conv", [1, 4, 600, 4], [17, 1], dilations=[32, 1]), "rk3588", "strided over", "v2:0x1014:3:0x7"),
    (one("ConvTranspose", [1, 4, 20], [32], strides=[2]), "rk3588", "kernel of 32", "v2:0x1038:24:0x1f"),
    (one("ConvTranspose", [1, 4, 20], [32], strides=[2]), "rk3562", "kernel of 32", "t4:0x1024:24:0x1f"),
    (one("ConvTranspose", [1, 4, 20], [17], strides=[2]), "rk3568", "first pad of 0", "lite:0x1068:4:0xf"),
    (one("ConvTranspose", [1, 4, 9, 9], [17, 3]), "rk3588", "first pad of 0", "v2:0x1068:0:0xf"),
    (one("ConvTranspose", [1, 4, 20], [20], strides=[10]), "rk3576", "has stride 10, and at most 8", "f2:0x1014:8:0x7"),
    (one("ConvTranspose", [1, 4, 9, 9], [4, 4], strides=[9, 2]), "rk3562", "has stride 9", "t4:0x1014:11:0x7"),
    (one("ConvTranspose", [1, 4, 20], [6], strides=[9], dilations=[2]), "rk3588", "stride 9", "v2:0x1014:8:0x7"),
    (one("ConvTranspose", [1, 4, 20], [18], strides=[3], dilations=[2]), "rk3588", "kernel of 18", "v2:0x1068:4:0xf"),
    (one("MaxPool", [1, 4, 8193], [3], pads=[1, 1]), "rk3588", "reads 8193 steps", "v2:0x600c:0:0x1fff"),
    (one("MaxPool", [1, 4, 8200, 4], [2, 2], strides=[2, 2]), "rk3576", "8200 steps", "f2:0x6010:0:0x1fff"),
    (one("AveragePool", [1, 4, 8200], [2], strides=[2]), "rk3588", "8200 steps", "v2:0x600c:0:0x1fff"),
    (one("AveragePool", [1, 4, 100], [9], strides=[9]), "rk3588", "has stride 9", "v2:0x1014:0:0x7"),
]


@pytest.mark.parametrize(("made", "target", "says", "key"), OVERFLOWS)
def test_hardware_fields_names_the_node_when_a_size_overflows(made: ir.Model, target: str, says: str, key: str) -> None:
    verdict = hardware_fields(made, target)
    assert (verdict.status, verdict.measured, verdict.threshold, verdict.unit) == (Status.FAILED, 1.0, 0.0, "sizes")
    for text in (f"{made.graph[0].op_type}, node 'n0', ", says, f"({key})", "--accept-regtask"):
        assert text in verdict.detail


def computed(op: str, kernel: list[int], **attributes: Any) -> ir.Model:
    """x [1, 4, 100] through the node `n0`, whose weights are made of an input."""
    nodes = [
        helper.make_node("Tanh", ["v"], ["w"]),
        helper.make_node(op, ["x", "w"], ["y"], "n0", **attributes),
    ]
    inputs = [tensor("x", [1, 4, 100]), tensor("v", [4, 4, *kernel])]
    return with_shapes(model(nodes, inputs, [tensor("y", [1, 4, "t"])], opset=19))


@pytest.mark.parametrize(
    ("made", "target", "says"),
    [
        (computed("Conv", [3], strides=[9]), "rk3588", "has stride 9"),
        (computed("Conv", [32], dilations=[2]), "rk3588", "kernel of 32 with dilation 2"),
        (computed("ConvTranspose", [20], strides=[10], pads=[5, 5]), "rk3588", "has stride 10, and at most 8"),
        (computed("ConvTranspose", [18], strides=[3]), "rk3588", "first pad of 0"),
        (computed("ConvTranspose", [18], strides=[9]), "rk3566", None),
        (computed("ConvTranspose", [14], strides=[7]), "rk3588", None),
        (computed("Conv", [3], strides=[16]), "rk3588", None),
    ],
)
def test_hardware_fields_names_the_node_when_its_weights_are_computed(
    made: ir.Model, target: str, says: str | None
) -> None:
    verdict = hardware_fields(made, target)
    assert verdict.status is (Status.PASSED if says is None else Status.FAILED)
    assert (says or "every stride") in verdict.detail


@pytest.mark.parametrize(("made", "target", "says", "key"), OVERFLOWS)
def test_hardware_fields_passes_when_the_key_is_accepted(made: ir.Model, target: str, says: str, key: str) -> None:
    assert says
    assert hardware_fields(made, target, {key}).status is Status.PASSED
    assert hardware_fields(made, target, {"v2:0x7abc:0:0x3"}).status is Status.FAILED


def test_hardware_fields_tells_once_what_is_wrong_when_many_nodes_have_it() -> None:
    nodes = [helper.make_node("Conv", ["x", "w"], [f"y{n}"], f"n{n}", strides=[9 if n < 7 else 15]) for n in range(8)]
    outputs = [tensor(f"y{n}", [1, 4, f"t{n}"]) for n in range(8)]
    made = with_shapes(model(nodes, [tensor("x", [1, 4, 100])], outputs, [constant("w", np.ones([4, 4, 3]))]))
    verdict = hardware_fields(made, "rk3588")
    assert verdict.measured == 8.0
    assert "Conv, node 'n0', node 'n1', node 'n2', node 'n3', node 'n4' and 2 more, each has stride 9" in verdict.detail
    assert "Conv, node 'n7', has stride 15" in verdict.detail
