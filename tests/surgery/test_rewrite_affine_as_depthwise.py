"""Affine steps ahead of an activation as a depthwise convolution: equal in onnxruntime, and only where that fuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from surgery.rewrite_affine_as_depthwise import MOST_CHANNELS, rewrite_affine_as_depthwise
from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import run, snr_db
from tests.surgery.affine_graphs import SIZES, VECTOR, C, affine_graph, nested, node
from tests.surgery.graphs import check
from tests.surgery.one_operator import equal_after, left_alone, operators, weight

PASS = rewrite_affine_as_depthwise()

STEPS = (node("Mul", "h s", "a"), node("Add", "a t", "b"))
LEAKY = node("LeakyRelu", "b", "y", alpha=0.1)
SCALE = (node("Mul", "h s", "b"),)

ROWS = {
    "x a + b": STEPS,
    "(x + b) a": (node("Add", "h t", "a"), node("Mul", "a s", "b")),
    "x a": SCALE,
    "x / a": (node("Div", "h s", "b"),),
    "x + b": (node("Add", "k h", "b"),),
    "x - b": (node("Sub", "h column", "b"),),
    "b - x": (node("Sub", "t h", "b"),),
    "-x": (node("Neg", "h", "b"),),
    "b - x a": (node("Mul", "s h", "a"), node("Sub", "k1 a", "b")),
    "a row": (node("Add", "h t", "p"), node("Mul", "p s", "q"), node("Sub", "k q", "r"), node("Neg", "r", "b")),
}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("sizes", [SIZES, (2, C, 3, 5)])
def test_rewrite_affine_as_depthwise_is_one_convolution_when_an_activation_follows(
    name: str, sizes: tuple[int, ...]
) -> None:
    shapes: dict[str, Any] = {key: values.reshape(1, C, *[1] * (len(sizes) - 2)) for key, values in VECTOR.items()}
    shapes["column"] = shapes["s"][0]
    made = equal_after(PASS, affine_graph(*ROWS[name], LEAKY, sizes=sizes, **shapes))
    assert operators(made) == ["Conv", "Conv", "LeakyRelu"]
    assert made.graph[1].attributes.get_int("group") == C
    assert str(made.graph[1].name).startswith("rewrite_affine_as_depthwise/")
    assert set(made.graph.initializers) == {str(value.name) for one in made.graph for value in one.inputs[1:] if value}


def test_rewrite_affine_as_depthwise_has_no_bias_when_nothing_is_added() -> None:
    made = equal_after(PASS, affine_graph(*SCALE, LEAKY))
    assert len(made.graph[1].inputs) == 2
    np.testing.assert_array_equal(weight(made.graph[1].inputs[1]).reshape(-1), VECTOR["s"].reshape(-1))


ACTIVATIONS = {
    "Abs": (node("Abs", "b", "y"),),
    "Clip": (node("Clip", "b low high", "y"),),
    "Elu": (node("Elu", "b", "y", alpha=0.5),),
    "LeakyRelu of negative slope": (node("LeakyRelu", "b", "y", alpha=-1.0),),
    "LeakyRelu": (node("LeakyRelu", "b", "y"),),
    "PRelu": (node("PRelu", "b slope", "y"),),
    "Sigmoid": (node("Sigmoid", "b", "y"),),
    "Softplus": (node("Softplus", "b", "y"),),
    "Tanh": (node("Tanh", "b", "y"),),
    "swish": (node("Sigmoid", "b", "g"), node("Mul", "b g", "y")),
    "swish turned": (node("Sigmoid", "b", "g"), node("Mul", "g b", "y")),
    "swish with a beta": (node("Mul", "b k", "d"), node("Sigmoid", "d", "g"), node("Mul", "b g", "y")),
}
MORE = {"low": -1.0, "high": 1.0, "slope": VECTOR["u"][0]}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_rewrite_affine_as_depthwise_is_equal_when_the_activation_is_taken_in(name: str) -> None:
    made = equal_after(PASS, affine_graph(*STEPS, *ACTIVATIONS[name], **MORE))
    assert operators(made) == ["Conv", "Conv", *(one.op_type for one in ACTIVATIONS[name])]


@pytest.mark.parametrize("opset", [7, 12, 13, 19])
def test_rewrite_affine_as_depthwise_is_equal_when_the_opset_is(opset: int) -> None:
    equal_after(PASS, affine_graph(*STEPS, LEAKY, opset=opset))


def test_rewrite_affine_as_depthwise_is_equal_when_clip_has_attributes() -> None:
    equal_after(PASS, affine_graph(*STEPS, node("Clip", "b", "y", min=-1.0, max=1.0), opset=9))


def test_rewrite_affine_as_depthwise_finds_the_convolution_beyond_elementwise_operators() -> None:
    before = (node("Exp", "h", "e"), node("Add", "h e", "sum"), node("Mul", "sum s", "b"))
    made = equal_after(PASS, affine_graph(*before, LEAKY))
    assert operators(made) == ["Conv", "Exp", "Add", "Conv", "LeakyRelu"]


def test_rewrite_affine_as_depthwise_rewrites_rows_in_a_row() -> None:
    second = (node("Add", "c u", "d"), node("Tanh", "d", "y"))
    made = equal_after(PASS, affine_graph(*STEPS, node("LeakyRelu", "b", "c", alpha=0.1), *second), hits=2)
    assert operators(made) == ["Conv", "Conv", "LeakyRelu", "Conv", "Tanh"]


def test_rewrite_affine_as_depthwise_reads_the_new_value_when_one_row_reads_another() -> None:
    gate = (node("Sigmoid", "b", "g"), node("Mul", "b g", "y"))
    doubled = (node("Mul", "y u", "d"), node("Tanh", "d", "z"))
    made = equal_after(PASS, affine_graph(*STEPS, *gate, *doubled, outputs=("y", "z")), hits=2)
    assert operators(made).count("Conv") == 3


BETA = (node("Mul", "h k", "d"), node("Sigmoid", "d", "g"), node("Mul", "h g", "y"))
LEFT = {
    "a Relu": affine_graph(*STEPS, node("Relu", "b", "y")),
    "an output": affine_graph(*STEPS, LEAKY, outputs=("y", "b")),
    "no activation": affine_graph(*STEPS, node("Add", "b h", "y")),
    "a function that is not taken in": affine_graph(*STEPS, node("Exp", "b", "y")),
    "two activations": affine_graph(*STEPS, node("Tanh", "b", "c"), node("Sigmoid", "b", "d"), node("Mul", "c d", "y")),
    "a gate of another": affine_graph(*STEPS, node("Sigmoid", "b", "g"), node("Add", "b g", "y")),
    "a gate read twice": affine_graph(
        *STEPS, node("Sigmoid", "b", "g"), node("Mul", "b g", "y"), node("Add", "g h", "z"), outputs=("y", "z")
    ),
    "a beta for each channel": affine_graph(
        *STEPS, node("Mul", "b u", "d"), node("Sigmoid", "d", "g"), node("Mul", "b g", "y")
    ),
    "the beta of a swish": affine_graph(*BETA),
    "a computed slope": affine_graph(*STEPS, node("ReduceMax", "h", "m", keepdims=0), node("PRelu", "b m", "y")),
    "the slope itself": affine_graph(*STEPS, node("PRelu", "h b", "y")),
    "the convolution before takes them": affine_graph(*STEPS, LEAKY, read_once=True),
    "nothing changes": affine_graph(node("Mul", "h one", "b"), LEAKY),
    "varies along time": affine_graph(*SCALE, LEAKY, s=np.arange(1.0, 21.0)),
    "computed": affine_graph(node("ReduceMean", "h", "m", axes=[2]), node("Mul", "h m", "b"), LEAKY),
    "scale below fp16": affine_graph(*SCALE, LEAKY, s=1e-5),
    "scale above fp16": affine_graph(*SCALE, LEAKY, s=1e5),
    "shift above fp16": affine_graph(*STEPS, LEAKY, t=1e5),
    "half floats": affine_graph(*STEPS, LEAKY, dtype=np.float16),
    "doubles": affine_graph(*STEPS, LEAKY, dtype=np.float64),
    "five axes": affine_graph(node("Mul", "h k", "b"), LEAKY, sizes=(1, 2, 2, 2, 2)),
    "open length": affine_graph(*STEPS, LEAKY, sizes=(1, C, "time")),
    "another domain": affine_graph(*STEPS, helper.make_node("LeakyRelu", ["b"], ["y"], "other", domain="other")),
    "taken for zero": affine_graph(*STEPS, node("LeakyRelu", "b", "y", alpha=-1.0), s=-1.0, t=-0.5),
    "taken for zero by Abs": affine_graph(node("Neg", "h", "b"), node("Abs", "b", "y")),
    "nothing before": model(
        [node("Add", "x k", "b"), LEAKY], [tensor("x", SIZES)], [tensor("y", SIZES)], [constant("k", 1.0)]
    ),
}


@pytest.mark.parametrize("name", LEFT)
def test_rewrite_affine_as_depthwise_leaves_the_graph_alone_when_nothing_is_gained_or_known(name: str) -> None:
    left_alone(PASS, LEFT[name])


def residual(*between: Any, sizes: tuple[int, ...] = SIZES, group: int = 1, **conv: Any) -> ir.Model:
    """LeakyRelu((h + Conv(h)) s + t), the steps `between` making r of the convolution's c."""
    kernel = conv.get("kernel_shape", [3] * (len(sizes) - 2))
    held: dict[str, Any] = {"w2": np.random.default_rng(1).standard_normal((C, C // group, *kernel)) / 4}
    held |= {name: values.reshape(1, C, *[1] * (len(sizes) - 2)) for name, values in VECTOR.items()}
    stated = {"pads": [1] * 2 * (len(sizes) - 2), **conv}
    residue = (node("Conv", "h w2", "c", group=group, **stated), *between)
    total = node("Add", "h r" if between else "c h", "sum")
    steps = (node("Mul", "sum s", "a"), node("Add", "a t", "b"))
    return affine_graph(*residue, total, *steps, LEAKY, sizes=sizes, **held)


@pytest.mark.parametrize(
    "original",
    [
        residual(),
        residual(group=C),
        residual(sizes=(1, C, 4, 5)),
        residual(dilations=[3], pads=[3, 3]),
        residual(kernel_shape=[1], pads=[0, 0]),
        residual(node("Mul", "c u", "p"), node("Sub", "p k", "r")),
    ],
)
def test_rewrite_affine_as_depthwise_leaves_a_residual_sum_alone_when_the_compiler_makes_one_conv_of_it(
    original: ir.Model,
) -> None:
    left_alone(PASS, original)


@pytest.mark.parametrize(
    "original",
    [
        residual(pads=[2, 0]),
        residual(kernel_shape=[4], pads=[2, 1]),
        residual(group=2),
        residual(node("Tanh", "c", "r")),
        residual(node("Tanh", "h", "q"), node("Conv", "q w2", "r", pads=[1, 1])),
    ],
)
def test_rewrite_affine_as_depthwise_rewrites_a_residual_sum_when_the_compiler_adds_it(original: ir.Model) -> None:
    equal_after(PASS, original)


@pytest.mark.parametrize("before", ["MatMul", "Transpose"])
def test_rewrite_affine_as_depthwise_leaves_the_graph_alone_when_it_lies_in_rows(before: str) -> None:
    shape = [1, 8, 8]
    first = node("MatMul", "x w", "m") if before == "MatMul" else node("Transpose", "x", "m", perm=[0, 2, 1])
    nodes = [first, node("Tanh", "m", "h"), node("Add", "h k", "b"), LEAKY]
    weights = [constant("w", np.eye(8)), constant("k", 2.0)]
    left_alone(PASS, model(nodes, [tensor("x", shape)], [tensor("y", shape)], weights[before != "MatMul" :]))


def test_rewrite_affine_as_depthwise_leaves_the_graph_alone_when_there_are_too_many_channels() -> None:
    equal_after(PASS, many(MOST_CHANNELS))
    left_alone(PASS, many(MOST_CHANNELS + 1))


def many(channels: int) -> ir.Model:
    sizes = [1, channels, 2]
    nodes = [helper.make_node("Conv", ["x", "w"], ["h"], group=channels), node("Mul", "h k", "b"), LEAKY]
    weights = [constant("w", np.ones((channels, 1, 1))), constant("k", 2.0)]
    return model(nodes, [tensor("x", sizes)], [tensor(name, sizes) for name in ("y", "h")], weights)


@pytest.mark.parametrize("captured", ["a", "b", "y"])
def test_rewrite_affine_as_depthwise_is_equal_when_a_nested_graph_captures_a_value(captured: str) -> None:
    reader, weights = nested(captured)
    original = model(
        [helper.make_node("Conv", ["x", "w"], ["h"]), *STEPS, LEAKY, reader],
        [tensor("x", SIZES)],
        [tensor(name, SIZES) for name in ("y", "y2", "h")],
        [constant("w", np.eye(C)[..., None]), constant("s", VECTOR["s"]), constant("t", VECTOR["t"]), *weights],
    )
    if captured == "b":
        left_alone(PASS, original)
    else:
        equal_after(PASS, original)


@settings(max_examples=40, deadline=None)
@given(
    channels=st.integers(1, 9),
    axes=st.lists(st.integers(1, 6), min_size=1, max_size=2),
    ops=st.lists(st.sampled_from(["Mul", "Add", "Sub", "Div", "Neg"]), min_size=1, max_size=5),
    many_numbers=st.booleans(),
    seed=st.integers(0, 99),
)
def test_rewrite_affine_as_depthwise_is_equal_for_any_row(
    channels: int, axes: list[int], ops: list[str], many_numbers: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    shape = [channels, *[1] * len(axes)] if many_numbers else []
    constants: dict[str, Any] = {}
    nodes, last = [], "h"
    for place, op in enumerate(ops):
        constants[f"c{place}"] = rng.uniform(0.5, 2.0, shape)
        nodes.append(node(op, last if op == "Neg" else f"{last} c{place}", f"o{place}"))
        last = f"o{place}"
    sizes = (1, channels, *axes)
    original = affine_graph(*nodes, node("LeakyRelu", last, "y", alpha=0.2), sizes=sizes, **constants)
    done = PASS.rewrite(original)
    check(done.model)
    feed: dict[str, Any] = {"x": rng.standard_normal(sizes).astype(np.float32)}
    for name, wanted in run(original, feed).items():
        assert snr_db(wanted, run(done.model, feed)[name]) >= 120
