"""Masks become -1e4 where nothing sees their size, and numbers stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from contracts.verdicts import Status
from gates.fp16_range import weight_range
from surgery.rewrite_mask_constants import rewrite_mask_constants
from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import Array, run, snr_db
from tests.surgery.graphs import check, serialised

N = 6
LOWEST = float(np.finfo(np.float32).min)
FEED = {
    "s": np.random.default_rng(3).normal(0, 5, (2, N, N)).astype(np.float32),
    "mask": np.array([[[1, 1, 1, 1, 0, 0]]], np.float32),
}
"""Scores, and a mask that keeps the first four of each row."""

Nodes = Sequence[onnx.NodeProto]


def node(op: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs.split(), [output], f"make_{output}", **attributes)


def graph(nodes: Nodes, opset: int = 17, extra: Sequence[str] = (), **constants: Any) -> ir.Model:
    """Scores `s` and a mask to `y` (and `extra` outputs); `causal` and `kept` stand for boolean masks."""
    kept = (np.bool_, np.int64)
    made = [
        constant(name, v, v.dtype if getattr(v, "dtype", None) in kept else np.float32) for name, v in constants.items()
    ]
    made += [constant("causal", np.tril(np.ones((1, N, N))), bool), constant("axes", [1], np.int64)]
    inputs = [tensor("s", [2, N, N]), tensor("mask", [1, 1, N])]
    outputs = [tensor(name, [None] * 3) for name in ("y", *extra)]  # type: ignore[list-item]
    return model(nodes, inputs, outputs, made, opset=opset)


ADD = [node("Add", "s m", "x"), node("Softmax", "x", "y", axis=-1)]
FILL = [node("Where", "causal s k", "x"), node("Softmax", "x", "y", axis=-1)]
INVERTED = [node("Sub", "one mask", "i"), node("Mul", "i k", "m"), *ADD]
REVERSED = [node("Sub", "mask one", "i"), node("Mul", "i k", "m"), *ADD]
SUBTRACTED = [node("Sub", "one mask", "i"), node("Mul", "k i", "m"), node("Sub", "s m", "x"), ADD[1]]
CAST = [
    node("Cast", "causal", "c", to=TensorProto.FLOAT),
    node("Sub", "one c", "i"),
    node("Mul", "i k", "m"),
    *ADD,
]
BUILT = [node("Where", "causal zero k", "m"), *ADD]
SHAPED = [
    node("Where", "causal zero k", "m0"),
    node("Unsqueeze", "m0 axes", "m1"),
    node("Transpose", "m1", "m2", perm=[1, 0, 2, 3]),
    node("Squeeze", "m2 axes", "m3"),
    node("Identity", "m3", "m4"),
    node("Concat", "m4 m4", "m5", axis=0),
    node("Cast", "m5", "m6", to=TensorProto.DOUBLE),
    node("Cast", "m6", "m", to=TensorProto.FLOAT),
    *ADD,
]
TWICE = [node("Add", "s m", "x0"), node("Where", "causal x0 k", "x1"), node("Add", "x1 m", "x"), ADD[1]]
SCALED = [node("Add", "s m", "x0"), node("Mul", "x0 eighth", "x"), ADD[1]]
DIVIDED = [node("Add", "s m", "x0"), node("Div", "x0 two", "x"), ADD[1]]
CLAMPED = [node("Add", "s m", "x0"), node("Max", "x0 k", "x"), ADD[1]]
SCATTERED = [
    node("Expand", "zero shape", "blank"),
    node("ScatterND", "blank where far", "m"),
    *ADD,
]
LOWER = [node("Where", "causal zero k", "m0"), node("Min", "m0 m1", "m"), *ADD]
TRUTH = [node("Cast", "m", "t", to=TensorProto.BOOL), node("Where", "t m s", "x"), ADD[1]]
BY_HAND = [
    node("Where", "causal s k", "x"),
    helper.make_node("ReduceMax", ["x"], ["t"], "top", axes=[-1], keepdims=1),
    node("Sub", "x t", "d"),
    node("Exp", "d", "e"),
    helper.make_node("ReduceSum", ["e", "last"], ["n"], "sum", keepdims=1),
    node("Div", "e n", "y"),
]
ASKED = [
    node("Where", "causal s k", "x"),
    node("Equal", "x k", "gone"),
    node("Softmax", "x", "p", axis=-1),
    node("Where", "gone zero p", "y"),
]
ASKED_AFTER = [*ASKED[:1], node("IsInf", "x", "gone"), *ASKED[2:]]
MODERATE = [*ASKED[:1], node("Less", "x limit", "gone"), *ASKED[2:]]
GATED = [*FILL[:1], node("Sigmoid", "x", "y")]
LOGARITHM = [*FILL[:1], node("LogSoftmax", "x", "l", axis=-1), node("Exp", "l", "y")]
CHOSEN = [*FILL[:1], node("ArgMax", "x", "a", axis=-1), node("Cast", "a", "y", to=TensorProto.FLOAT)]


def causal(value: float, bias: float = 0.0) -> Array:
    return np.where(np.tril(np.ones((1, N, N))) > 0, np.float32(bias), np.float32(value)).astype(np.float32)


MASKS = [
    pytest.param(ADD, {"m": causal(-1e9)}, id="tensor of 0 and -1e9"),
    pytest.param(ADD, {"m": causal(-1e10, 0.75)}, id="tensor of biases and -1e10"),
    pytest.param(ADD, {"m": causal(LOWEST)}, id="tensor of the lowest float"),
    pytest.param(ADD, {"m": causal(-np.inf)}, id="tensor of minus infinity"),
    pytest.param(ADD, {"m": causal(-65504)}, id="lowest fp16"),
    pytest.param(ADD, {"m": causal(-65505)}, id="just past fp16"),
    *(pytest.param(FILL, {"k": value}, id=f"fill {value:g}") for value in (-1e9, -1e10, LOWEST, -np.inf, -4e4)),
    pytest.param(INVERTED, {"one": 1, "k": -1e9}, id="(1 - mask) * -1e9"),
    pytest.param(INVERTED, {"one": 1, "k": LOWEST}, id="(1 - mask) * lowest"),
    pytest.param(REVERSED, {"one": 1, "k": 1e9}, id="(mask - 1) * 1e9"),
    pytest.param(SUBTRACTED, {"one": 1, "k": 1e9}, id="s - 1e9 * (1 - mask)"),
    pytest.param(CAST, {"one": [1], "k": [-1e9]}, id="boolean mask as number"),
    pytest.param([node("Mul", "mask k", "m"), *ADD], {"k": -1e9}, id="mask * -1e9"),
    pytest.param(BUILT, {"zero": 0, "k": -np.inf}, id="Where(mask, 0, -inf)"),
    pytest.param(SHAPED, {"zero": 0, "k": -np.inf}, id="through shapes and casts"),
    pytest.param(TWICE, {"m": causal(-np.inf), "k": -1e9}, id="three masks on one score"),
    pytest.param(SCALED, {"m": causal(-1e9), "eighth": 0.125}, id="masked, then scaled"),
    pytest.param(DIVIDED, {"m": causal(-1e9), "two": [2]}, id="masked, then divided"),
    pytest.param(CLAMPED, {"m": causal(LOWEST), "k": LOWEST}, id="clamped to the lowest float"),
    pytest.param(
        SCATTERED,
        {"zero": 0, "shape": np.array([1, N, N]), "where": np.array([[0, 0, 3], [0, 5, 1]]), "far": [-1e9, -np.inf]},
        id="written into zeros",
    ),
    pytest.param(LOWER, {"zero": 0, "k": -1e9, "m1": causal(LOWEST)}, id="the lower of two masks"),
    pytest.param(TRUTH, {"m": causal(-1e9)}, id="asked whether it is 0"),
    pytest.param(BY_HAND, {"k": -np.inf, "last": np.array([-1])}, id="softmax by hand"),
    pytest.param(ASKED, {"zero": 0, "k": -np.inf}, id="asked by Equal"),
    pytest.param(ASKED_AFTER, {"zero": 0, "k": -np.inf}, id="asked by IsInf"),
    pytest.param(MODERATE, {"zero": 0, "limit": -100, "k": -1e9}, id="asked by Less than -100"),
    pytest.param(GATED, {"k": -1e9}, id="sigmoid"),
    pytest.param(LOGARITHM, {"k": -1e9}, id="exp of a logarithm"),
    pytest.param(CHOSEN, {"k": -np.inf}, id="argmax"),
]


@pytest.mark.parametrize(("nodes", "constants"), MASKS)
def test_mask_constants_reach_fp16_and_give_the_same_when_they_mask(nodes: Nodes, constants: dict[str, Any]) -> None:
    original = graph(nodes, **constants)
    before = serialised(original)
    done = rewrite_mask_constants().rewrite(original)
    huge = [name for name, value in constants.items() if np.abs(np.asarray(value, np.float32)).max() > 3e4]
    assert done.hits == len(huge)
    assert not done.refused
    assert serialised(original) == before
    check(done.model)
    assert weight_range(done.model)[0].status is Status.PASSED
    wanted = run(original, FEED)["y"]
    assert np.isfinite(wanted).all()
    np.testing.assert_array_equal(run(done.model, FEED)["y"], wanted)


NUMBERS = [
    pytest.param([node("Mul", "s k", "x"), ADD[1]], {"k": 1e6}, id="scores scaled by it"),
    pytest.param([*ADD[:1], node("Tanh", "x", "y")], {"m": causal(-1e9)}, id="no softmax behind"),
    pytest.param([*FILL[:1], node("LogSoftmax", "x", "y")], {"k": -1e9}, id="a logarithm is the output"),
    pytest.param([*FILL[:1], node("ReduceMean", "x", "y")], {"k": -1e9}, id="averaged"),
    pytest.param([*FILL[:1], node("Identity", "x", "y")], {"k": -np.inf}, id="the output itself"),
    pytest.param([*FILL[:1], node("Less", "x l", "c"), node("Where", "c s s", "y")], {"k": -1e9, "l": -1e8},
                 id="asked by a limit past fp16"),
    pytest.param([*ADD[:1], node("Mul", "x k", "z"), node("Softmax", "z", "y")], {"m": causal(-1e9), "k": 1e-3},
                 id="scaled to nothing"),
    pytest.param([*ADD[:1], node("Mul", "x k", "z"), node("Softmax", "z", "y")], {"m": causal(-1e9), "k": 8},
                 id="scaled past fp16"),
    pytest.param([*ADD[:1], node("Tanh", "s", "t"), node("Mul", "x t", "z"), node("Softmax", "z", "y")],
                 {"m": causal(-1e9)}, id="multiplied by scores"),
    pytest.param([node("Div", "k s", "x"), ADD[1]], {"k": -1e9}, id="divided by scores"),
    pytest.param([node("Cast", "k", "i", to=TensorProto.INT64), node("Cast", "i", "m", to=TensorProto.FLOAT), *ADD],
                 {"k": -1e9}, id="cast to a whole number"),
    pytest.param(ADD, {"m": np.where(causal(1) > 0, np.nan, -1e9)}, id="with NaN"),
    pytest.param(ADD, {"m": causal(-1e4)}, id="within fp16"),
    pytest.param(ADD, {"m": causal(-32000)}, id="within half of fp16"),
]  # fmt: skip


@pytest.mark.parametrize(("nodes", "constants"), NUMBERS)
def test_mask_constants_are_the_very_model_when_it_is_a_number_or_fits(nodes: Nodes, constants: dict[str, Any]) -> None:
    original = graph(nodes, **constants)
    done = rewrite_mask_constants().rewrite(original)
    assert (done.model is original, done.hits, done.refused) == (True, 0, ())


def test_mask_constants_keep_the_number_when_a_mask_is_used_as_one_too() -> None:
    original = graph([*FILL, node("Mul", "s k", "z")], extra=["z"], k=-1e9)
    done = rewrite_mask_constants().rewrite(original)
    assert done.hits == 1
    check(done.model)
    wanted, got = run(original, FEED), run(done.model, FEED)
    np.testing.assert_array_equal(got["y"], wanted["y"])
    np.testing.assert_array_equal(got["z"], wanted["z"])
    assert "weight 'k': -1e+09" in weight_range(done.model)[0].detail


def test_mask_constants_are_left_when_one_way_of_a_shared_mask_is_an_output() -> None:
    original = graph([node("Where", "causal zero k", "m"), *ADD], extra=["m"], k=-1e9, zero=0)
    assert rewrite_mask_constants().rewrite(original).hits == 0


def test_mask_constants_serve_every_layer_when_two_share_a_mask() -> None:
    layers = [node("Add", "y0 m", "x1"), node("Softmax", "x1", "y", axis=-1)]
    first = [node("Add", "s m", "x0"), node("Softmax", "x0", "y0", axis=-1)]
    original = graph([*first, *layers], m=causal(-65504))
    done = rewrite_mask_constants().rewrite(original)
    assert done.hits == 1
    np.testing.assert_array_equal(run(done.model, FEED)["y"], run(original, FEED)["y"])


@pytest.mark.parametrize("attribute", ["value", "value_float"])
@pytest.mark.parametrize("opset", [12, 13, 19])
def test_mask_constants_are_found_when_they_are_nodes(attribute: str, opset: int) -> None:
    value: Any = constant("v", -1e10) if attribute == "value" else -1e10
    made = helper.make_node("Constant", [], ["k"], "k", **{attribute: value})
    original = graph([made, *FILL], opset=opset)
    done = rewrite_mask_constants().rewrite(original)
    assert done.hits == 1
    check(done.model)
    assert weight_range(done.model)[0].status is Status.PASSED
    np.testing.assert_array_equal(run(done.model, FEED)["y"], run(original, FEED)["y"])


def test_mask_constants_keep_their_type_when_it_is_fp16() -> None:
    nodes = [node("Where", "c s k", "x"), node("Softmax", "x", "y", axis=-1)]
    half = TensorProto.FLOAT16
    constants = [constant("k", -65504, np.float16), constant("c", np.tril(np.ones((1, N, N))), bool)]
    original = model(nodes, [tensor("s", [2, N, N], half)], [tensor("y", [2, N, N], half)], constants)
    done = rewrite_mask_constants().rewrite(original)
    assert done.hits == 1
    check(done.model)
    feed = {"s": FEED["s"].astype(np.float16)}
    np.testing.assert_array_equal(run(done.model, feed)["y"], run(original, feed)["y"])


def test_mask_constants_give_a_uniform_row_when_where_masks_it_wholly() -> None:
    nodes = [node("Where", "none s k", "x"), ADD[1]]
    original = graph(nodes, none=np.zeros((1, N, 1), bool), k=-1e9)
    done = rewrite_mask_constants().rewrite(original)
    assert done.hits == 1
    np.testing.assert_array_equal(run(done.model, FEED)["y"], np.full((2, N, N), np.float32(1) / np.float32(N)))


def test_mask_constants_differ_for_parity_to_judge_when_a_sum_masks_a_row_wholly() -> None:
    original = graph(ADD, m=np.full((1, N, N), -1e9))
    done = rewrite_mask_constants().rewrite(original)
    assert done.hits == 1
    assert snr_db(run(original, FEED)["y"], run(done.model, FEED)["y"]) < 20


NAN_ROWS = [
    *FILL[:1],
    node("Softmax", "x", "p", axis=-1),
    node("IsNaN", "p", "gone"),
    node("Where", "gone zero p", "y"),
]


def test_mask_constants_are_rewritten_when_isnan_reads_a_softmax_that_a_finite_mask_makes_no_nan_of() -> None:
    original = graph(NAN_ROWS, zero=0, k=-1e9)
    done = rewrite_mask_constants().rewrite(original)
    assert (done.hits, done.refused) == (1, ())
    np.testing.assert_array_equal(run(done.model, FEED)["y"], run(original, FEED)["y"])


def test_mask_constants_are_rewritten_when_isnan_reads_what_is_no_softmax() -> None:
    original = graph([*NAN_ROWS[:2], node("IsNaN", "s", "gone"), NAN_ROWS[-1]], zero=0, k=-np.inf)
    done = rewrite_mask_constants().rewrite(original)
    assert (done.hits, done.refused) == (1, ())
    np.testing.assert_array_equal(run(done.model, FEED)["y"], run(original, FEED)["y"])
