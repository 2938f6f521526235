"""IsNaN of a softmax is gone, and wholly masked rows still give 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper

from surgery.rewrite_mask_constants import rewrite_mask_constants
from surgery.rewrite_safe_softmax import rewrite_safe_softmax
from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import Array, run
from tests.surgery.graphs import check

N = 5
SCORES = np.random.default_rng(4).normal(0, 5, (2, N, N)).astype(np.float32)
ROWS = np.tril(np.ones((1, N, N)), -1)
"""Keeps what lies before: the first row is wholly masked."""


def safe(kept: Array | None, opset: int = 18, add: bool = True, **axis: Any) -> ir.Model:
    """Scores `s` under the mask `kept` (an input where None), 0 where the softmax is NaN."""
    nodes = [
        helper.make_node("Equal", ["kept", "zero"], ["gone"], "ask"),
        helper.make_node("Where", ["gone", "low", "zero"], ["m"], "mask"),
        helper.make_node("Add", ["s", "m"], ["x"], "add"),
        helper.make_node("Softmax", ["x"], ["p"], "soft", **axis),
        helper.make_node("IsNaN", ["p"], ["nan"], "isnan"),
        helper.make_node("Where", ["nan", "zero", "p"], ["y"], "safe"),
    ]
    constants = [constant("zero", 0), constant("low", -np.inf)]
    inputs = [tensor("s", [2, N, N])]
    if kept is None:
        inputs.append(tensor("kept", [1, N, N]))
    elif add:
        constants.append(constant("m", np.where(kept > 0, 0, -np.inf)))
        nodes = nodes[2:]
    else:
        nodes[1:3] = [helper.make_node("Where", ["gone", "low", "s"], ["x"], "fill")]
        constants.append(constant("kept", kept))
    return model(nodes, inputs, [tensor("y", [2, N, N])], constants, opset=opset)


def feed(kept: Array | None) -> dict[str, Any]:
    return {"s": SCORES} if kept is not None else {"s": SCORES, "kept": ROWS.astype(np.float32)}


@pytest.mark.parametrize("opset", [13, 17, 18, 19])
@pytest.mark.parametrize("axis", [{"axis": -1}, {"axis": 2}, {"axis": 1}, {}], ids=str)
@pytest.mark.parametrize("kept", [None, ROWS], ids=["mask is an input", "mask is constant"])
def test_safe_softmax_gives_zero_rows_when_they_are_wholly_masked(
    kept: Array | None, axis: dict[str, Any], opset: int
) -> None:
    original = safe(kept, opset, **axis)
    done = rewrite_safe_softmax().rewrite(original)
    assert (done.hits, done.refused) == (1, ())
    check(done.model)
    assert not any(node.op_type == "IsNaN" for node in done.model.graph)
    wanted = run(original, feed(kept))["y"]
    assert not wanted[:, 0 if axis != {"axis": 1} else slice(None), -1].any()
    np.testing.assert_array_equal(run(done.model, feed(kept))["y"], wanted)
    masked = rewrite_mask_constants().rewrite(done.model)
    assert masked.hits == 1
    check(masked.model)
    np.testing.assert_array_equal(run(masked.model, feed(kept))["y"], wanted)


def test_safe_softmax_is_the_softmax_when_a_constant_mask_leaves_every_row_a_score() -> None:
    kept = np.tril(np.ones((1, N, N)))
    original = safe(kept, axis=-1)
    done = rewrite_safe_softmax().rewrite(original)
    assert done.hits == 1
    check(done.model)
    assert [node.op_type for node in done.model.graph] == ["Add", "Softmax", "Identity"]
    np.testing.assert_array_equal(run(done.model, feed(kept))["y"], run(original, feed(kept))["y"])


def attention(opset: int = 18, twice: bool = False, causal: bool = False) -> ir.Model:
    """softmax(q @ k + m) @ v with 0 for wholly masked rows, as torch exports it; `m` from `kept`, causal, or both."""
    nodes = [
        helper.make_node("MatMul", ["q", "k"], ["s0"], "scores"),
        helper.make_node("Mul", ["s0", "half"], ["s1"], "scale"),
        helper.make_node("Equal", ["kept", "zero"], ["gone"], "ask"),
        helper.make_node("Where", ["gone", "low", "zero"], ["m"], "mask"),
        helper.make_node("Add", ["s1", "m"] if twice or not causal else ["s1", "c"], ["s2"], "add"),
        helper.make_node("Add", ["s2", "c"] if twice else ["s2", "zero"], ["x"], "add again"),
        helper.make_node("Softmax", ["x" if twice else "s2"], ["p"], "soft", axis=-1),
        helper.make_node("IsNaN", ["p"], ["nan"], "isnan"),
        helper.make_node("Where", ["nan", "zero", "p"], ["safe"], "safe"),
        helper.make_node("MatMul", ["safe", "v"], ["y"], "product"),
    ]
    constants = [constant("zero", 0), constant("half", 0.5), constant("low", -np.inf)]
    constants.append(constant("c", np.where(np.tril(np.ones((N, N))) > 0, 0, -np.inf)))
    inputs = [tensor("q", [2, N, 3]), tensor("k", [2, 3, N]), tensor("v", [2, N, 4]), tensor("kept", [1, N, N])]
    return model(nodes, inputs, [tensor("y", [2, N, 4])], constants, opset=opset)


LAST_ONLY = np.array([[0, 0, 0, 0, 1]] * N, np.float32)[None]
"""With a causal mask it leaves a score to the last row alone; without one it leaves every row one."""

ATTENTION = {
    name: np.random.default_rng(seed).normal(0, 2, shape).astype(np.float32)
    for seed, (name, shape) in enumerate({"q": (2, N, 3), "k": (2, 3, N), "v": (2, N, 4)}.items())
}


@pytest.mark.parametrize("opset", [13, 18])
@pytest.mark.parametrize("kept", [ROWS.astype(np.float32), LAST_ONLY], ids=["one row masked", "none masked alone"])
@pytest.mark.parametrize(("twice", "causal"), [(False, False), (True, False), (False, True)])
def test_attention_gives_zero_rows_when_they_are_wholly_masked(
    kept: Array, twice: bool, causal: bool, opset: int
) -> None:
    original = attention(opset, twice, causal)
    done = rewrite_mask_constants().rewrite(rewrite_safe_softmax().rewrite(original).model)
    assert done.hits
    check(done.model)
    given = {**ATTENTION, "kept": kept}
    wanted = run(original, given)["y"]
    assert np.isfinite(wanted).all()
    np.testing.assert_array_equal(run(done.model, given)["y"], wanted)
    # The softmax goes into its product as it is, which the toolkit makes one attention of.
    product = next(node for node in done.model.graph if node.op_type == "MatMul" and node.inputs[1].name == "v")  # type: ignore[union-attr]
    assert product.inputs[0].producer().op_type == "Softmax"  # type: ignore[union-attr]


def test_safe_softmax_works_when_the_mask_is_a_fill() -> None:
    original = safe(ROWS, add=False, axis=-1)
    done = rewrite_mask_constants().rewrite(rewrite_safe_softmax().rewrite(original).model)
    check(done.model)
    np.testing.assert_array_equal(run(done.model, feed(ROWS))["y"], run(original, feed(ROWS))["y"])


@pytest.mark.parametrize("axis", [{"axis": 1}, {}], ids=str)
def test_safe_softmax_is_left_when_the_opset_gives_it_several_axes(axis: dict[str, Any]) -> None:
    original = safe(None, 12, **axis)
    assert rewrite_safe_softmax().rewrite(original).model is original


def test_safe_softmax_takes_opset_12_when_its_axis_is_the_last() -> None:
    original = safe(None, 12, axis=-1)
    done = rewrite_safe_softmax().rewrite(original)
    assert done.hits == 1
    check(done.model)
    np.testing.assert_array_equal(run(done.model, feed(None))["y"], run(original, feed(None))["y"])


def test_isnan_is_left_when_it_is_of_no_softmax() -> None:
    nodes = [
        helper.make_node("Tanh", ["s"], ["p"], "soft"),
        helper.make_node("IsNaN", ["p"], ["nan"], "isnan"),
        helper.make_node("Where", ["nan", "zero", "p"], ["y"], "safe"),
    ]
    original = model(nodes, [tensor("s", [2, N])], [tensor("y", [2, N])], [constant("zero", 0)])
    assert rewrite_safe_softmax().rewrite(original).model is original


def asking(limit: float, turned: bool = False, softmax: str = "Softmax") -> ir.Model:
    """The end of ONNX's own Attention: rows whose mask `m`, an input, is minus infinity everywhere are 0."""
    sides = ["low", "largest"] if turned else ["largest", "low"]
    nodes = [
        helper.make_node("Add", ["s", "m"], ["x"], "add"),
        helper.make_node(softmax, ["x"], ["p"], "soft"),
        helper.make_node("Cast", ["p"], ["c"], "cast", to=1),
        helper.make_node("ReduceMax", ["m"], ["largest"], "reduce", axes=[-1]),
        helper.make_node("Equal", sides, ["rows"], "ask"),
        helper.make_node("Where", ["rows", "zero", "c"], ["y"], "safe"),
    ]
    constants = [constant("zero", [0.0]), constant("low", [limit])]
    return model(nodes, [tensor("s", [2, N, N]), tensor("m", [1, N, N])], [tensor("y", [2, N, N])], constants, opset=17)


@pytest.mark.parametrize("turned", [False, True])
def test_row_is_compared_with_a_number_within_fp16_when_its_mask_is_an_input(turned: bool) -> None:
    original = asking(-np.inf, turned)
    done = rewrite_safe_softmax().rewrite(original)
    assert (done.hits, done.refused) == (1, ())
    check(done.model)
    assert "Equal" not in [node.op_type for node in done.model.graph]
    given = {"s": SCORES, "m": np.where(ROWS > 0, 0, -np.inf).astype(np.float32)}
    np.testing.assert_array_equal(run(done.model, given)["y"], run(original, given)["y"])
    assert rewrite_safe_softmax().rewrite(done.model).hits == 0


@pytest.mark.parametrize("original", [asking(-4.0), asking(-np.inf, softmax="Tanh")], ids=["a number", "no softmax"])
def test_other_comparisons_stay(original: ir.Model) -> None:
    done = rewrite_safe_softmax().rewrite(original)
    assert (done.model, done.hits) == (original, 0)
