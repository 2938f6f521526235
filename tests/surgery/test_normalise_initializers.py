from __future__ import annotations

import pytest

from surgery.normalise_initializers import normalise_initializers
from tests.gates.small_graphs import constant, model, tensor
from tests.surgery.interfaces import WEIGHT, applied, conv, left_alone, names, node, noise, same


@pytest.mark.parametrize(("ir_version", "after"), [(3, 4), (4, 4), (8, 8)])
def test_normalise_initializers_takes_weights_off_the_inputs_when_they_are_listed(ir_version: int, after: int) -> None:
    inputs = [tensor("w", [4, 4, 3]), tensor("x", [1, 4, 9]), tensor("k", [1])]
    nodes = [conv(), node("Mul", "c k", "y")]
    original = model(
        nodes, inputs, [tensor("y", [1, 4, 9])], [WEIGHT, constant("k", [3.0])], opset=9, ir_version=ir_version
    )
    done = applied(normalise_initializers(), original)
    assert (done.hits, names(done.model.graph.inputs), done.model.ir_version) == (2, ["x"], after)
    assert sorted(done.model.graph.initializers) == ["k", "w"]
    assert done.interface.removed == ()
    same(original, done.model, {"x": noise(1, 4, 9)})


@pytest.mark.parametrize("ir_version", [3, 8])
def test_normalise_initializers_leaves_a_graph_alone_when_no_weight_is_listed(ir_version: int) -> None:
    original = model([conv("x", "y")], [tensor("x", [1, 4, 9])], [tensor("y", [1, 4, 9])], [WEIGHT], ir_version=8)
    original.ir_version = ir_version
    left_alone(normalise_initializers(), original)


def test_normalise_initializers_keeps_a_weight_as_output_when_it_is_one() -> None:
    outputs = [tensor("y", [1, 4, 9]), tensor("w", [4, 4, 3])]
    original = model([conv("x", "y")], [tensor("x", [1, 4, 9]), tensor("w", [4, 4, 3])], outputs, [WEIGHT])
    done = applied(normalise_initializers(), original)
    assert names(done.model.graph.outputs) == ["y", "w"]
    same(original, done.model, {"x": noise(1, 4, 9)})
