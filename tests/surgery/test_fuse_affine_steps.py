"""Rows of affine steps as one Mul and one Add: equal in onnxruntime, and only where a pass over the tensor goes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from surgery.fuse_affine_steps import fuse_affine_steps
from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import run, snr_db
from tests.surgery.affine_graphs import SIZES, VECTOR, C, affine_graph, nested, node
from tests.surgery.graphs import check
from tests.surgery.one_operator import equal_after, left_alone, operators, weight

PASS = fuse_affine_steps()

RELU = node("Relu", "b", "y")
ADD_MUL = (node("Add", "h t", "a"), node("Mul", "a s", "b"))

FUSED = {
    "add, mul": (affine_graph(*ADD_MUL, RELU), "Conv Mul Add Relu"),
    "sub, div": (affine_graph(node("Sub", "h t", "a"), node("Div", "a s", "b"), RELU), "Conv Mul Add Relu"),
    "constants first": (affine_graph(node("Mul", "s h", "a"), node("Add", "t a", "b"), RELU), "Conv Mul Add Relu"),
    "first of the sum": (affine_graph(node("Mul", "h k", "a"), node("Add", "k1 a", "b"), RELU), "Conv Mul Add Relu"),
    "subtracted from": (affine_graph(node("Mul", "h s", "a"), node("Sub", "t a", "b"), RELU), "Conv Mul Add Relu"),
    "minus before a Relu": (affine_graph(node("Sub", "k h", "b"), RELU), "Conv Mul Add Relu"),
    "neg last": (affine_graph(node("Add", "h column", "a"), node("Neg", "a", "b"), RELU), "Conv Mul Add Relu"),
    "two pairs": (
        affine_graph(
            node("Mul", "h s", "p"), node("Add", "p t", "q"), node("Mul", "q u", "r"), node("Add", "r v", "b"), RELU
        ),
        "Conv Mul Add Relu",
    ),
    "scales cancel": (
        affine_graph(node("Sub", "t h", "a"), node("Sub", "s a", "b"), RELU), "Conv Add Relu"
    ),
    "shifts cancel": (
        affine_graph(node("Add", "h k", "a"), node("Mul", "a s", "c"), node("Sub", "c d", "b"), RELU,
                     s=2.0,
            d=3.0),
        "Conv Mul Relu",
    ),
    "an output": (affine_graph(node("Add", "h t", "a"), node("Mul", "a s", "y")), "Conv Mul Add"),
    "four axes": (affine_graph(*ADD_MUL, RELU, sizes=(2, C, 3, 4), s=VECTOR["s"][..., None], t=2.0),
                  "Conv Mul Add Relu"),
    "a constant as large as the value": (
        affine_graph(*ADD_MUL, RELU, t=np.broadcast_to(VECTOR["t"], SIZES)), "Conv Mul Add Relu"),
    "one channel": (affine_graph(*ADD_MUL, RELU, sizes=(1, 1, 9), s=2.0, t=3.0), "Conv Mul Add Relu"),
    "opset 7": (affine_graph(*ADD_MUL, RELU, opset=7), "Conv Mul Add Relu"),
    "opset 19": (affine_graph(*ADD_MUL, RELU, opset=19), "Conv Mul Add Relu"),
    "before a convolution, last a sum": (
        affine_graph(node("Add", "h t", "a"), node("Mul", "a s", "b"), node("Add", "b u", "c"),
                     node("Conv", "c w", "y")), "Conv Mul Add Conv"),
}  # fmt: skip


@pytest.mark.parametrize("name", FUSED)
def test_fuse_affine_steps_leaves_one_of_each_when_the_compiler_would_not_merge_them(name: str) -> None:
    original, wanted = FUSED[name]
    made = equal_after(PASS, original)
    assert operators(made) == wanted.split()
    assert not {"s", "t", "u", "v", "k"} & set(made.graph.initializers)
    assert all(str(one.name).startswith("fuse_affine_steps/") for one in made.graph if one.op_type in ("Mul", "Add"))
    left_alone(PASS, made)


def test_fuse_affine_steps_writes_scale_and_shift_per_channel_as_second_inputs() -> None:
    made = equal_after(PASS, FUSED["add, mul"][0])
    scaled, shifted = made.graph[1], made.graph[2]
    np.testing.assert_array_equal(weight(scaled.inputs[1]), VECTOR["s"])
    np.testing.assert_allclose(weight(shifted.inputs[1]), VECTOR["s"] * VECTOR["t"], rtol=1e-7)


def test_fuse_affine_steps_keeps_one_number_when_every_channel_has_the_same() -> None:
    made = equal_after(PASS, affine_graph(node("Add", "h k", "a"), node("Mul", "a k1", "y")))
    assert weight(made.graph[1].inputs[1]).shape == weight(made.graph[2].inputs[1]).shape == ()


def test_fuse_affine_steps_fuses_both_rows_when_one_reads_the_other() -> None:
    original = affine_graph(*ADD_MUL, node("Add", "b u", "c"), node("Mul", "c v", "y"), outputs=("b", "y"))
    made = equal_after(PASS, original, hits=2)
    assert operators(made) == ["Conv", "Mul", "Add", "Mul", "Add"]


def test_fuse_affine_steps_keeps_shared_constants_when_others_read_them() -> None:
    made = equal_after(PASS, affine_graph(*ADD_MUL, RELU, node("Add", "h t", "z"), outputs=("y", "z")))
    assert "t" in made.graph.initializers
    assert "s" not in made.graph.initializers


def test_fuse_affine_steps_takes_constant_nodes_along() -> None:
    value = constant("", VECTOR["t"])
    made = equal_after(PASS, affine_graph(node("Constant", "", "given", value=value), node("Add", "h given", "a"),
                                          node("Mul", "a s", "y")))  # fmt: skip
    assert operators(made) == ["Conv", "Mul", "Add"]


LEAKY = {"alpha": -0.5}
LEFT = {
    "merged already": affine_graph(node("Mul", "h s", "a"), node("Add", "a t", "b"), RELU),
    "one number and many": affine_graph(node("Mul", "h k", "a"), node("Sub", "a t", "b"), RELU),
    "two of one kind": affine_graph(node("Mul", "s h", "a"), node("Div", "a t", "b"), RELU),
    "one step": affine_graph(node("Add", "t h", "b"), RELU),
    "minus": affine_graph(node("Sub", "k h", "a"), node("Tanh", "a", "y")),
    "nothing changes": affine_graph(node("Add", "h zero", "a"), node("Mul", "a one", "b"), RELU),
    "a convolution takes the scale": affine_graph(*ADD_MUL, node("Conv", "b w", "y")),
    "the convolution before takes them": affine_graph(*ADD_MUL, RELU, read_once=True),
    "read between": affine_graph(*ADD_MUL, RELU, outputs=("y", "a")),
    "read twice between": affine_graph(*ADD_MUL, node("Add", "a b", "y")),
    "varies along time": affine_graph(*ADD_MUL, RELU, t=np.arange(20.0)),
    "varies along both": affine_graph(*ADD_MUL, RELU, t=np.arange(120.0).reshape(6, 20)),
    "divided": affine_graph(node("Add", "h t", "a"), node("Div", "k a", "b"), RELU),
    "computed": affine_graph(node("ReduceMean", "h", "m", axes=[2]), node("Add", "h m", "a"), node("Mul", "a m", "y")),
    "scale below fp16": affine_graph(*ADD_MUL, RELU, s=1e-5),
    "scale above fp16": affine_graph(*ADD_MUL, RELU, s=1e5),
    "shift above fp16": affine_graph(*ADD_MUL, RELU, s=1e3, t=100.0),
    "division by zero": affine_graph(node("Add", "h t", "a"), node("Div", "a zero", "b"), RELU),
    "half floats": affine_graph(*ADD_MUL, RELU, dtype=np.float16),
    "doubles": affine_graph(*ADD_MUL, RELU, dtype=np.float64),
    "five axes": affine_graph(*ADD_MUL, RELU, sizes=(1, 2, 2, 2, 2), s=2.0, t=3.0),
    "open length": affine_graph(*ADD_MUL, RELU, sizes=(1, C, "time")),
    "taken for zero": affine_graph(
        node("Relu", "h", "r"), node("Sub", "r t", "a"), node("Mul", "a s", "b"), node("LeakyRelu", "b", "y", **LEAKY),
        s=np.where(np.arange(C) == 2, -1.0, 1.0).reshape(1, C, 1), t=np.where(np.arange(C) == 2, -1, 1).reshape(1, C, 1)
    ),
    "taken for zero by Abs": affine_graph(
        node("Sub", "h t", "a"), node("Mul", "k a", "b"), node("Abs", "b", "y"), k=-0.5, t=-1.0
    ),
    "another domain": affine_graph(
        node("Add", "h t", "a"), helper.make_node("Mul", ["a", "s"], ["y"], "other", domain="other")
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT)
def test_fuse_affine_steps_leaves_the_graph_alone_when_nothing_is_gained_or_known(name: str) -> None:
    left_alone(PASS, LEFT[name])


@pytest.mark.parametrize("captured", ["a", "b"])
def test_fuse_affine_steps_is_equal_when_a_nested_graph_captures_a_value(captured: str) -> None:
    reader, weights = nested(captured)
    original = model(
        [helper.make_node("Conv", ["x", "w"], ["h"]), *ADD_MUL, RELU, reader],
        [tensor("x", SIZES)],
        [tensor(name, SIZES) for name in ("y", "y2", "h")],
        [constant("w", np.eye(C)[..., None]), constant("s", VECTOR["s"]), constant("t", VECTOR["t"]), *weights],
    )
    if captured == "a":
        left_alone(PASS, original)
    else:
        equal_after(PASS, original)


def between_matmuls(*nodes: Any) -> ir.Model:
    shape = [1, 8, 8]
    weights = [constant("w", np.eye(8) + 0.1), constant("k", 2.0), constant("k1", [0.5])]
    first, last = node("MatMul", "x w", "m"), node("MatMul", "b w", "y")
    return model([first, node("Tanh", "m", "h"), *nodes, last], [tensor("x", shape)], [tensor("y", shape)], weights)


def test_fuse_affine_steps_leaves_the_graph_alone_when_it_lies_between_matmuls() -> None:
    left_alone(PASS, between_matmuls(node("Add", "h k", "a"), node("Mul", "a k1", "b")))


STEP = st.tuples(
    st.sampled_from(["Mul", "Add", "Sub", "Div"]),
    st.booleans(),
    st.sampled_from([[], [1], [1, 1], [C, 1], [1, C, 1], [1, C, 20], [20]]),
)


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(STEP, min_size=1, max_size=5), seed=st.integers(0, 99), opset=st.sampled_from([7, 13, 17, 19]))
def test_fuse_affine_steps_is_equal_for_any_row(steps: list[Any], seed: int, opset: int) -> None:
    rng = np.random.default_rng(seed)
    constants: dict[str, Any] = {}
    nodes, last = [], "h"
    for place, (op, first, shape) in enumerate(steps):
        column = rng.uniform(0.5, 2.0, [size if size != 20 else 1 for size in shape])
        constants[f"c{place}"] = np.broadcast_to(column, shape) if len(shape) == 3 else rng.uniform(0.5, 2.0, shape)
        pair = [last, f"c{place}"]
        nodes.append(node(op, " ".join(pair[::-1] if first and op != "Div" else pair), f"o{place}"))
        last = f"o{place}"
    original = affine_graph(*nodes, outputs=(last,), opset=opset, **constants)
    done = PASS.rewrite(original)
    check(done.model)
    feed = {"x": rng.standard_normal(SIZES).astype(np.float32)}
    for name, wanted in run(original, feed).items():
        assert snr_db(wanted, run(done.model, feed)[name]) >= 120
    assert PASS.rewrite(done.model).model is done.model
