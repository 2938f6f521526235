from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto

from surgery.declaration import Interface, Recast
from surgery.normalise_scalar_outputs import normalise_scalar_outputs
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.interfaces import applied, left_alone, names, node, noise, operators, same

SHAPE = [1, 4, 9]
X, Y = tensor("x", SHAPE), tensor("y", [])
MEAN = node("ReduceMean", "x", "y", keepdims=0)


@pytest.mark.parametrize("opset", [9, 13, 17])
def test_normalise_scalar_outputs_makes_one_value_of_rank_0_a_vector(opset: int) -> None:
    original = model([MEAN], [X], [Y], opset=opset)
    done = applied(normalise_scalar_outputs(), original)
    assert (done.hits, done.interface) == (1, Interface(outputs=(Recast("y", (1,), "float32"),)))
    assert names(done.model.graph.outputs) == ["y"]
    assert list(done.model.graph.outputs[0].shape or ()) == [1]
    same(original, done.model, {"x": noise(*SHAPE)})


def test_normalise_scalar_outputs_keeps_other_readers_when_there_are_some() -> None:
    original = model([MEAN, node("Sub", "x y", "z")], [X], [Y, tensor("z", SHAPE)])
    done = applied(normalise_scalar_outputs(), original)
    assert done.hits == 1
    same(original, done.model, {"x": noise(*SHAPE)})


def test_normalise_scalar_outputs_changes_integers_and_several_at_once() -> None:
    nodes = [node("Reshape", "x flat", "f"), node("ArgMax", "f", "i", axis=0, keepdims=0), MEAN]
    outputs = [tensor("i", [], TensorProto.INT64), Y]
    original = model(nodes, [X], outputs, [constant("flat", [-1], np.int64)])
    done = applied(normalise_scalar_outputs(), original)
    assert done.interface.outputs == (Recast("i", (1,), "int64"), Recast("y", (1,), "float32"))
    assert done.hits == 2
    same(original, done.model, {"x": noise(*SHAPE)})


def test_normalise_scalar_outputs_infers_the_rank_when_the_file_states_none() -> None:
    original = model([MEAN], [X], [Y])
    original.graph.outputs[0].shape = None
    done = normalise_scalar_outputs().rewrite(original)
    assert (done.hits, operators(done.model)) == (1, ["ReduceMean", "Reshape"])


def other(name: str) -> ir.Model:
    if name == "rank 1":
        return model([node("ReduceMean", "x", "y", axes=[0, 1, 2])], [X], [tensor("y", [1, 1, 1])])
    if name == "input":
        return model([node("Neg", "x", "z")], [X, tensor("s", [])], [tensor("z", SHAPE), tensor("s", [])])
    nodes: list[onnx.NodeProto] = [node("Neg", "x", "z")]
    return model(nodes, [X], [tensor("z", SHAPE), tensor("k", [])], [constant("k", 1.0)])


@pytest.mark.parametrize("name", ["rank 1", "input", "weight"])
def test_normalise_scalar_outputs_leaves_an_output_alone_when_it_is_no_scalar_or_no_node_makes_it(name: str) -> None:
    left_alone(normalise_scalar_outputs(), other(name))
