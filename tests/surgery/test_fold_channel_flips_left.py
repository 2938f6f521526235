"""Channel flips that stay where they are: the graph is left alone where a permutation cannot go on every way."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from onnx import TensorProto, helper

from surgery.fold_channel_flips import fold_channel_flips
from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import run
from tests.surgery.channel_graphs import STEPS, ChannelWriter
from tests.surgery.convolutions import left_alone

PASS = fold_channel_flips()


def _straight_to_output(w: ChannelWriter) -> str:
    return w.flip("x")


def _through_relu_to_output(w: ChannelWriter) -> str:
    return w.node("Relu", w.flip("x"))


def _to_a_transpose(w: ChannelWriter) -> str:
    turned = w.node("Transpose", w.flip("x"), perm=[0, 2, 1], channels=STEPS)
    return w.conv(w.node("Transpose", turned, perm=[0, 2, 1], channels=4))


def _to_a_reduction(w: ChannelWriter) -> str:
    y = w.flip("x")
    return w.conv(w.node("Add", y, w.node("ReduceMax", y, channels=1, axes=[1], keepdims=1)))


def _added_to_the_input(w: ChannelWriter) -> str:
    return w.conv(w.node("Add", "x", w.flip("x")))


def _through_groups(w: ChannelWriter) -> str:
    return w.conv(w.conv(w.flip("x"), 4, group=2))


def _out_of_groups(w: ChannelWriter) -> str:
    return w.flip(w.conv("x", 4, group=2))


def _depthwise_multiplier(w: ChannelWriter) -> str:
    return w.conv(w.conv(w.flip("x"), 8, group=4))


def _unequal_parts(w: ChannelWriter) -> str:
    first, second = w.halves(w.flip("x"), 1, 3)
    return w.node("Add", w.conv(first), w.conv(second))


def _torn_parts(w: ChannelWriter) -> str:
    first, second = w.halves(w.pick("x", [0, 2, 1, 3]))
    return w.node("Add", w.conv(first), w.conv(second))


def _torn_block(w: ChannelWriter) -> str:
    return w.conv(w.block(w.pick("x", [0, 2, 1, 3]), 0, 2))


def _half_flipped(w: ChannelWriter) -> str:
    return w.conv(w.node("Slice", "x", *(w.weight([n], np.int64) for n in (1, -100, 1, -1)), channels=2))


def _some_channels_twice(w: ChannelWriter) -> str:
    return w.conv(w.pick("x", [0, 0, 1, 2]))


def _in_time(w: ChannelWriter) -> str:
    return w.conv(w.node("Slice", "x", *(w.weight([n], np.int64) for n in (-1, -100, 2, -1))))


def _computed_weight(w: ChannelWriter) -> str:
    weight = w.node("Mul", w.weight(w.whole(4, 4, 1)), w.node("ReduceMax", "mask", keepdims=1), channels=4)
    return w.node("Conv", w.flip("x"), weight)


def _part_of_a_constant(w: ChannelWriter) -> str:
    table = w.weight(np.arange(8).reshape(1, 8, 1))
    return w.node("Add", w.flip("x"), w.block(table, 0, 4))


def _computed_bias(w: ChannelWriter) -> str:
    bias = w.node("Mul", w.weight([1, 2, 3, 4]), w.node("ReduceMax", "mask", keepdims=0), channels=4)
    return w.flip(w.node("Conv", w.node("Relu", "x"), w.weight(w.whole(4, 4, 1)), bias))


def _computed_indices(w: ChannelWriter) -> str:
    last = w.node("Cast", w.node("ReduceMax", "mask", keepdims=0), to=TensorProto.INT64)
    order = w.node("Mul", w.weight([3, 2, 1, 0], np.int64), last, channels=4)
    return w.conv(w.node("Gather", "x", order, axis=1))


def _operand_of_another_rank(w: ChannelWriter) -> str:
    column = w.node("ReduceSum", "x", w.weight([0, 2], np.int64), keepdims=0, channels=4)
    column = w.node("Unsqueeze", column, w.weight([1], np.int64), channels=1)
    return w.conv(w.node("Add", w.flip("x"), column))


LEFT = [
    _straight_to_output, _through_relu_to_output, _to_a_transpose, _to_a_reduction, _added_to_the_input,
    _through_groups, _out_of_groups, _depthwise_multiplier, _unequal_parts, _torn_parts, _torn_block, _half_flipped,
    _some_channels_twice, _in_time, _computed_weight, _computed_bias, _part_of_a_constant,
    _computed_indices, _operand_of_another_rank,
]  # fmt: skip


@pytest.mark.parametrize("write", LEFT, ids=lambda one: one.__name__)
def test_fold_channel_flips_leaves_the_graph_alone_when_a_permutation_cannot_go(
    write: Callable[[ChannelWriter], str],
) -> None:
    w = ChannelWriter(opset=13)
    made = w.finished(write(w))
    run(made, {"x": np.ones((1, 4, STEPS), np.float32), "mask": np.ones((1, 1, STEPS), np.float32)})  # it is valid
    left_alone(PASS, made)


def test_fold_channel_flips_leaves_the_graph_alone_when_one_value_would_be_two_outputs() -> None:
    w = ChannelWriter()
    y = w.conv("x")
    left_alone(PASS, w.finished(w.flip(y), w.flip(y)))
    w = ChannelWriter()
    y = w.conv("x")
    left_alone(PASS, w.finished(y, w.pick(y, [0, 1, 2, 3])))
    w = ChannelWriter()
    left_alone(PASS, w.finished(w.pick("x", [0, 1, 2, 3])))


def test_fold_channel_flips_leaves_the_graph_alone_when_operands_are_aligned_at_their_first_axes() -> None:
    nodes = [
        helper.make_node("Gather", ["x", "i"], ["y"], "g", axis=1),
        helper.make_node("Conv", ["y", "w"], ["z"], "c"),
    ]
    weights = [constant("i", [1, 0], np.int64), constant("w", np.ones((2, 2, 1)))]
    parts = (nodes, [tensor("x", [1, 2, 3])], [tensor("z", [1, 2, 3])], weights)
    left_alone(PASS, model(*parts, opset=6))
    assert PASS.rewrite(model(*parts, opset=7)).hits == 1


@pytest.mark.parametrize("domain", ["somewhere.else"])
def test_fold_channel_flips_leaves_the_graph_alone_when_an_operator_is_of_another_domain(domain: str) -> None:
    nodes = [
        helper.make_node("Gather", ["x", "i"], ["y"], "g", axis=1),
        helper.make_node("Relu", ["y"], ["r"], "other", domain=domain),
        helper.make_node("Conv", ["r", "w"], ["z"], "c"),
    ]
    weights = [constant("i", [1, 0], np.int64), constant("w", np.ones((2, 2, 1)))]
    original = model(nodes, [tensor("x", [1, 2, 3])], [tensor("z", [1, 2, 3])], weights)
    original.graph.opset_imports[domain] = 1
    left_alone(PASS, original)


def test_fold_channel_flips_leaves_a_permutation_alone_when_a_nested_graph_reads_it() -> None:
    def branch(name: str) -> object:
        node = helper.make_node("Neg" if name == "no" else "Abs", [y], [f"{name}_y"])
        return helper.make_graph([node], name, [], [tensor(f"{name}_y", [1, 4, STEPS])])

    w = ChannelWriter()
    y = w.flip("x")
    test = w.node("Cast", w.node("ReduceSum", "mask", channels=1, keepdims=0), to=TensorProto.BOOL)
    w.nodes.append(helper.make_node("If", [test], ["if"], then_branch=branch("yes"), else_branch=branch("no")))
    w.sizes["if"] = 4
    left_alone(PASS, w.finished(w.node("Add", w.conv(y), w.conv("if"))))


def test_fold_channel_flips_leaves_the_graph_alone_when_a_weight_is_an_input_too() -> None:
    w = ChannelWriter()
    weight = w.weight(w.whole(4, 4, 3))
    original = w.finished(w.conv(w.flip("x"), weight=weight))
    original.graph.inputs.append(original.graph.initializers[weight])
    left_alone(PASS, original)
