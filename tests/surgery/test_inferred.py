"""Types and shapes of a graph's values."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from surgery.inferred import infer_types, state_again, stated_types
from tests.gates.small_graphs import chain, constant, model, tensor
from tests.surgery.graphs import check

AT = helper.make_node("SequenceAt", ["s", "first"], ["y"], "at")
MADE = helper.make_node("SplitToSequence", ["x"], ["t"], "split", axis=1)
KEPT = helper.make_node("Identity", ["t"], ["s"], "kept")


def _branch(name: str) -> onnx.GraphProto:
    return helper.make_graph(
        [helper.make_node("SplitToSequence", ["x"], [name], f"make_{name}", axis=1)],
        name,
        [],
        [helper.make_tensor_sequence_value_info(name, TensorProto.FLOAT, None)],
    )


CHOSEN = helper.make_node("If", ["yes"], ["s"], "if", then_branch=_branch("a"), else_branch=_branch("b"))


@pytest.mark.parametrize("nodes", [(MADE, KEPT, AT), (CHOSEN, AT)], ids=["identity", "if"])
def test_infer_types_takes_no_sequence_for_a_tensor(nodes: tuple[onnx.NodeProto, ...]) -> None:
    weights = [constant("first", 0, np.int64), constant("yes", True, np.bool_)]
    inferred = model(list(nodes), [tensor("x", [1, 4, 8])], [tensor("y", ["a", "b", "c"])], weights, opset=17)
    infer_types(inferred)
    check(inferred)
    values = {value.name: value for node in inferred.graph for value in node.outputs}
    assert not isinstance(values["s"].type, ir.TensorType)
    assert values["y"].dtype == ir.DataType.FLOAT


def test_state_again_gives_back_what_the_file_said_when_inference_said_otherwise() -> None:
    made = chain("Relu", "Neg")
    made.graph[0].outputs[0].shape = ir.Shape([7])
    kept = stated_types(made)
    made.graph[0].outputs[0].shape, made.graph[1].outputs[0].type = None, None
    state_again(kept)
    assert made.graph[0].outputs[0].shape == ir.Shape([7])
    assert made.graph[1].outputs[0].dtype is ir.DataType.FLOAT
