"""The vendor's lists: each limit is measured at its edge, and nothing is a verdict."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from contracts.verdicts import Measurement
from gates.graphs import with_shapes
from gates.vendor_limits import vendor_limits
from tests.gates.small_graphs import constant, model, tensor


def conv(op: str, kernel: int = 3, written: bool = True, **attributes: Any) -> ir.Model:
    if written:
        attributes["kernel_shape"] = [kernel]
    node = helper.make_node(op, ["x", "w"], ["y"], "c0", **attributes)
    channels = 4 // attributes.get("group", 1)
    weight = constant("w", [[[0.1] * kernel] * channels] * 4)
    return model([node], [tensor("x", [1, 4, 100])], [tensor("y", [1, "C", "T"])], [weight])


def one(op: str, shape: list[int], *constants: Any, **attributes: Any) -> ir.Model:
    node = helper.make_node(op, ["x", *(item.name for item in constants)], ["y"], "n0", **attributes)
    return model([node], [tensor("x", shape)], [tensor("y", ["?"] * len(shape))], constants)


def resized(*scales: float) -> ir.Model:
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], "n0")
    sizes = [int(4 * scale) for scale in scales]
    return model([node], [tensor("x", [4] * len(scales))], [tensor("y", sizes)], [constant("s", scales)])


@pytest.mark.parametrize(
    "made",
    [
        conv("Conv", strides=[7], kernel=31),
        conv("ConvTranspose", strides=[8], kernel=31, pads=[15, 15]),
        conv("ConvTranspose", strides=[1]),
        conv("ConvTranspose"),
        one("Softmax", [1, 4, 5, 6], axis=-1),
        one("Softmax", [1, 4, 5, 6], axis=1),
        one("MatMul", [1, 8192], constant("k", [[0.0]] * 8192)),
        one("Gather", [4], constant("i", [1, 2], "int64")),
        resized(1, 1, 2, 8),
        one("Tanh", [1, 4]),
    ],
)
def test_vendor_limits_measures_nothing_when_graph_is_inside_the_lists(made: ir.Model) -> None:
    assert vendor_limits(with_shapes(made)) == []


@pytest.mark.parametrize(
    ("made", "name", "says"),
    [
        (conv("Conv", strides=[8]), "conv_stride", "node 'c0' has stride 8, not at most 7"),
        (conv("Conv", kernel=32), "conv_kernel", "node 'c0' has a kernel of 32, not at most 31"),
        (conv("Conv", kernel=32, written=False), "conv_kernel", "a kernel of 32"),
        (conv("ConvTranspose", strides=[5]), "conv_transpose_stride", "stride 5, not one of (1, 2, 4, 8)"),
        (conv("ConvTranspose", kernel=32), "conv_transpose_kernel", "a kernel of 32"),
        (conv("ConvTranspose", kernel=20, pads=[16, 0]), "conv_transpose_pad", "a pad of 16, not at most 15"),
        (conv("ConvTranspose", group=2), "conv_transpose_group", "has 2 groups, not 1"),
        (one("Softmax", [1, 4, 5, 6], axis=2), "softmax_axis", "axis 2, not one of (1, 3)"),
        (one("Softmax", [1, 4, 5]), "softmax_axis", "axis 2"),
        (one("MatMul", [1, 8193], constant("k", [[0.0]] * 8193)), "matmul_k", "sums over 8193"),
        (one("Gather", [4], constant("i", [[1, 2]], "int64")), "gather_indices", "indices of rank 2"),
        (resized(1, 1, 9), "resize_scale", "scales 4 to 36"),
        (resized(1, 1, 1.5), "resize_scale", "scales 4 to 6"),
        (resized(1, 1, 0.5), "resize_scale", "scales 4 to 2"),
        (one("Reciprocal", [4]), "unsupported", "node 'n0' is a Reciprocal"),
        (one("CumSum", [4], constant("a", 0, "int64")), "unsupported", "is a CumSum"),
    ],
)
def test_vendor_limits_measures_the_breach_when_graph_is_outside_a_list(made: ir.Model, name: str, says: str) -> None:
    (measurement,) = vendor_limits(with_shapes(made))
    assert isinstance(measurement, Measurement)
    assert (measurement.name, measurement.measured, measurement.unit) == (f"vendor.{name}", 1.0, "nodes")
    assert says in measurement.reason
    assert "only warns" in measurement.reason


def test_vendor_limits_counts_nodes_when_several_breach_one_limit() -> None:
    nodes = [helper.make_node("Reciprocal", ["x"], [f"y{i}"], f"r{i}") for i in range(7)]
    (measurement,) = vendor_limits(with_shapes(model(nodes, [tensor("x", [4])], [tensor("y6", [4])])))
    assert measurement.measured == 7.0
    assert "r4" in measurement.reason
    assert measurement.reason.endswith("and 2 more")


def test_vendor_limits_skips_other_domains_when_the_name_is_the_same() -> None:
    node = helper.make_node("Conv", ["x"], ["y"], "c", domain="other", strides=[99])
    assert vendor_limits(with_shapes(model([node], [tensor("x", [1], TensorProto.FLOAT)], [tensor("y", [1])]))) == []
