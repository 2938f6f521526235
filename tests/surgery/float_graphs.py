"""Small graphs of one float type, for the passes that make float32 of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import TensorProto, helper

from surgery.declaration import Interface
from tests.gates.small_graphs import proto, tensor
from tests.onnx_runs import Array

RNG = np.random.default_rng(5)


def weight(name: str, values: Any, kind: int) -> onnx.TensorProto:
    """An initializer of the ONNX type `kind`."""
    array = np.asarray(values, helper.tensor_dtype_to_np_dtype(kind))
    return onnx.numpy_helper.from_array(array, name)


def scaled(kind: int, factors: Any = ((1.5, -2.0, 0.3, 4.0),), shape: Sequence[int | str] = (1, 4)) -> onnx.ModelProto:
    """y = tanh(k * x), everything of `kind`."""
    nodes = [helper.make_node("Mul", ["x", "k"], ["m"], "scale"), helper.make_node("Tanh", ["m"], ["y"], "bend")]
    return proto(nodes, [tensor("x", shape, kind)], [tensor("y", shape, kind)], [weight("k", factors, kind)])


def between_casts(kind: int) -> onnx.ModelProto:
    """As torch's half export with float32 inputs and outputs: Cast, MatMul and Softmax of `kind`, Cast."""
    nodes = [
        helper.make_node("Cast", ["x"], ["h"], "down", to=kind),
        helper.make_node("MatMul", ["h", "w"], ["m"], "product"),
        helper.make_node("Softmax", ["m"], ["s"], "soft", axis=-1),
        helper.make_node("Cast", ["s"], ["y"], "up", to=TensorProto.FLOAT),
    ]
    weights = [weight("w", RNG.standard_normal((4, 6)), kind)]
    return proto(nodes, [tensor("x", [2, 4])], [tensor("y", [2, 6])], weights)


def cast_out(kind: int) -> onnx.ModelProto:
    """The cast to `kind` is the output, and its value is read once more."""
    nodes = [
        helper.make_node("Cast", ["x"], ["y"], "down", to=kind),
        helper.make_node("Cast", ["y"], ["u"], "up", to=TensorProto.FLOAT),
        helper.make_node("Abs", ["u"], ["z"], "size"),
    ]
    return proto(nodes, [tensor("x", [2, 4])], [tensor("y", [2, 4], kind), tensor("z", [2, 4])])


def shared_weight(kind: int) -> onnx.ModelProto:
    """A weight that a varying node reads, and a constant chain of integers too."""
    nodes = [
        helper.make_node("Cast", ["k"], ["i"], "whole", to=TensorProto.INT64),
        helper.make_node("Gather", ["x", "i"], ["g"], "pick", axis=1),
        helper.make_node("Mul", ["g", "k"], ["y"], "scale"),
    ]
    return proto(nodes, [tensor("x", [2, 4], kind)], [tensor("y", [2, 3], kind)], [weight("k", [1.0, 3.0, 0.0], kind)])


def constant_nodes(kind: int) -> onnx.ModelProto:
    """Constants made by nodes, one read through arithmetic."""
    nodes = [
        helper.make_node("Constant", [], ["k"], "three", value=weight("", [3.0], kind)),
        helper.make_node("Mul", ["k", "k"], ["kk"], "nine"),
        helper.make_node("Add", ["x", "kk"], ["s"], "sum"),
        helper.make_node("Mul", ["s", "k"], ["y"], "scale"),
    ]
    return proto(nodes, [tensor("x", [2, 4], kind)], [tensor("y", [2, 4], kind)])


def typed_attributes(kind: int) -> onnx.ModelProto:
    """Casts of bools: to the type of another value, and by an attribute that names the type."""
    nodes = [
        helper.make_node("Greater", ["x", "k"], ["b"], "above"),
        helper.make_node("CastLike", ["b", "x"], ["c"], "like"),
        helper.make_node("Not", ["b"], ["n"], "below"),
        helper.make_node("Cast", ["n"], ["e"], "cast", to=kind),
        helper.make_node("Sub", ["c", "e"], ["y"], "both"),
    ]
    return proto(nodes, [tensor("x", [3, 3], kind)], [tensor("y", [3, 3], kind)], [weight("k", [0.1], kind)])


def nested(kind: int) -> onnx.ModelProto:
    """Branches that give a constant and a capture of `kind`."""
    then = helper.make_graph([helper.make_node("Neg", ["m"], ["t"], "turn")], "then", [], [tensor("t", [1, 4], kind)])
    other = helper.make_graph([], "else", [], [tensor("e", [1, 4], kind)], [weight("e", [[1, 2, 3, 4]], kind)])
    nodes = [
        helper.make_node("Mul", ["x", "k"], ["m"], "scale"),
        helper.make_node("If", ["c"], ["y"], "choose", then_branch=then, else_branch=other),
    ]
    inputs = [tensor("x", [1, 4], kind), tensor("c", [], TensorProto.BOOL)]
    return proto(nodes, inputs, [tensor("y", [1, 4], kind)], [weight("k", [2.0], kind)])


GRAPHS = (scaled, between_casts, cast_out, shared_weight, constant_nodes, typed_attributes, nested)


def feed_of(made: onnx.ModelProto) -> dict[str, Array]:
    """White noise for floats, True for bools."""
    feed: dict[str, Array] = {}
    for value in made.graph.input:
        kind = value.type.tensor_type
        shape = [size.dim_value for size in kind.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
        noise = np.random.default_rng(2).standard_normal(shape)
        feed[value.name] = np.ones(shape, dtype) if dtype == np.bool_ else noise.astype(dtype)
    return feed


def followed(feed: dict[str, Array], interface: Interface) -> dict[str, Array]:
    """`feed` as the graph with that interface takes it."""
    kinds = {change.name: change for change in interface.inputs}
    return {
        name: array.reshape(kinds[name].shape).astype(kinds[name].dtype) if name in kinds else array
        for name, array in feed.items()
    }


def types_of(model: ir.Model) -> set[ir.DataType]:
    """Every type that the graph names: of inputs, outputs, weights and tensors in attributes."""
    proto = ir.to_proto(model)
    kinds = {value.type.tensor_type.elem_type for value in (*proto.graph.input, *proto.graph.output)}
    kinds |= {value.data_type for value in proto.graph.initializer}
    kinds |= {
        attribute.t.data_type for node in proto.graph.node for attribute in node.attribute if attribute.HasField("t")
    }
    return {ir.DataType(kind) for kind in kinds}
