from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from surgery.normalise_clip_bounds import normalise_clip_bounds
from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import run
from tests.surgery.one_operator import equal_after, feed_of, left_alone, only, operator, operators, weight

LARGEST = 65504
PASS = normalise_clip_bounds()

F32, I32, I64 = np.float32, np.int32, np.int64


def clip(low: Any = None, high: Any = None, **options: Any) -> ir.Model:
    """A Clip of x whose bounds are weights; none where None."""
    bounds = {name: np.asarray(value, F32) for name, value in (("low", low), ("high", high)) if value is not None}
    names = ["low" if low is not None else "-", "high" if high is not None else "-"]
    while names and names[-1] == "-":
        names.pop()
    return operator("Clip", " ".join(["x", *names]), constants=bounds, **options)


def whole(dtype: Any, low: Any = None, high: Any = None) -> ir.Model:
    """An integer Clip."""
    bounds = {name: np.asarray(value, dtype) for name, value in (("low", low), ("high", high)) if value is not None}
    inputs = " ".join(["x", "low" if low is not None else "-", "high" if high is not None else "-"])
    return operator("Clip", inputs, constants=bounds, dtype=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


BOUNDS: dict[str, tuple[ir.Model, tuple[float, float]]] = {
    "no low": (clip(None, 0.5), (-LARGEST, 0.5)),
    "no high": (clip(-0.5), (-0.5, LARGEST)),
    "no high, in two dimensions": (clip(0.25, shape=(3, 5)), (0.25, LARGEST)),
    "zero": (clip(0.0), (0.0, LARGEST)),
    "bounds of shape [1]": (clip([-0.5], [0.5]), (-0.5, 0.5)),
    "one of shape [1]": (clip(-0.5, [0.5]), (-0.5, 0.5)),
    "infinite low": (clip(-np.inf, 0.5), (-LARGEST, 0.5)),
    "lowest float": (clip(np.finfo(F32).min, 0.5), (-LARGEST, 0.5)),
    "high past fp16": (clip(-0.5, 1e5), (-0.5, LARGEST)),
    "low above high": (clip(2.0, -1.0), (-1.0, -1.0)),
    "low above high, past fp16": (clip(1e9, 0.5), (0.5, 0.5)),
    "opset 11": (clip(None, 0.5, opset=11), (-LARGEST, 0.5)),
    "opset 21": (clip(-0.25, opset=21), (-0.25, LARGEST)),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_bounds_become_real_scalars_within_fp16(name: str) -> None:
    original, (low, high) = BOUNDS[name]
    made = equal_after(PASS, original)
    bounds = [weight(value) for value in only(made, "Clip").inputs[1:]]
    assert [(bound.shape, bound.dtype.name, float(bound)) for bound in bounds] == [
        ((), "float32", low),
        ((), "float32", high),
    ]


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_bounds_have_the_inputs_type(dtype: Any) -> None:
    made = equal_after(PASS, whole(dtype, -0.5))
    assert [weight(value).dtype for value in only(made, "Clip").inputs[1:]] == [dtype, dtype]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"max": 0.5}, (-LARGEST, 0.5)),
        ({"min": 0.5}, (0.5, LARGEST)),
        ({"min": -3.4028234663852886e38, "max": 6.0}, (-LARGEST, 6.0)),
    ],
)
@pytest.mark.parametrize("opset", [6, 10])
def test_attributes_become_real_when_opset_is_old(
    opset: int, given: dict[str, Any], wanted: tuple[float, float]
) -> None:
    node = only(equal_after(PASS, operator("Clip", opset=opset, **given)), "Clip")
    assert (node.attributes["min"].as_float(), node.attributes["max"].as_float()) == wanted
    assert len(node.inputs) == 1


GONE = {
    "neither": clip(),
    "both infinite": clip(-np.inf, np.inf),
    "both past fp16": clip(-1e10, 3e38),
    "opset 6": operator("Clip", opset=6),
    "whole numbers": whole(I64),
    "bytes": whole(np.uint8),
    "extremes of int64": whole(I64, np.iinfo(I64).min, np.iinfo(I64).max),
}


@pytest.mark.parametrize("name", GONE)
def test_clip_is_gone_when_nothing_is_past_its_bounds(name: str) -> None:
    made = equal_after(PASS, GONE[name])
    assert operators(made) == ["Identity"]  # y is a graph output
    assert "normalise_clip_bounds" in str(made.graph[0].name)


def test_clip_leaves_no_node_when_its_output_is_inside_and_read_twice() -> None:
    nodes = [
        helper.make_node("Exp", ["x"], ["e"], "e"),
        helper.make_node("Clip", ["e"], ["c"], "clip"),
        helper.make_node("Mul", ["c", "c"], ["y"], "square"),
    ]
    original = model(nodes, [tensor("x", [1, 4])], [tensor("y", [1, 4])])
    assert operators(equal_after(PASS, original)) == ["Exp", "Mul"]


def test_bounds_clip_what_is_past_them_when_past_fp16() -> None:
    feed = {"x": np.linspace(-2e5, 2e5, 48).astype(F32).reshape(1, 4, 12)}
    done = PASS.rewrite(clip(-0.5))
    np.testing.assert_array_equal(run(done.model, feed)["y"], np.clip(feed["x"], -0.5, LARGEST))


COMPUTED = {
    "both": (operator("Clip", "x low high", fed={"low": [], "high": []}), ["Max", "Neg", "Neg", "Max", "Neg"]),
    "of shape [1]": (operator("Clip", "x low", fed={"low": [1]}), ["Max"]),
    "high": (operator("Clip", "x - high", fed={"high": []}), ["Neg", "Neg", "Max", "Neg"]),
    "low beside a weight": (
        operator("Clip", "x low high", fed={"low": []}, constants={"high": np.array(0.5, F32)}),
        ["Max", "Clip"],
    ),
    "high beside a weight": (
        operator("Clip", "x low high", fed={"high": []}, constants={"low": np.array(-0.5, F32)}),
        ["Clip", "Neg", "Neg", "Max", "Neg"],
    ),
}


@pytest.mark.parametrize("name", COMPUTED)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_computed_bounds_become_max(name: str, seed: int) -> None:
    original, wanted = COMPUTED[name]
    made = equal_after(PASS, original, feed=feed_of(original, seed))
    assert sorted(operators(made)) == sorted(wanted)
    for node in made.graph:
        if node.op_type == "Clip":
            assert all(abs(float(weight(value))) <= LARGEST for value in node.inputs[1:])


def test_bound_that_can_be_overridden_is_no_constant() -> None:
    made = clip(-0.5)
    made.graph.inputs.append(made.graph.initializers["low"])
    feed = {"x": feed_of(clip())["x"], "low": np.array(0.25, F32)}
    assert operators(equal_after(PASS, made, feed=feed)) == ["Max"]


def test_bound_of_a_constant_node_counts_as_a_number() -> None:
    nodes = [
        helper.make_node("Constant", [], ["low"], "k", value=constant("v", 0.5)),
        helper.make_node("Clip", ["x", "low"], ["y"], "clip"),
    ]
    made = equal_after(PASS, model(nodes, [tensor("x", [1, 4])], [tensor("y", [1, 4])]))
    assert [float(weight(value)) for value in only(made, "Clip").inputs[1:]] == [0.5, LARGEST]


WHOLE = {
    "int32": (whole(I32, -100, 100), ["Max", "Neg", "Max", "Neg"]),
    "int32, low": (whole(I32, -100), ["Max"]),
    "int64 without high": (whole(I64, 0), ["Max"]),
    "int64 without low": (whole(I64, None, 50), ["Neg", "Max", "Neg"]),
    "int64 past fp16": (whole(I64, -100, 100_000), ["Max", "Neg", "Max", "Neg"]),
    "low above high": (whole(I32, 5, -5), ["Max", "Neg", "Max", "Neg"]),
}


@pytest.mark.parametrize("name", WHOLE)
def test_integer_clip_becomes_max(name: str) -> None:
    original, wanted = WHOLE[name]
    assert operators(equal_after(PASS, original)) == wanted


@pytest.mark.parametrize(
    "original",
    [
        clip(-0.5, 0.5),
        clip(-LARGEST, LARGEST),
        operator("Clip", opset=10, min=0.0, max=6.0),
        whole(I64, -100, 100),
        operator("Relu"),
        model(
            [helper.make_node("Clip", ["x"], ["y"], "c", domain="com.example")],
            [tensor("x", [1])],
            [tensor("y", [1])],
        ),
    ],
)
def test_graph_is_left_alone_when_every_bound_is_real(original: ir.Model) -> None:
    left_alone(PASS, original)


def test_two_clips_are_two_hits_when_they_share_a_bound() -> None:
    nodes = [
        helper.make_node("Clip", ["x", "low"], ["a"], "first"),
        helper.make_node("Clip", ["a", "", "low"], ["y"], "second"),
    ]
    original = model(nodes, [tensor("x", [1, 4])], [tensor("a", [1, 4]), tensor("y", [1, 4])], [constant("low", 0.1)])
    equal_after(PASS, original, hits=2)


def test_output_keeps_its_name_when_the_type_is_stated_nowhere_but_at_the_input() -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["c"], "cast", to=TensorProto.INT32),
        helper.make_node("Clip", ["c", "low"], ["k"], "clip"),
        helper.make_node("Cast", ["k"], ["y"], "back", to=TensorProto.FLOAT),
    ]
    original = model(nodes, [tensor("x", [1, 4])], [tensor("y", [1, 4])], [constant("low", 0, I32)])
    assert operators(equal_after(PASS, original)) == ["Cast", "Max", "Cast"]
