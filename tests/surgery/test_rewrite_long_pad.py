"""Copied steps around long axes: equal to numpy's pads, and only where a field overflows."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from contracts.axis_fields import LONGEST_PADDED
from surgery.rewrite_long_pad import rewrite_long_pad
from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import run
from tests.surgery.convolutions import left_alone, rewritten

PASS = rewrite_long_pad()

LONG = 30720

BIT_FOR_BIT = float("inf")


def pad(shape: list[int | str], pads: list[int], mode: str | None = "reflect", **options: Any) -> ir.Model:
    """y = Pad(x)."""
    opset, dtype = options.get("opset", 17), options.get("dtype", TensorProto.FLOAT)
    attributes = {} if mode is None else {"mode": mode}
    extra = options.get("extra", [])
    if opset >= 11:
        node = helper.make_node("Pad", ["x", "p", *extra], ["y"], "c", **attributes)
        constants = [constant("p", pads, np.int64)]
    else:
        node, constants = helper.make_node("Pad", ["x"], ["y"], "c", pads=pads, **attributes), []
    if "axes" in extra:
        constants.append(constant("axes", [2], np.int64))
    if "v" in extra:
        constants.append(constant("v", 0.5))
    outputs = [tensor("y", [f"d{axis}" for axis in range(len(shape))], dtype)]
    return model([node], [tensor("x", shape, dtype)], outputs, constants, opset=opset)


@pytest.mark.parametrize("opset", [13, 17, 19])
@pytest.mark.parametrize("mode", ["reflect", "edge"])
@pytest.mark.parametrize(("before", "behind"), [(1, 0), (0, 1), (3, 2), (8, 8)])
def test_rewrite_long_pad_copies_as_numpy_does_when_the_axis_is_too_long(
    before: int, behind: int, mode: str, opset: int
) -> None:
    original = pad([1, 3, LONG], [0, 0, before, 0, 0, behind], mode, opset=opset)
    made = rewritten(PASS, original, least_db=BIT_FOR_BIT)
    assert {node.op_type for node in made.graph} == {"Slice", "Concat"}
    x = np.random.default_rng(1).standard_normal((1, 3, LONG)).astype(np.float32)
    wanted = np.pad(x, ((0, 0), (0, 0), (before, behind)), mode=mode)  # type: ignore[call-overload]
    np.testing.assert_array_equal(run(made, {"x": x})["y"], wanted)


@settings(deadline=None, max_examples=25)
@given(
    length=st.integers(LONGEST_PADDED - 17, LONGEST_PADDED + 3),
    before=st.integers(0, 9),
    behind=st.integers(0, 9),
    mode=st.sampled_from(["reflect", "edge", "constant"]),
)
def test_rewrite_long_pad_is_equal_whatever_the_sizes(length: int, before: int, behind: int, mode: str) -> None:
    original = pad([1, 2, length], [0, 0, before, 0, 0, behind], mode)
    done = PASS.rewrite(original)
    fits = before + length + behind <= LONGEST_PADDED or before + behind in (0, 17, 18)
    assert done.hits == (0 if fits or mode == "constant" else 1)
    x = np.random.default_rng(length).standard_normal((1, 2, length)).astype(np.float32)
    np.testing.assert_array_equal(run(done.model, {"x": x})["y"], run(original, {"x": x})["y"])


def test_rewrite_long_pad_cuts_an_edge_once_when_it_is_repeated() -> None:
    made = rewritten(PASS, pad([1, 3, LONG], [0, 0, 5, 0, 0, 0], "edge"), least_db=BIT_FOR_BIT)
    assert [node.op_type for node in made.graph] == ["Slice", "Concat"]


def test_rewrite_long_pad_keeps_fp16_when_the_graph_is_fp16() -> None:
    original = pad([1, 3, LONG], [0, 0, 1, 0, 0, 1], dtype=TensorProto.FLOAT16)
    made = rewritten(PASS, original, least_db=BIT_FOR_BIT)
    assert {value.dtype for node in made.graph for value in node.outputs} == {ir.DataType.FLOAT16}


@pytest.mark.parametrize(
    "original",
    [
        pad([1, 3, LONGEST_PADDED - 1], [0, 0, 1, 0, 0, 0]),
        pad([1, 3, LONG], [0, 0, 1, 0, 0, 0], "constant"),
        pad([1, 3, LONG], [0, 0, 1, 0, 0, 0], None),
        pad([1, 3, LONG], [0, 0, 1, 0, 0, 0], "wrap", opset=19),
        pad([1, 3, LONG], [0, 0, 0, 0, 0, 0]),
        pad([1, 3, LONG], [0, 1, 1, 0, 0, 0]),
        pad([1, 3, LONG], [0, 0, 17, 0, 0, 0]),
        pad([1, 3, LONG], [0, 0, 2, 0, 0, -1]),
        pad([2, 3, LONG], [0, 0, 1, 0, 0, 0]),
        pad([3, LONG], [0, 1, 0, 0]),
        pad([1, 3, LONG, 1], [0, 0, 1, 0, 0, 0, 0, 0]),
        pad([1, 3, "t"], [0, 0, 1, 0, 0, 0]),
        pad([1, 3, LONG], [0, 0, 1, 0, 0, 0], extra=["v"]),
        pad([1, 3, LONG], [1, 0], opset=18, extra=["", "axes"]),
        pad([1, 3, LONG], [0, 0, 1, 0, 0, 0], opset=12),
        pad([1, 3, LONG], [0, 0, 1, 0, 0, 0], opset=10),
        pad([1, 3, LONG], [0, 0, 1, 0, 0, 0], dtype=TensorProto.DOUBLE),
    ],
    ids=str,
)
def test_rewrite_long_pad_leaves_the_graph_alone_when_it_fits_or_is_not_known(original: ir.Model) -> None:
    left_alone(PASS, original)


def test_rewrite_long_pad_leaves_the_graph_alone_when_the_pads_are_computed() -> None:
    nodes = [helper.make_node("Pad", ["x", "p"], ["y"], "c", mode="reflect")]
    inputs = [tensor("x", [1, 3, LONG]), tensor("p", [6], TensorProto.INT64)]
    left_alone(PASS, model(nodes, inputs, [tensor("y", ["a", "b", "c"])]))
