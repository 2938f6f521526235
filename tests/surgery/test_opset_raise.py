"""Operators of old opsets as opset 13 writes them, against onnxruntime on the old ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto

from surgery.opset_raise import dtype_of, raised
from surgery.splice import Draft, splice
from tests.onnx_runs import run
from tests.surgery.graphs import check
from tests.surgery.one_operator import feed_of, operator


def upgraded(made: ir.Model, opset: int) -> str | None:
    """Make the one node of `made` one of opset 13; why it cannot be."""
    step = raised(made.graph[0], opset)
    assert step is not None
    draft = Draft()
    outcome = step(made.graph[0], draft)
    if isinstance(outcome, str):
        return outcome
    splice(made.graph[0], draft.nodes, outcome, "test")
    made.opset_imports[""] = 13
    return None


def old(op: str, inputs: str = "x", outputs: str = "y", *, opset: int, **options: Any) -> Any:
    return pytest.param(op, inputs, outputs, opset, options, id=f"{op} of {opset} {options}")


@pytest.mark.parametrize(
    ("op", "inputs", "outputs", "opset", "options"),
    [
        old("Clip", opset=7, min=-0.5, max=0.25),
        old("Clip", opset=10, max=0.25),
        old("Pad", opset=10, shape=(2, 3), pads=[0, 1, 2, 0], value=1.5),
        old("Pad", opset=7, shape=(2, 3), pads=[0, 1, 1, 0], mode="reflect"),
        old("ReduceSum", opset=11, axes=[1], keepdims=0, made={"y": (2, 1)}),
        old("Slice", opset=9, starts=[1], ends=[9], axes=[2]),
        old("Slice", opset=9, starts=[0, 1], ends=[1, -1]),
        old("Softmax", opset=11, shape=(2, 3, 4), axis=1),
        old("Softmax", opset=11, shape=(2, 3, 4)),
        old("Softmax", opset=12, shape=(2, 3, 4), axis=-1),
        old("LogSoftmax", opset=11, shape=(2, 3, 4), axis=1),
        old("Hardmax", opset=11, shape=(2, 3, 4), axis=1),
        old("Split", outputs="a b", opset=11, shape=(2, 6), axis=1, split=[2, 4]),
        old("Squeeze", opset=11, shape=(2, 1, 3), axes=[1], made={"y": (2, 1)}),
        old("Unsqueeze", opset=11, shape=(2, 3), axes=[0, 2], made={"y": (4, 1)}),
        old("TopK", outputs="a b", opset=9, shape=(2, 6), k=3, made={"a": (2, 1), "b": (2, TensorProto.INT64)}),
        old("Upsample", opset=7, shape=(1, 2, 3, 4), scales=[1.0, 1.0, 2.0, 3.0]),
        old("Upsample", "x s", opset=9, shape=(1, 2, 3, 4), mode="linear", constants={"s": [1, 1, 2, 2]}),
        old("Resize", "x s", opset=10, shape=(1, 2, 3, 4), constants={"s": [1, 1, 2, 2]}),
        old("Resize", "x s", opset=10, shape=(1, 2, 4, 6), constants={"s": [1, 1, 0.5, 0.5]}),
        old("Scatter", "x i u", opset=10, shape=(2, 3), fed={"u": (1, 2)}, constants={"i": np.array([[1, 0]])}, axis=1),
    ],
)
def test_raised_gives_what_onnxruntime_gave_when_the_opset_was_older(
    op: str, inputs: str, outputs: str, opset: int, options: dict[str, Any]
) -> None:
    made = operator(op, inputs, outputs, opset=opset, **options)
    feed = feed_of(made)
    wanted = run(made, feed)
    assert upgraded(made, opset) is None
    check(made)
    got = run(made, feed)
    for name, array in wanted.items():
        np.testing.assert_allclose(got[name], array, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("op", "inputs", "outputs", "opset", "options", "why"),
    [
        ("Dropout", "x", "y m", 9, {}, "its mask is read"),
        ("BatchNormalization", "x s b m v", "y", 8, {"spatial": 0}, "spatial is 0: a mean for each element"),
        ("Resize", "x s", "y", 10, {"fed": {"s": (3,)}}, "its scales are computed"),
        ("Resize", "x s", "y", 10, {"constants": {"s": [1, 2, 0.5]}}, "grow one axis and shrink another"),
        ("Scan", "x", "y", 8, {}, "a Scan of before opset 9 has sequence lengths"),
    ],
)
def test_raised_says_why_when_opset_13_has_no_equal(
    op: str, inputs: str, outputs: str, opset: int, options: dict[str, Any], why: str
) -> None:
    given: dict[str, Any] = {"fed": dict.fromkeys("sbmv", (4,))} if op == "BatchNormalization" else {}
    outcome = upgraded(operator(op, inputs, outputs, opset=opset, **given, **options), opset)
    assert outcome is not None
    assert why in outcome


@pytest.mark.parametrize(
    ("op", "opset", "wanted"),
    [
        ("Relu", 7, False),
        ("Clip", 10, True),
        ("Clip", 11, False),
        ("Slice", 9, True),
        ("Slice", 10, False),
        ("Softmax", 12, True),
        ("Softmax", 13, False),
        ("Resize", 12, True),
    ],
)
def test_raised_is_a_step_when_opset_13_writes_it_otherwise(op: str, opset: int, wanted: bool) -> None:
    assert (raised(ir.node(op, []), opset) is not None) is wanted


def test_dtype_of_is_float32_when_nothing_says_it() -> None:
    assert dtype_of(operator("Neg", dtype=TensorProto.INT64).graph[0]) is ir.DataType.INT64
    assert dtype_of(ir.node("Neg", [ir.Value(name="x")])) is ir.DataType.FLOAT
    assert dtype_of(ir.node("RandomNormal", [])) is ir.DataType.FLOAT
