"""What is said of a value's range holds for every feed, and is as narrow as the operators make it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import NodeProto, TensorProto, helper

from surgery import intervals
from surgery.inferred import infer_types
from surgery.value_ranges import Ranges, is_absolute, slope_of
from tests.gates.small_graphs import constant, proto, tensor
from tests.onnx_runs import Array, run

RNG = np.random.default_rng(11)
SHAPE = (2, 4, 6)
WEIGHTS: dict[str, Any] = {
    "w": RNG.standard_normal((4, 4, 3)), "w2": RNG.standard_normal((6, 2, 1)), "b": RNG.standard_normal(4),
    "down": -np.abs(RNG.standard_normal((4, 4, 1))), "none": np.zeros((4, 4, 1)), "under": [-1.0, -2.0, -3.0, 0.5],
    "each": RNG.standard_normal((1, 4, 1)), "all": RNG.standard_normal((1, 4, 6)), "two": 2.0, "minus": -1.5,
    "lo": -1.0, "hi": 0.75, "scale": RNG.standard_normal(4), "var": RNG.uniform(0.5, 2, 4),
    "m": RNG.standard_normal((6, 5)), "left": RNG.standard_normal((3, 4)), "row": RNG.standard_normal(5),
    "no made": np.zeros((0, 4, 1)), "no taken": np.zeros((6, 0)),
    "signs": np.array([[-1.0, -2, 0, -1], [0, 1, 2, 3], [0, 0, 0, 0], [0, 0, 1, -1]])[..., None],
    "mt": RNG.standard_normal((5, 6)), "far": np.inf,
}  # fmt: skip
WHOLE: dict[str, list[int]] = {
    "flat": [8, 6],
    "cut": [2, 2, 2, 6],
    "axis1": [1],
    "wide": [2, 4, 12],
    "more": [2, 8, 6],
}


def node(op: str, inputs: str, output: str = "y", **attributes: Any) -> NodeProto:
    names = [name if name != "-" else "" for name in inputs.split()]
    return helper.make_node(op, names, [output], f"to_{output}", **attributes)


def graph(*nodes: NodeProto, shape: Sequence[int] = SHAPE, opset: int = 15) -> onnx.ModelProto:
    constants = [constant(name, values) for name, values in WEIGHTS.items()]
    constants += [constant(name, values, np.int64) for name, values in WHOLE.items()]
    read = {name for made in nodes for name in made.input}
    return proto(
        nodes, [tensor("x", shape)], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [weight for weight in constants if weight.name in read], opset=opset,
    )  # fmt: skip


def bounds(original: onnx.ModelProto) -> tuple[Array, Array]:
    model = ir.from_proto(original)
    infer_types(model)
    found = Ranges().of(model.graph.outputs[0])
    return found.low, found.high


R, C = node("Relu", "x", "r"), node("Clip", "x lo hi", "r")

BOUNDED = {
    "relu": [node("Relu", "x")],
    "clip": [node("Clip", "x lo hi")],
    "half a clip": [node("Clip", "x - hi")],
    "leaky": [C, node("LeakyRelu", "r", alpha=-0.5)],
    "leaky up": [C, node("LeakyRelu", "r", alpha=0.5)],
    "abs": [node("Abs", "x")],
    "abs of negative": [C, node("Sub", "r two", "s"), node("Abs", "s")],
    "conv": [C, node("Conv", "r w b", pads=[1, 1])],
    "conv inside": [R, node("Conv", "r down under")],
    "groups": [C, node("Conv", "r w2", group=2)],
    "nothing": [node("Conv", "x none b")],
    "add": [C, node("Relu", "x", "s"), node("Add", "r s")],
    "add each": [R, node("Add", "each r")],
    "add all": [R, node("Add", "r all")],
    "sub": [R, node("Sub", "each r")],
    "mul": [R, node("Mul", "each r")],
    "div": [R, node("Div", "r minus")],
    "neg": [R, node("Neg", "r")],
    "batch norm": [R, node("BatchNormalization", "r scale b b var")],
    "max pool": [C, node("MaxPool", "r", kernel_shape=[3], pads=[1, 1])],
    "average pool": [C, node("Add", "r two", "s"), node("AveragePool", "s", kernel_shape=[3], pads=[1, 1],
                                                        count_include_pad=1)],
    "global": [R, node("GlobalAveragePool", "r")],
    "global max": [C, node("GlobalMaxPool", "r")],
    "concat": [R, node("Neg", "r", "s"), node("Concat", "r s", axis=1)],
    "concat steps": [C, node("Add", "r each", "s"), node("Concat", "r s", axis=-1)],
    "matmul": [C, node("MatMul", "r m")],
    "matmul left": [C, node("MatMul", "left r")],
    "gemm": [C, node("Reshape", "r flat", "s"), node("Gemm", "s m row", alpha=0.5, beta=-2.0)],
    "gemm turned": [C, node("Reshape", "r flat", "s"), node("Gemm", "s mt", transB=1)],
    "transpose": [R, node("Add", "r each", "s"), node("Transpose", "s", perm=[0, 2, 1])],
    "reshape": [R, node("Add", "r each", "s"), node("Reshape", "s cut")],
    "unsqueeze": [R, node("Add", "r each", "s"), node("Unsqueeze", "s axis1", "t"), node("Squeeze", "t axis1")],
    "flatten": [R, node("Add", "r each", "s"), node("Flatten", "s")],
    "identity": [R, node("Dropout", "r", "s"), node("Identity", "s")],
    "resize": [C, node("Add", "r each", "s"), node("Resize", "s - - wide", mode="linear")],
}  # fmt: skip

OPEN = {
    "input": [node("Identity", "x")],
    "conv": [node("Conv", "x w")],
    "tanh": [node("Tanh", "x")],
    "product of two": [R, node("Mul", "r r")],
    "infinite": [R, node("Mul", "r far")],
    "other domain": [helper.make_node("Relu", ["x"], ["y"], "other", domain="com.example")],
    "cubic": [C, node("Resize", "r - - wide", mode="cubic")],
    "channels resized": [C, node("Add", "r each", "s"), node("Resize", "s - - more", mode="nearest")],
    "conv to no channels": [C, helper.make_node("Conv", ["r", "no made"], ["y"])],
    "matmul to no steps": [C, helper.make_node("MatMul", ["r", "no taken"], ["y"])],
    "computed bound": [node("Identity", "lo", "s"), node("Clip", "x s hi")],
}


@pytest.mark.parametrize("name", BOUNDED)
def test_values_stay_in_the_range_that_is_said(name: str) -> None:
    original = graph(*BOUNDED[name])
    low, high = bounds(original)
    assert np.any(np.isfinite(low)) or np.any(np.isfinite(high))
    for size in (0.1, 1.0, 10.0):
        feed = {"x": (RNG.standard_normal(SHAPE) * size).astype(np.float32)}
        made = run(ir.from_proto(original), feed)["y"]
        assert np.all(made >= low - 1e-4)
        assert np.all(made <= high + 1e-4)


@pytest.mark.parametrize("name", BOUNDED)
def test_range_is_the_same_when_weights_are_looked_at_in_parts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = bounds(graph(*BOUNDED[name]))
    monkeypatch.setattr(intervals, "_PART", 3)
    np.testing.assert_array_equal(bounds(graph(*BOUNDED[name])), whole)


def test_bound_is_infinite_only_where_a_weight_meets_one() -> None:
    """A Relu has no upper end: rows of negative weights are at most 0, of positive ones at least 0, of zeros both."""
    low, high = bounds(graph(R, node("Conv", "r signs")))
    np.testing.assert_array_equal(low.ravel(), [-np.inf, 0.0, 0.0, -np.inf])
    np.testing.assert_array_equal(high.ravel(), [0.0, np.inf, 0.0, np.inf])


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_nothing_is_said_of_weights_that_are_no_numbers(odd: float) -> None:
    original = graph(R, node("Conv", "r w"))
    weight = np.array(WEIGHTS["w"], np.float32)
    weight[1, 2, 0] = odd
    (stated,) = original.graph.initializer
    stated.CopyFrom(constant("w", weight))
    low, high = bounds(original)
    assert np.all(np.isneginf(low))
    assert np.all(np.isposinf(high))


@pytest.mark.parametrize("name", OPEN)
def test_nothing_is_said_of_others(name: str) -> None:
    low, high = bounds(graph(*OPEN[name]))
    assert np.all(np.isneginf(low))
    assert np.all(np.isposinf(high))


def test_range_is_reached_at_its_ends() -> None:
    """What a convolution makes of the corners of its data's box."""
    original = graph(*BOUNDED["groups"])
    low, high = bounds(original)
    weight = np.asarray(WEIGHTS["w2"], np.float32)[..., 0]
    for channel in range(6):
        corner = np.zeros(SHAPE, np.float32)
        half = slice(0, 2) if channel < 3 else slice(2, 4)
        for sign, end in ((1, high), (-1, low)):
            corner[:, half] = np.where(sign * weight[channel] > 0, 9.0, -9.0)[:, None]
            made = run(ir.from_proto(original), {"x": corner})["y"]
            np.testing.assert_allclose(made[:, channel], end[0, channel, 0], rtol=1e-5)


def test_padding_is_in_the_range() -> None:
    _, high = bounds(graph(C, node("Sub", "r two", "s"), node("Conv", "s down", pads=[1, 1])))
    low, _ = bounds(graph(C, node("Sub", "r two", "s"), node("Conv", "s down", pads=[1, 1])))
    assert np.all(high > 0)
    np.testing.assert_array_equal(low, 0 * low)


@pytest.mark.parametrize(
    ("made", "slope"),
    [
        (node("Abs", "x"), -1.0),
        (node("LeakyRelu", "x", alpha=-0.5), -0.5),
        (node("LeakyRelu", "x"), 0.01),
        (node("Relu", "x"), None),
    ],
)
def test_slope_is_that_below_zero(made: NodeProto, slope: float | None) -> None:
    (found,) = ir.from_proto(graph(made)).graph
    assert slope_of(found) == (None if slope is None else pytest.approx(slope))
    assert is_absolute(found) is (slope is not None and slope < 0)
