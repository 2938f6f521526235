from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper

from converters.onnx_join import joined
from tests.onnx_runs import run

FRONT_WEIGHT, BACK_WEIGHT = np.array([1, 2, 3], np.float32), np.array([10, 20, 30], np.float32)


def model(nodes: list[onnx.NodeProto], ins: list[str], outs: list[str], opset: int = 17, **weights: object) -> ir.Model:
    def told(names: list[str]) -> list[onnx.ValueInfoProto]:
        return [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in names]

    held = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "g", told(ins), told(outs), held)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(made, full_check=True)
    return ir.from_proto(made)


def front(opset: int = 17) -> ir.Model:
    """middle = (x + w)^2, spare = x + w"""
    nodes = [
        helper.make_node("Add", ["x", "w"], ["spare"], name="Add"),
        helper.make_node("Mul", ["spare", "spare"], ["middle"], name="Mul"),
    ]
    return model(nodes, ["x"], ["middle", "spare"], opset, w=FRONT_WEIGHT)


def back() -> ir.Model:
    """y = (m + w) k; every name but `m` and `k` is the front's too"""
    nodes = [
        helper.make_node("Add", ["m", "w"], ["middle"], name="Add"),
        helper.make_node("Mul", ["middle", "k"], ["y"], name="Mul"),
    ]
    return model(nodes, ["m", "k"], ["y"], w=BACK_WEIGHT)


X, K = np.array([1, -1, 2], np.float32), np.array([2, 3, 4], np.float32)


def test_joined_computes_the_second_on_what_the_first_gives() -> None:
    whole, names = joined(front(), back(), {"m": "middle"})
    onnx.checker.check_model(ir.to_proto(whole), full_check=True)
    assert [value.name for value in whole.graph.inputs] == ["x", "k"]
    assert [value.name for value in whole.graph.outputs] == ["middle", "spare", "y"]
    got = run(whole, {"x": X, "k": K})
    np.testing.assert_array_equal(got["middle"], [4, 1, 25])
    np.testing.assert_array_equal(got["spare"], [2, 1, 5])
    np.testing.assert_array_equal(got["y"], [(4 + 10) * 2, (1 + 20) * 3, (25 + 30) * 4])
    assert names == {"k": "k", "w": "behind/w", "middle": "behind/middle", "y": "y"}
    assert len({node.name for node in whole.graph}) == 4


def test_joined_leaves_both_as_they_were() -> None:
    first, second = front(), back()
    before = [ir.to_proto(made).SerializeToString() for made in (first, second)]
    joined(first, second, {"m": "middle"})
    assert [ir.to_proto(made).SerializeToString() for made in (first, second)] == before


def test_joined_gives_a_free_name_when_the_new_one_is_taken_too() -> None:
    second = back()
    second.graph.inputs[1].name = "behind/w"
    whole, names = joined(front(), second, {"m": "middle"})
    assert names["w"] == "behind/behind/w"
    np.testing.assert_array_equal(run(whole, {"x": X, "behind/w": K})["y"], [28, 63, 220])


def test_joined_refuses_other_opsets() -> None:
    with pytest.raises(ValueError, match=r"the opsets ai\.onnx 16 and ai\.onnx 17"):
        joined(front(opset=16), back(), {"m": "middle"})


@pytest.mark.parametrize("wires", [{"m": "nothing"}, {"nothing": "middle"}])
def test_joined_refuses_a_wire_that_leads_nowhere(wires: dict[str, str]) -> None:
    with pytest.raises(KeyError, match="nothing"):
        joined(front(), back(), wires)


def test_joined_leaves_nodes_without_a_name_without_one() -> None:
    # Two nodes of one name are no model to onnxruntime; of none there may be any number.
    first, second = front(), back()
    for node in (*first.graph, *second.graph):
        node.name = ""
    whole, _ = joined(first, second, {"m": "middle"})
    assert [node.name for node in ir.to_proto(whole).graph.node] == [""] * 4
    np.testing.assert_array_equal(run(whole, {"x": X, "k": K})["y"], [28, 63, 220])


def test_joined_gives_each_node_a_free_name() -> None:
    second = back()
    names = iter(["Add", "behindAdd"])
    for node in second.graph:
        node.name = next(names)
    whole, _ = joined(front(), second, {"m": "middle"})
    assert len({node.name for node in whole.graph}) == 4
