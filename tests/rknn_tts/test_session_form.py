from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from rknn_tts.runnable import make_runnable
from rknn_tts.session_form import session_form
from surgery.declaration import Rewritten
from surgery.normalise_opset import normalise_opset
from tests.gates.small_graphs import constant, model, row, tensor
from tests.onnx_runs import run
from tests.surgery.graphs import check, serialised
from tests.surgery.one_operator import operators

X = tensor("x", [1, 40, 50])


def drawing(op: str = "RandomNormalLike", opset: int = 23, **attributes: Any) -> ir.Model:
    """n, drawn, and n + x; what draws is like x or of its shape."""
    inputs = ["x"] if op.endswith("Like") else []
    shape: dict[str, Any] = {} if inputs else {"shape": [1, 40, 50]}
    nodes = [
        helper.make_node(op, inputs, ["n"], "draw", **shape, **attributes),
        helper.make_node("Add", ["x", "n"], ["y"], "add"),
    ]
    made = model(nodes, [X], [tensor("y", [1, 40, 50]), tensor("n", [1, 40, 50])], opset=opset)
    make_runnable(made)
    return made


FEED = {"x": np.zeros((1, 40, 50), np.float32)}


@pytest.mark.parametrize(
    ("op", "attributes", "mean", "deviation"),
    [
        ("RandomNormalLike", {}, 0, 1),
        ("RandomNormal", {"mean": 3.0, "scale": 0.5}, 3, 0.5),
        ("RandomUniformLike", {"dtype": TensorProto.FLOAT}, 0.5, 12**-0.5),
        ("RandomUniform", {"low": -2.0, "high": 4.0}, 1, 6 / 12**0.5),
    ],
)
def test_what_draws_in_a_new_opset_gives_such_numbers(
    op: str, attributes: dict[str, Any], mean: float, deviation: float
) -> None:
    original = drawing(op, **attributes)
    before = serialised(original)
    made = session_form(original, 23)
    assert serialised(original) == before
    check(made)
    drawn = run(made, FEED)["n"]
    assert abs(drawn.mean() - mean) < 0.1 * deviation
    assert abs(drawn.std() - deviation) < 0.05 * deviation
    assert len(np.unique(drawn)) > 1900


def test_graph_of_a_lower_opset_draws_the_same_when_it_was_made_of_one_that_draws() -> None:
    original = drawing()
    lowered = normalise_opset().rewrite(original)
    assert isinstance(lowered, Rewritten)
    assert lowered.model.opset_imports[""] == 19
    first, second = (run(session_form(graph, 23), FEED)["n"] for graph in (original, lowered.model))
    np.testing.assert_array_equal(first, second)


def test_two_nodes_draw_apart() -> None:
    nodes = [helper.make_node("RandomNormalLike", ["x"], [name], name) for name in "ab"]
    made = model(nodes, [X], [tensor("a", [1, 40, 50]), tensor("b", [1, 40, 50])], opset=22)
    make_runnable(made)
    drawn = run(session_form(made, 22), FEED)
    assert abs(np.corrcoef(drawn["a"].ravel(), drawn["b"].ravel())[0, 1]) < 0.1


@pytest.mark.parametrize("rank", [3, 4])
@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.BOOL])
def test_mask_of_one_row_is_expanded(rank: int, kind: int) -> None:
    heads: dict[str, Any] = {} if rank == 4 else {"q_num_heads": 2, "kv_num_heads": 2}
    shape = [1, 2, 5, 4] if rank == 4 else [1, 5, 8]
    node = helper.make_node("Attention", ["q", "q", "q", "m"], ["y", "", ""], "attend", **heads)
    given = model([node], [tensor("q", shape), tensor("m", [1, 1, 1, 5], kind)], [tensor("y", shape)], opset=23)
    made = session_form(given, 23)
    check(made)
    assert operators(made) == ["Shape", "Concat", "Expand", "Attention"]
    query = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    kept = np.array([[[[1, 1, 1, 0, 0]]]], bool)
    mask = kept if kind == TensorProto.BOOL else np.where(kept, 0, -1e4).astype(np.float32)
    got = run(made, {"q": query, "m": mask})["y"]
    parts = query[0] if rank == 4 else query.reshape(5, 2, 4).transpose(1, 0, 2)
    scores = np.where(kept[0], parts @ parts.transpose(0, 2, 1) / 2, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    wanted = weights / weights.sum(-1, keepdims=True) @ parts
    np.testing.assert_allclose(got[0] if rank == 4 else got.reshape(5, 2, 4).transpose(1, 0, 2), wanted, atol=1e-5)


def reshaped(opset: int, op: str = "Identity", **attributes: Any) -> ir.Model:
    """y = x [1, 4] in other shapes and back, by operators that got further types in opset 24, 25 or both, and `op`."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"], "shape"),
        helper.make_node("Unsqueeze", ["x", "axes"], ["u"], "unsqueeze"),
        helper.make_node("Transpose", ["u"], ["t"], "transpose", perm=[2, 0, 1]),
        helper.make_node("Reshape", ["t", "s"], ["r"], "reshape"),
        helper.make_node(op, ["r"], ["y"], "last", **attributes),
    ]
    weights = [constant("axes", [0], np.int64)]
    return model(nodes, [tensor("x", [1, 4])], [tensor("y", [1, 4])], weights, opset=opset, ir_version=11)


@pytest.mark.parametrize("opset", [24, 25, 26])
def test_graph_of_an_opset_that_onnxruntime_does_not_read_runs_as_its_highest(opset: int) -> None:
    original = reshaped(opset)
    before = serialised(original)
    with pytest.raises(Exception, match="till opset 23"):
        run(original, {"x": row(1, 2, 3, 4)})
    made = session_form(original, opset)
    assert serialised(original) == before
    assert made.opset_imports[""] == 23
    np.testing.assert_array_equal(run(made, {"x": row(1, 2, 3, 4)})["y"], row(1, 2, 3, 4))


def test_graph_of_a_new_opset_that_draws_runs_as_well() -> None:
    drawn = run(session_form(drawing(opset=24), 24), FEED)["n"]
    np.testing.assert_array_equal(drawn, run(session_form(drawing(opset=23), 23), FEED)["n"])


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("TensorScatter", {}),  # new in 24
        ("Cast", {"to": 1, "round_mode": "nearest"}),  # an attribute of 24
        ("Frobnicate", {}),
    ],
)
def test_graph_keeps_its_opset_when_an_operator_has_another_meaning_in_the_highest(
    op: str, attributes: dict[str, Any]
) -> None:
    given = reshaped(24, op, **attributes)
    assert session_form(given, 24) is given


@pytest.mark.parametrize(("attributes", "alpha"), [({}, 1.0), ({"alpha": 0.0}, 0.0), ({"alpha": -1.7}, -1.7)])
def test_swish_of_a_new_opset_runs_as_its_definition(attributes: dict[str, Any], alpha: float) -> None:
    values = np.array([[-3, -0.5, 0, 2]], np.float32)
    got = run(session_form(reshaped(24, "Swish", **attributes), 24), {"x": values})["y"]
    np.testing.assert_allclose(got, values / (1 + np.exp(-alpha * values)), rtol=1e-6)


def test_graph_keeps_its_opset_when_an_operator_takes_more_inputs_than_in_the_highest() -> None:
    inputs = [*(tensor(name, [1, 2, 5, 4]) for name in "qkv"), tensor("n", [1], TensorProto.INT64)]
    node = helper.make_node("Attention", ["q", "k", "v", "", "", "", "n"], ["y"], "attend")
    given = model([node], inputs, [tensor("y", [1, 2, 5, 4])], opset=24, ir_version=11)
    assert session_form(given, 24) is given


def test_local_functions_and_branches_are_looked_into() -> None:
    branch = helper.make_graph([helper.make_node("CumProd", ["x", "x"], ["b"])], "branch", [], [tensor("b", [1, 4])])
    node = helper.make_node("If", ["c"], ["y"], "if", then_branch=branch, else_branch=branch)
    given = model([node], [X4, tensor("c", [], TensorProto.BOOL)], [tensor("y", [1, 4])], opset=24, ir_version=11)
    assert session_form(given, 24) is given
    plain = calling("Neg")
    made = session_form(plain, 24)
    assert plain.opset_imports[""] == 24
    np.testing.assert_array_equal(run(made, {"x": row(1, 2, 3, 4)})["y"], row(-1, -2, -3, -4))
    swish = calling("Swish")
    assert session_form(swish, 24) is swish


X4 = tensor("x", [1, 4])


def calling(op: str) -> ir.Model:
    """y = a local function of x, which is `op`."""
    imports = [helper.make_opsetid("", 24), helper.make_opsetid("mine", 1)]
    body = helper.make_function("mine", "F", ["a"], ["b"], [helper.make_node(op, ["a"], ["b"])], imports[:1])
    graph = helper.make_graph([helper.make_node("F", ["x"], ["y"], domain="mine")], "g", [X4], [tensor("y", [1, 4])])
    made = helper.make_model(graph, opset_imports=imports, functions=[body], ir_version=11)
    return ir.from_proto(made)


def test_graph_that_onnxruntime_runs_is_left_alone() -> None:
    for original, opset in ((drawing(opset=21), 21), (drawing(opset=17), 17)):
        assert session_form(original, opset) is original
    attention = helper.make_node("Attention", ["q", "q", "q"], ["y"], "attend")
    plain = model([attention], [tensor("q", [1, 2, 5, 4])], [tensor("y", [1, 2, 5, 4])], opset=23)
    assert session_form(plain, 23) is plain
