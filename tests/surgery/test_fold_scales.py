from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from surgery.fold_scales import fold_scales
from tests.gates.small_graphs import model, tensor
from tests.surgery.layer_graphs import conv, layers, near_one, node, noise, up
from tests.surgery.one_operator import equal_after, left_alone, operators, weight

PASS = fold_scales()

TANH = node("Tanh", "x", "h")

FOLDED = {
    "behind a conv": layers(conv("x w b", "a"), node("Mul", "a each", "y")),
    "constant first": layers(conv("x w b", "a"), node("Mul", "each a", "y")),
    "no bias": layers(conv("x w", "a"), node("Mul", "a each2", "y")),
    "divided": layers(conv("x w b", "a"), node("Div", "a each", "y")),
    "negative": layers(conv("x w b", "a"), node("Mul", "a each_signed", "y")),
    "as large as the tensor": layers(conv("x w b", "a"), node("Mul", "a wide", "y")),
    "of groups": layers(conv("x w2 b", "a", group=2), node("Mul", "a each", "y")),
    "behind a transposed": layers(up("x wt b", "a"), node("Mul", "a each", "y")),
    "behind one of groups": layers(up("x wt2 b", "a", group=2), node("Mul", "a each", "y")),
    "before a conv": layers(node("Mul", "x each", "a"), conv("a w b", "y")),
    "before one of groups": layers(node("Mul", "x each", "a"), conv("a w2 b", "y", group=2)),
    "before a transposed": layers(node("Div", "x each", "a"), up("a wt b", "y")),
    "before a transposed of groups": layers(node("Mul", "x each", "a"), up("a wt2 b", "y", group=2)),
    "before several": layers(
        node("Mul", "x each", "a"), conv("a w b", "c"), conv("a v", "d"), node("Add", "c d", "y")
    ),
    "what is scaled has other readers": layers(
        TANH, node("Mul", "h each", "a"), conv("a w", "c"), node("Add", "c h", "y")
    ),
    "an input and an output": layers(
        TANH, node("Mul", "h each", "a"), conv("a w", "y"), outputs="h y"
    ),
    "through leaky relu": layers(
        TANH, node("Div", "h three", "a"), node("LeakyRelu", "a", "c", alpha=0.1), up("c wt b", "y")
    ),
    "back through relu": layers(conv("x w b", "a"), node("Relu", "a", "c"), node("Mul", "c each", "y")),
    "through a slope for each channel": layers(
        node("Mul", "x each", "a"), node("PRelu", "a slope", "c"), conv("c w", "y")
    ),
    "back through a slope": layers(conv("x w", "a"), node("PRelu", "a slope", "c"), node("Mul", "c each", "y")),
    "back through a sum": layers(
        conv("x w b", "a"), conv("x v", "c"), node("Add", "a c", "d"), node("Mul", "d each", "y")
    ),
    "back through a difference": layers(
        conv("x w b", "a"), conv("x v", "c"), node("Sub", "a c", "d"), node("Mul", "d half", "y")
    ),
    "back through a constant of a sum": layers(
        conv("x w b", "a"), node("Sub", "t a", "c"), node("Relu", "c", "d"), node("Mul", "d each2", "y")
    ),
    "through a layout": layers(
        node("Mul", "x half", "a"), node("Transpose", "a", "c", perm=[0, 2, 1]), node("MatMul", "c m", "y")
    ),
    "back through a layout": layers(
        conv("x w", "a"), node("Transpose", "a", "c", perm=[0, 2, 1]), node("Mul", "c minus", "y")
    ),
    "behind a product": layers(node("MatMul", "x m", "a"), node("Mul", "a last", "y"), shape=(2, 10, 6)),
    "before a product": layers(node("Mul", "x last", "a"), node("MatMul", "a m", "y"), shape=(2, 10, 6)),
    "gemm": layers(node("Gemm", "x m b", "a"), node("Mul", "a last", "y"), shape=(10, 6)),
    "gemm with factors": layers(
        node("Gemm", "x m row", "a", alpha=0.5, beta=3.0, transB=1), node("Mul", "a last", "y"), shape=(10, 6)
    ),
    "before a gemm": layers(node("Mul", "x last", "a"), node("Gemm", "a m half", "y", beta=2.0), shape=(10, 6)),
    "before a turned gemm": layers(
        node("Mul", "x each2", "a"), node("Gemm", "a m b", "y", transA=1, transB=1), shape=(6, 10)
    ),
    "opset 7": layers(conv("x w b", "a"), node("Mul", "a each", "y"), opset=7),
    "opset 19": layers(conv("x w b", "a"), node("Mul", "a each", "y"), opset=19),
}  # fmt: skip


@pytest.mark.parametrize("name", FOLDED)
def test_scale_goes_into_weights_when_it_can(name: str) -> None:
    assert not {"Mul", "Div"}.intersection(operators(equal_after(PASS, FOLDED[name])))


@settings(max_examples=30, deadline=None)
@given(
    op=st.sampled_from(["Conv", "ConvTranspose"]),
    group=st.sampled_from([1, 2, 3]),
    into=st.integers(1, 3),
    out=st.integers(1, 3),
    stride=st.integers(1, 2),
    spatial=st.integers(1, 2),
    one=st.booleans(),
)
def test_scales_on_both_sides_fold_when_a_layer_has_groups_of_any_size(
    op: str, group: int, into: int, out: int, stride: int, spatial: int, one: bool
) -> None:
    kernel = [3, 2][:spatial]
    shape = (group * out, into, *kernel) if op == "Conv" else (group * into, out, *kernel)
    ones = [1] * spatial
    made = layers(
        node("Mul", "x before", "a"),
        node(op, "a weight bias", "c", group=group, strides=[stride] * spatial, kernel_shape=kernel),
        node("Mul", "c behind", "y"),
        shape=(1, group * into, 7, 5)[: 2 + spatial],
        weight=noise(*shape),
        bias=noise(group * out),
        before=near_one(1, 1 if one else group * into, *ones),
        behind=near_one(group * out, *ones),
    )
    assert operators(equal_after(PASS, made, hits=2)) == [op]


def test_mean_of_branches_takes_no_division_when_leaky_relu_and_layers_follow() -> None:
    made = equal_after(
        PASS,
        layers(
            TANH, node("Add", "h x", "s"), node("Div", "s three", "a"),
            node("LeakyRelu", "a", "c", alpha=0.1), up("c wt b", "d"), node("Relu", "a", "e"), up("e wt b", "f"),
            node("Add", "d f", "y"),
        ),
    )  # fmt: skip
    assert operators(made).count("Div") == 0


def test_chain_folds_when_the_last_scale_must_go_first() -> None:
    made = equal_after(PASS, layers(node("Mul", "x half", "a"), node("Div", "a each", "c"), conv("c w", "y")), hits=2)
    assert operators(made) == ["Conv"]


def test_shared_weight_is_copied_when_one_of_its_readers_is_scaled() -> None:
    original = layers(conv("x w b", "a"), node("Mul", "a each", "c"), conv("c w b", "y"))
    made = equal_after(PASS, original)
    first, second = (node for node in made.graph if node.op_type == "Conv")
    assert not np.array_equal(weight(first.inputs[1]), weight(second.inputs[1]))
    assert "each" not in made.graph.initializers


def test_weights_are_scaled_by_the_constant_when_it_is_one_for_each_channel() -> None:
    original = FOLDED["behind a conv"]
    factors = weight(original.graph.initializers["each"]).reshape(6)
    before = {name: weight(original.graph.initializers[name]) for name in "wb"}
    (layer,) = equal_after(PASS, original).graph
    np.testing.assert_allclose(weight(layer.inputs[1]), before["w"] * factors.reshape(6, 1, 1), rtol=1e-6)
    np.testing.assert_allclose(weight(layer.inputs[2]), before["b"] * factors, rtol=1e-6)


def captured() -> ir.Model:
    """A branch reads what the multiplication makes."""
    branch = helper.make_graph([node("Relu", "a", "r")], "then", [], [tensor("r", [1, 6, 10])])
    other = helper.make_graph([node("Neg", "x", "n")], "else", [], [tensor("n", [1, 6, 10])])
    choose = helper.make_node("If", ["cond"], ["d"], "choose", then_branch=branch, else_branch=other)
    nodes = (node("Mul", "x half", "a"), conv("a w", "c"), choose, node("Add", "c d", "y"))
    return layers(*nodes, fed=[tensor("cond", [], TensorProto.BOOL)])


LEFT = {
    "nothing linear": layers(TANH, node("Mul", "h half", "a"), node("Tanh", "a", "y")),
    "divided by": layers(conv("x w", "a"), node("Div", "half a", "y")),
    "along time": layers(conv("x w", "a"), node("Mul", "a steps", "y")),
    "along both": layers(conv("x w", "a"), node("Mul", "a all", "y")),
    "of another rank": layers(conv("x w", "a"), node("Mul", "a rank4", "c"), node("Reshape", "c sizes", "y"),
                              sizes=np.array([1, 6, 60])),
    "makes more channels": layers(node("Mul", "x each", "a"), conv("a w", "y"), shape=(1, 1, 10)),
    "makes more behind": layers(conv("x one", "a"), node("Mul", "a each", "y"), one=noise(1, 6, 3)),
    "zero": layers(conv("x w", "a"), node("Mul", "a zero", "y")),
    "by zero": layers(conv("x w", "a"), node("Div", "a zero", "y")),
    "past fp16": layers(conv("x w", "a"), node("Mul", "a huge", "y")),
    "below fp16": layers(conv("x w", "a"), node("Mul", "a tiny", "y")),
    "one channel below fp16": layers(conv("x w", "a"), node("Mul", "a k", "y"),
                                     k=np.array([1, 1, 1e-6, 1, 1, 1]).reshape(1, 6, 1)),
    "negative through relu": layers(node("Mul", "x minus", "a"), node("Relu", "a", "c"), conv("c w", "y")),
    "negative back through a slope": layers(
        conv("x w", "a"), node("LeakyRelu", "a", "c", alpha=0.1), node("Mul", "c each_signed", "y")
    ),
    "through tanh": layers(node("Mul", "x half", "a"), node("Tanh", "a", "c"), conv("c w", "y")),
    "channels through a layout": layers(
        node("Mul", "x each", "a"), node("Transpose", "a", "c", perm=[0, 2, 1]), node("MatMul", "c m", "y")
    ),
    "the layer has another reader": layers(conv("x w", "a"), node("Mul", "a half", "c"), node("Add", "a c", "y")),
    "the layer is an output": layers(conv("x w", "a"), node("Mul", "a half", "y"), outputs="a y"),
    "the scaled value is an output": layers(node("Mul", "x half", "a"), conv("a w", "y"), outputs="a y"),
    "a residual reads it": layers(node("Mul", "x half", "a"), conv("a w", "c"), node("Add", "a c", "y")),
    "one side of a sum": layers(conv("x w", "a"), node("Add", "a x", "c"), node("Mul", "c half", "y")),
    "a sum with itself": layers(conv("x w", "a"), node("Add", "a a", "c"), node("Mul", "c half", "y")),
    "a constant that would grow": layers(conv("x w", "a"), node("Add", "a steps", "c"), node("Mul", "c each", "y")),
    "it is the slope": layers(node("Mul", "x half", "a"), node("PRelu", "x a", "c"), conv("c w", "y")),
    "it is the weight": layers(node("Mul", "x half", "a"), conv("x a", "y"), shape=(3, 3, 3)),
    "computed weights": layers(node("Tanh", "w", "k"), node("Mul", "x half", "a"), conv("a k", "y")),
    "computed bias": layers(
        conv("x w z", "a"), node("Mul", "a half", "y"), fed=[tensor("z", [6])],
    ),
    "two of data": layers(conv("x w", "a"), node("Mul", "a x", "y")),
    "a weight that can be fed": layers(conv("x k", "a"), node("Mul", "a half", "y"), fed=[tensor("k", [6, 6, 3])]),
    "captured": captured(),
    "unknown shape": layers(node("Mul", "x each", "a"), conv("a w", "y"), shape=(1, "c", 10)),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT)
def test_scale_stays_when(name: str) -> None:
    left_alone(PASS, LEFT[name])


def test_scale_stays_when_it_is_no_operator_of_onnx() -> None:
    other = helper.make_node("Mul", ["a", "half"], ["y"], domain="com.example")
    left_alone(PASS, layers(conv("x w", "a"), other))


def test_scale_stays_when_the_type_is_not_float32() -> None:
    kind = TensorProto.DOUBLE
    nodes = [conv("x w", "a"), node("Mul", "a k", "y")]
    constants = [helper.make_tensor("w", kind, [2, 2, 3], np.ones(12)), helper.make_tensor("k", kind, [], [0.5])]
    left_alone(PASS, model(nodes, [tensor("x", [1, 2, 8], kind)], [tensor("y", [1, 2, 8], kind)], constants))


def test_scale_stays_when_its_layer_is_thousands_of_nodes_away() -> None:
    count = 3000
    relus = [node("Relu", f"r{number}", f"r{number + 1}") for number in range(count)]
    left_alone(PASS, layers(node("Mul", "x half", "r0"), *relus, conv(f"r{count} w", "y")))
    left_alone(PASS, layers(conv("x w", "r0"), *relus, node("Mul", f"r{count} half", "y")))
