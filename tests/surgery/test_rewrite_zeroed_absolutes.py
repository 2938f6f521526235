"""Absolute values of channels that cannot be positive, against onnxruntime on the graph before."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import NodeProto, helper

from surgery.rewrite_zeroed_absolutes import rewrite_zeroed_absolutes
from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import run
from tests.surgery.one_operator import equal_after, feed_of, left_alone, operators, weight

PASS = rewrite_zeroed_absolutes()
C, STEPS, LARGE = 4, 6, 64
CONSTANTS: dict[str, Any] = {
    "w": np.array([-1.0, 0.5, 0.0, -2.0])[:, None, None], "b": np.array([-1.0, -1.0, -0.5, 0.5]),
    "zero": np.zeros((C, 1, 1)), "wm": np.array([-1.0, 0.5, 0.0, -2.0])[:, None],
    "bm": np.array([[-1], [-1], [0], [0.5]]),
    "one": np.ones(C), "none": np.zeros(C), "lo": -1.0, "hi": 1.0, "close": np.full(C, 1e-8),
    "up": np.ones((C, 1, 1)), "m": np.diag([-1.0, 0.5, -1.0, 2.0]), "same": np.eye(C)[..., None],
}  # fmt: skip


def node(op: str, inputs: str, output: str, **attributes: Any) -> NodeProto:
    return helper.make_node(op, inputs.split(), [output], f"to_{output}", **attributes)


def graph(*nodes: NodeProto, steps: int = STEPS, **options: int) -> ir.Model:
    read = {name for made in nodes for name in made.input}
    weights = [constant(name, values) for name, values in CONSTANTS.items() if name in read]
    outputs = [tensor("y", ["n", "c", "t"])]
    return model(list(nodes), [tensor("x", [1, C, steps])], outputs, weights, **options)


RELU = node("Relu", "x", "r")
LAYER = node("Conv", "r w b", "v", group=C)
ABS = node("Abs", "v", "y")


def factors(made: ir.Model) -> list[float]:
    *_, last = [node for node in made.graph if node.op_type == "Mul"]
    return [float(number) for number in weight(last.inputs[1]).ravel()]


@pytest.mark.parametrize("before", [RELU, node("Abs", "x", "r"), node("LeakyRelu", "x", "r", alpha=-0.3)])
@pytest.mark.parametrize("opset", [7, 13, 19])
def test_channels_that_cannot_be_positive_are_negated_before(before: NodeProto, opset: int) -> None:
    original = graph(before, LAYER, ABS, opset=opset)
    made = equal_after(PASS, original)
    assert operators(made)[-2:] == ["Mul", "Abs"]
    assert factors(made) == [-1.0, 1.0, -1.0, 1.0]
    feed = feed_of(original)
    np.testing.assert_array_equal(run(original, feed)["y"], run(made, feed)["y"])


@pytest.mark.parametrize("alpha", [-1.0, -0.5, -3.0])
def test_slope_goes_before_a_leaky_relu(alpha: float) -> None:
    made = equal_after(PASS, graph(RELU, LAYER, node("LeakyRelu", "v", "y", alpha=alpha)))
    assert operators(made) == ["Relu", "Conv", "Mul", "LeakyRelu"]
    assert factors(made) == [alpha, 1.0, alpha, 1.0]


def test_positive_weights_count_where_the_data_are_bounded() -> None:
    made = equal_after(PASS, graph(node("Clip", "x lo hi", "r"), LAYER, ABS))
    assert factors(made) == [-1.0, -1.0, -1.0, 1.0]


def test_constant_channel_counts_whatever_the_data_are() -> None:
    assert factors(equal_after(PASS, graph(node("Conv", "x w b", "v", group=C), ABS))) == [1.0, 1.0, -1.0, 1.0]


@pytest.mark.parametrize(
    ("nodes", "wanted"),
    [
        ([RELU, node("Mul", "r wm", "q"), node("Add", "q bm", "v"), ABS], [-1, 1, 1, 1]),
        ([RELU, node("BatchNormalization", "r b none none one", "v"), ABS], [-1, -1, -1, 1]),
        ([RELU, node("Conv", "r up", "q", group=C), node("Mul", "q wm", "v"), ABS], [-1, 1, 1, -1]),
        ([RELU, node("Transpose", "r", "q", perm=[0, 2, 1]), node("MatMul", "q m", "v"), ABS], [-1, 1, -1, 1]),
        ([RELU, node("Neg", "r", "q"), node("Conv", "q up", "v", group=C), ABS], [-1]),
    ],
    ids=["Mul and Add", "BatchNormalization", "Conv and Mul", "MatMul", "Neg"],
)
def test_layer_may_be_another(nodes: list[NodeProto], wanted: list[float]) -> None:
    found = factors(equal_after(PASS, graph(*nodes)))
    assert found == wanted or found == wanted * C


def test_value_that_others_read_stays_as_it_is() -> None:
    original = graph(RELU, LAYER, node("Abs", "v", "a"), node("Add", "a v", "y"))
    assert operators(equal_after(PASS, original)) == ["Relu", "Conv", "Mul", "Abs", "Add"]


def test_channel_that_is_positive_by_a_rounding_is_negated() -> None:
    original = graph(RELU, node("Neg", "r", "q"), node("Conv", "q up close", "v", group=C), ABS)
    assert PASS.rewrite(original).hits == 1
    left_alone(PASS, graph(*[RELU, node("Neg", "r", "q"), node("Conv", "q up close", "v", group=C)],
                           node("LeakyRelu", "v", "y", alpha=-0.5)))  # fmt: skip


@pytest.mark.parametrize(
    "original",
    [
        graph(node("Conv", "x up b", "v", group=C), ABS),
        graph(RELU, node("Conv", "r up", "v", group=C), ABS),
        graph(RELU, LAYER, node("Relu", "v", "y")),
        graph(RELU, LAYER, node("LeakyRelu", "v", "y", alpha=0.5)),
        graph(RELU, node("Conv", "r zero", "v", group=C), ABS),
        graph(node("Tanh", "x", "r"), node("Conv", "r up b", "v", group=C), ABS),
        graph(RELU, LAYER, helper.make_node("Abs", ["v"], ["y"], "other", domain="com.example")),
    ],
    ids=["open", "positive", "Relu", "positive slope", "zero", "not looked through", "another domain"],
)
def test_graph_is_left_alone_when_no_channel_is_negative_for_every_feed(original: ir.Model) -> None:
    left_alone(PASS, original)


UNREAD = [
    [node("MatMul", "r m", "v"), node("Relu", "v", "y")],
    [node("MatMul", "r m", "v"), node("LeakyRelu", "v", "y", alpha=0.5)],
    [node("Abs", "r", "v"), node("MatMul", "v m", "y")],
    [node("MatMul", "r m", "v"), node("Tanh", "v", "t"), node("Abs", "t", "y")],
    [node("MatMul", "r m", "v"), node("Mul", "v r", "t"), node("Abs", "t", "y")],
    [node("MatMul", "r m", "v"), node("Add", "x v", "t"), node("Abs", "t", "y")],
]


@pytest.mark.parametrize("nodes", UNREAD, ids=lambda nodes: " ".join(made.op_type for made in nodes))
def test_weights_are_not_read_where_no_absolute_value_depends_on_them(nodes: list[NodeProto]) -> None:
    assert hits_and_reads(*nodes) == (0, 0)


def test_weights_are_read_once_where_an_absolute_value_depends_on_them() -> None:
    assert hits_and_reads(node("MatMul", "r m", "v"), ABS) == (0, 1)


def hits_and_reads(*nodes: NodeProto) -> tuple[int, int]:
    """How many hits there are behind a Relu, and how often the weight `m`, too large for inference, is read."""
    original = graph(RELU, *nodes, steps=LARGE)
    reads: list[str] = []

    def made() -> ir.TensorProtocol:
        reads.append("m")
        return ir.tensor(np.ones((LARGE, LARGE), np.float32))

    weight = original.graph.initializers["m"]
    weight.const_value = ir.LazyTensor(made, ir.DataType.FLOAT, ir.Shape([LARGE, LARGE]), name="m")
    weight.shape = weight.const_value.shape
    return PASS.rewrite(original).hits, len(reads)
