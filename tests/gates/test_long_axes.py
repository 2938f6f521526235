"""What overflows a field by the length of its axis is named, and what builds clean is never refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from contracts.verdicts import Status
from gates.graphs import with_shapes
from gates.hardware_fields import hardware_fields
from tests.gates.small_graphs import constant, model, tensor

Sizes = list[int | str]


def binary(op: str, left: Sizes, right: Sizes, dtype: int = TensorProto.FLOAT) -> ir.Model:
    node = helper.make_node(op, ["x", "m"], ["y"], "n0")
    inputs = [tensor("x", left, dtype), tensor("m", right, dtype)]
    rank = max(len(left), len(right))
    return with_shapes(model([node], inputs, [tensor("y", [f"d{axis}" for axis in range(rank)], dtype)]))


def by_weight(op: str, sizes: list[int], stated: bool = False) -> ir.Model:
    """x op a weight, or what a Constant node states."""
    values = constant("m", np.ones(sizes))
    nodes = [helper.make_node("Constant", [], ["m"], value=values)] if stated else []
    nodes.append(helper.make_node(op, ["x", "m"], ["y"], "n0"))
    ends = [tensor("x", [1, 4, 30720])], [tensor("y", [1, 4, 30720])]
    return with_shapes(model(nodes, *ends, [] if stated else [values]))


def pad(length: int, pads: list[int], mode: str = "reflect") -> ir.Model:
    node = helper.make_node("Pad", ["x", "p"], ["y"], "n0", mode=mode)
    outputs = [tensor("y", ["a", "b", "c"])]
    return with_shapes(model([node], [tensor("x", [1, 4, length])], outputs, [constant("p", pads, np.int64)]))


CLEAN = [
    (binary("Sub", [1, 4, 8192], [1, 4, 1]), "rk3588"),
    (binary("Add", [1, 4, 30720], [1, 4, 1]), "rk3588"),
    (binary("Mul", [1, 4, 30720], [1, 4, 1]), "rk3576"),
    (binary("Mul", [1, 4, 30720], [1, 1, 30720]), "rk3576"),
    (binary("Sub", [1, 4, 30720], [1, 1, 30720]), "rk3588"),
    (binary("Sub", [1, 4, 30720], [1, 4, 30720]), "rk3588"),
    (binary("Sub", [1, 1, 30720], [1, 1, 1]), "rk3588"),
    (binary("Sub", [1, 4, "t"], [1, 4, 1]), "rk3588"),
    (binary("Sub", [1, 4, 30720], [1, 4, 1], TensorProto.INT64), "rk3588"),
    (binary("Sub", [1, 4, 30720], [1, 4, 1]), "rv1106"),
    (by_weight("Sub", [1, 4, 1]), "rk3588"),
    (by_weight("Div", [1, 4, 1], stated=True), "rk3588"),
    (pad(8191, [0, 0, 1, 0, 0, 0]), "rk3588"),
    (pad(30720, [0, 0, 1, 0, 0, 0], "constant"), "rk3588"),
    (pad(30720, [0, 0, -1, 0, 0, 0]), "rk3588"),
]


@pytest.mark.parametrize(("made", "target"), CLEAN)
def test_hardware_fields_passes_when_a_long_axis_fits_or_is_not_known(made: ir.Model, target: str) -> None:
    assert hardware_fields(made, target).status is Status.PASSED


OVERFLOWS = [
    (binary("Sub", [1, 4, 8193], [1, 4, 1]), "rk3588", "[1, 4, 1] over 8193 steps", "v2:0x4030:0:0x1fff"),
    (binary("Sub", [1], [1, 4, 30720]), "rk3566", "[1] over 30720 steps", "lite:0x4030:0:0x1fff"),
    (binary("Div", [1, 4, 1], [1, 4, 30720]), "rk3576", "over 30720 steps", "f2:0x301c:0:0x1fff"),
    (binary("Div", [2, 4, 30720], [2, 4, 1]), "rk3562", "over 30720 steps", "t4:0x301c:0:0x1fff"),
    (pad(8192, [0, 0, 1, 0, 0, 0]), "rk3588", "an axis of 8193", "v2:0x4030:0:0x1fff"),
    (pad(8190, [0, 0, 2, 0, 0, 1], "edge"), "rk3576", "an axis of 8193", "f2:0x4020:0:0x1fff"),
]


@pytest.mark.parametrize(("made", "target", "text", "key"), OVERFLOWS)
def test_hardware_fields_names_the_node_when_a_long_axis_overflows(
    made: ir.Model, target: str, text: str, key: str
) -> None:
    verdict = hardware_fields(made, target)
    assert (verdict.status, verdict.measured) == (Status.FAILED, 1)
    for part in ("node 'n0'", text, f"({key})"):
        assert part in verdict.detail
    assert hardware_fields(made, target, [key]).status is Status.PASSED


def mean_taken(mean: str, end: list[onnx.NodeProto], **attributes: Any) -> ir.Model:
    """x less its own mean, then `end`."""
    nodes = [helper.make_node(mean, ["x"], ["m"], **attributes), helper.make_node("Sub", ["x", "m"], ["d"], "n0"), *end]
    return with_shapes(model(nodes, [tensor("x", [1, 4, 30720])], [tensor("y", ["a", "b", "c"])]))


ROOT = [helper.make_node("Sqrt", ["m"], ["s"]), helper.make_node("Div", ["d", "s"], ["y"], "n1")]


@pytest.mark.parametrize(
    ("mean", "attributes", "end", "named"),
    [
        ("ReduceMean", {"axes": [2]}, ROOT, 0),
        ("GlobalAveragePool", {}, ROOT, 2),
        ("ReduceMean", {"axes": [2]}, [helper.make_node("Div", ["d", "m"], ["y"], "n1")], 1),
    ],
)
def test_hardware_fields_leaves_to_the_log_what_may_be_a_normalisation(
    mean: str, attributes: dict[str, Any], end: list[onnx.NodeProto], named: int
) -> None:
    assert hardware_fields(mean_taken(mean, end, **attributes), "rk3588").measured == named
