"""Neighbours of the cases: a graph for each kind of thing that exporters write and the toolkit breaks on."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.cases.graphs import SHAPE, conv, model, weight
from tests.gates.small_graphs import constant, tensor


def branch(name: str, *nodes: onnx.NodeProto, made: str) -> onnx.GraphProto:
    """A branch of an If that puts out `made`."""
    return helper.make_graph(list(nodes), name, [], [tensor(made, SHAPE)])


def nested_branches() -> onnx.ModelProto:
    """An If inside an If, both on conditions that are computed of sizes; the inner one reads the outer graph."""
    inner = helper.make_node(
        "If",
        ["wide"],
        ["inner"],
        "inner_if",
        then_branch=branch("a", helper.make_node("Mul", ["c", "k"], ["a_out"], "scaled"), made="a_out"),
        else_branch=branch("b", helper.make_node("Neg", ["c"], ["b_out"], "negated"), made="b_out"),
    )
    nodes = [
        conv("x", "conv", "c"),
        helper.make_node("Shape", ["c"], ["sizes"], "shape"),
        helper.make_node("Gather", ["sizes", "last"], ["length"], "length"),
        helper.make_node("Greater", ["length", "bound"], ["wide"], "wider"),
        helper.make_node("Not", ["wide"], ["narrow"], "narrower"),
        helper.make_node(
            "If",
            ["narrow"],
            ["y"],
            "outer_if",
            then_branch=branch("n", helper.make_node("Exp", ["c"], ["n_out"], "exp"), made="n_out"),
            else_branch=branch("w", inner, made="inner"),
        ),
    ]
    weights = [weight("w", 8, 8, 3), constant("k", 0.5), constant("last", 2, np.int64), constant("bound", 16, np.int64)]
    return model(nodes, [tensor("x", SHAPE)], [tensor("y", SHAPE)], weights)


def loop() -> onnx.ModelProto:
    """A Loop whose trip count is an input."""
    state = tensor("s", SHAPE)
    body = helper.make_graph(
        [helper.make_node("Tanh", ["s"], ["s_out"], "step"), helper.make_node("Identity", ["go"], ["go_out"], "on")],
        "body",
        [tensor("i", [], TensorProto.INT64), tensor("go", [], TensorProto.BOOL), state],
        [tensor("go_out", [], TensorProto.BOOL), tensor("s_out", SHAPE)],
    )
    nodes = [helper.make_node("Loop", ["steps", "", "x"], ["y"], "loop0", body=body)]
    return model(nodes, [tensor("x", SHAPE), tensor("steps", [], TensorProto.INT64)], [tensor("y", SHAPE)])


def data_sized() -> onnx.ModelProto:
    """As many outputs as there are values above zero."""
    nodes = [helper.make_node("Relu", ["x"], ["r"], "relu"), helper.make_node("NonZero", ["r"], ["y"], "found")]
    return model(nodes, [tensor("x", SHAPE)], [tensor("y", [3, "n"], TensorProto.INT64)])


def gelu() -> onnx.ModelProto:
    """An operator of opset 20, in a file of opset 22."""
    nodes = [conv("x", "conv", "c"), helper.make_node("Gelu", ["c"], ["y"], "gelu", approximate="tanh")]
    return model(nodes, [tensor("x", SHAPE)], [tensor("y", SHAPE)], [weight("w", 8, 8, 3)], opset=22)


def listed_weights() -> onnx.ModelProto:
    """IR version 3: every weight is an input too; two nodes of one name; an input that nothing reads."""
    nodes = [conv("x", "conv", "c"), helper.make_node("Tanh", ["c"], ["y"], "conv")]
    inputs = [tensor("x", SHAPE), tensor("w", [8, 8, 3]), tensor("unread", [1, 4])]
    graph = helper.make_graph(nodes, "old", inputs, [tensor("y", SHAPE)], [weight("w", 8, 8, 3)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=3)


def masked_attention() -> onnx.ModelProto:
    """Softmax attention over padded positions, masked as (1 - mask) * -1e10."""
    nodes = [
        helper.make_node("Transpose", ["k"], ["kt"], "turn", perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "kt"], ["scores"], "scores"),
        helper.make_node("Sub", ["one", "mask"], ["padding"], "padding"),
        helper.make_node("Mul", ["padding", "far"], ["bias"], "bias"),
        helper.make_node("Add", ["scores", "bias"], ["masked"], "masked"),
        helper.make_node("Softmax", ["masked"], ["p"], "softmax", axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["y"], "mix"),
    ]
    inputs = [tensor(name, [1, 32, 16]) for name in ("q", "k", "v")] + [tensor("mask", [1, 1, 32])]
    return model(nodes, inputs, [tensor("y", [1, 32, 16])], [constant("one", 1.0), constant("far", -1e10)])


def dynamic_quantised() -> onnx.ModelProto:
    """A MatMul as onnxruntime's quantize_dynamic writes it."""
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["xq", "xs", "xz"], "quantise"),
        helper.make_node("MatMulInteger", ["xq", "wq", "xz", "wz"], ["i"], "matmul"),
        helper.make_node("Cast", ["i"], ["f"], "cast", to=TensorProto.FLOAT),
        helper.make_node("Mul", ["xs", "ws"], ["s"], "scales"),
        helper.make_node("Mul", ["f", "s"], ["p"], "scaled"),
        helper.make_node("Add", ["p", "b"], ["y"], "bias"),
    ]
    codes = np.random.default_rng(5).integers(60, 196, (32, 24))
    weights = [
        constant("wq", codes, np.uint8),
        constant("wz", 128, np.uint8),
        constant("ws", 0.01),
        weight("b", 24),
    ]
    return model(nodes, [tensor("x", [1, 16, 32])], [tensor("y", [1, 16, 24])], weights)


def half() -> onnx.ModelProto:
    """Weights, input and output of float16."""
    made = tensor("y", SHAPE, TensorProto.FLOAT16)
    weights = [constant("w", np.random.default_rng(5).standard_normal((8, 8, 3)) * 0.1, np.float16)]
    return model([conv("x", "conv", "y")], [tensor("x", SHAPE, TensorProto.FLOAT16)], [made], weights)


def passed_through() -> onnx.ModelProto:
    """An output that is an input."""
    return model([conv("x", "conv", "y")], [tensor("x", SHAPE)], [tensor("y", SHAPE), tensor("x", SHAPE)], W)


def lengths() -> onnx.ModelProto:
    """An integer input that indexes nothing: how many of the steps are real."""
    nodes = [
        helper.make_node("Less", ["steps", "length"], ["real"], "real"),
        helper.make_node("Cast", ["real"], ["mask"], "mask", to=TensorProto.FLOAT),
        conv("x", "conv", "c"),
        helper.make_node("Mul", ["c", "mask"], ["y"], "masked"),
    ]
    inputs = [tensor("x", SHAPE), tensor("length", [1], TensorProto.INT64)]
    return model(nodes, inputs, [tensor("y", SHAPE)], [*W, constant("steps", np.arange(32), np.int64)])


W = [weight("w", 8, 8, 3)]
