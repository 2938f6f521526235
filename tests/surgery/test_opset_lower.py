"""Operators of new opsets as opset 19 writes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator

from surgery.opset_lower import LOWERED, is_new, relabelled, same_meaning, without
from surgery.splice import Draft, splice
from tests.onnx_runs import as_proto, run
from tests.surgery.graphs import check
from tests.surgery.one_operator import feed_of, operator


def downgraded(made: ir.Model) -> str | None:
    """Make the one node of `made` one of opset 19; why it cannot be."""
    node = made.graph[0]
    draft = Draft()
    outcome = LOWERED[node.op_type](node, draft)
    assert outcome is not None
    if isinstance(outcome, str):
        return outcome
    splice(node, draft.nodes, outcome, "test")
    made.opset_imports[""] = 19
    return None


AXIS = {"constants": {"axis": np.array(1)}}
GRID = {"fed": {"g": (1, 2, 2, 2)}, "shape": (1, 1, 4, 4)}
BOOLS = {"dtype": TensorProto.BOOL, "shape": (2, 3), "keepdims": 0, "made": {"y": (1, TensorProto.BOOL)}}


@pytest.mark.parametrize(
    ("op", "inputs", "opset", "options"),
    [
        ("DFT", "x - axis", 20, {"shape": (1, 8, 2), **AXIS}),
        ("DFT", "x", 20, {"shape": (1, 8, 2)}),
        ("DFT", "x", 20, {"shape": (1, 8, 1), "onesided": 1, "made": {"y": (3, 1)}}),
        ("GridSample", "x g", 20, {**GRID, "mode": "linear"}),
        ("GridSample", "x g", 20, {**GRID, "mode": "nearest", "padding_mode": "border"}),
        ("GroupNormalization", "x s b", 21, {"shape": (1, 6, 5), "fed": {"s": (6,), "b": (6,)}, "num_groups": 3}),
        ("ReduceMax", "x axis", 20, {**BOOLS, "constants": {"axis": np.array([1])}}),
        ("ReduceMin", "x axis", 20, {**BOOLS, "constants": {"axis": np.array([1])}}),
    ],
)
def test_lowered_gives_what_onnxs_reference_gives_when_the_opset_was_newer(
    op: str, inputs: str, opset: int, options: dict[str, Any]
) -> None:
    made = operator(op, inputs, opset=opset, **options)
    feed = feed_of(made)
    if op.startswith("Reduce"):
        feed["x"] = np.array([[True, False, True], [False, False, False]])
    if op == "GridSample":
        feed["g"] = np.clip(feed["g"], -0.9, 0.9)
    (wanted,) = ReferenceEvaluator(as_proto(made)).run(None, feed)
    assert downgraded(made) is None
    check(made)
    np.testing.assert_allclose(run(made, feed)["y"], np.asarray(wanted), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("op", "inputs", "options", "why"),
    [
        ("DFT", "x - axis", {"shape": (4, 4), "dtype": TensorProto.INT64, "fed": {"axis": ()}}, "its axis is computed"),
        ("GridSample", "x g", {"shape": (1, 1, 4, 4, 4), "fed": {"g": (1, 2, 2, 2, 3)}}, "its input has the rank 5"),
    ],
)
def test_lowered_says_why_when_opset_19_has_no_equal(op: str, inputs: str, options: dict[str, Any], why: str) -> None:
    outcome = downgraded(operator(op, inputs, opset=20, **options))
    assert outcome is not None
    assert why in outcome


def test_lowered_reads_no_rank_when_the_axis_counts_from_behind_and_the_input_has_none() -> None:
    made = operator("DFT", opset=20, shape=(1, 8, 2))
    made.graph.inputs[0].shape = None
    outcome = downgraded(made)
    assert outcome is not None
    assert "its axis is -2" in outcome


@pytest.mark.parametrize(("op", "wanted"), [("Gelu", True), ("RegexFullMatch", True), ("Relu", False), ("DFT", False)])
def test_is_new_when_opset_19_has_no_such_operator(op: str, wanted: bool) -> None:
    assert is_new(op) is wanted


@pytest.mark.parametrize(
    ("op", "opset", "wanted"),
    [
        ("Relu", 21, True),
        ("Conv", 21, True),
        ("DFT", 20, False),
        ("GroupNormalization", 21, False),
        ("Cast", 21, False),
    ],
)
def test_same_meaning_when_the_operator_did_not_change_since(op: str, opset: int, wanted: bool) -> None:
    assert same_meaning(ir.node(op, []), opset) is wanted


@pytest.mark.parametrize(
    ("op", "attributes", "wanted"),
    [
        ("QuantizeLinear", {"block_size": 0, "precision": 1}, None),
        ("QuantizeLinear", {"block_size": 32}, "block_size is 32"),
        ("DequantizeLinear", {"output_dtype": TensorProto.FLOAT16}, "output_dtype is 10"),
        ("SpaceToDepth", {"blocksize": 2, "mode": "DCR"}, None),
        ("SpaceToDepth", {"blocksize": 2, "mode": "CRD"}, "mode is CRD"),
        ("Cast", {"to": 1, "round_mode": "down"}, None),
        ("Neg", {"unheard_of": 1}, "unheard_of is 1"),
    ],
)
def test_relabelled_drops_what_asks_for_what_opset_19_does_anyway(
    op: str, attributes: dict[str, Any], wanted: str | None
) -> None:
    made = ir.node(op, [ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT))], attributes)
    assert relabelled(made) == wanted
    if wanted is None:
        assert set(made.attributes) <= {"to", "blocksize"}


def test_relabelled_says_so_when_opset_19_does_not_take_the_type() -> None:
    kind = ir.TensorType(ir.DataType.UINT4)
    assert relabelled(ir.node("Identity", [ir.Value(name="x", type=kind)])) == "its input 'x' is tensor(uint4)"
    later = ir.TensorType(ir.DataType.BFLOAT16)  # becomes float32 in a pass of its own
    assert relabelled(ir.node("Identity", [ir.Value(name="x", type=later)])) is None


def test_without_leaves_one_attribute_out() -> None:
    made = ir.node("Cast", [], {"to": 1, "saturate": 0})
    assert list(without(made, "saturate")) == ["to"]
