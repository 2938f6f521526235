from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto

from contracts.contract import Noise
from surgery.declaration import AddedInput, Rewritten
from surgery.rewrite_noise_as_inputs import rewrite_noise_as_inputs
from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import Array, run, snr_db
from tests.surgery.interfaces import applied, left_alone, names, node, noise, operators

SHAPE = [1, 4, 9]
X, Y = tensor("x", SHAPE), tensor("y", SHAPE)
DOUBLE_DB = 140.0
"""Of one rounding to float32: 24 bits of 6.02 dB (144), less the rounding of a sum."""


def drawing(op: str, *, opset: int = 17, dtype: int | None = None, **attributes: Any) -> ir.Model:
    """y = x + n, where n is what the operator draws with a seed."""
    if dtype is not None:
        attributes["dtype"] = dtype
    draw = node(op, "x" if op.endswith("Like") else "", "n", seed=5.0, **attributes)
    cast = node("Cast", "n", "m", to=TensorProto.FLOAT)
    return model([draw, cast, node("Add", "x m", "y")], [X], [Y], opset=opset)


def draw_of(original: ir.Model, done: Rewritten, feed: dict[str, Array]) -> dict[str, Array]:
    """What the original draws, by the name of the new input, as float32; its seeds make it draw the same again."""
    exposed = original.clone()
    made = {value.name: value for each in exposed.graph for value in each.outputs}
    have = set(names(exposed.graph.outputs))
    exposed.graph.outputs.extend(made[a.drawn_as] for a in done.interface.added if a.drawn_as not in have)
    drawn = run(exposed, feed)
    return {added.name: drawn[added.drawn_as].astype(np.float32) for added in done.interface.added}


@pytest.mark.parametrize("opset", [7, 11, 17, 19])
@pytest.mark.parametrize(
    ("op", "attributes", "wanted"),
    [
        ("RandomNormal", {"shape": SHAPE}, ("normal", 0.0, 1.0)),
        ("RandomNormal", {"shape": [9], "mean": 0.5, "scale": 2.0}, ("normal", 0.5, 2.0)),
        ("RandomNormalLike", {}, ("normal", 0.0, 1.0)),
        ("RandomNormalLike", {"mean": -1.0, "scale": 0.25}, ("normal", -1.0, 0.25)),
        ("RandomUniform", {"shape": [4, 1]}, ("uniform", 0.0, 1.0)),
        ("RandomUniform", {"shape": SHAPE, "low": -0.5, "high": 0.5}, ("uniform", -0.5, 0.5)),
        ("RandomUniformLike", {}, ("uniform", 0.0, 1.0)),
        ("RandomUniformLike", {"low": 2.0, "high": 4.0}, ("uniform", 2.0, 4.0)),
    ],
)
def test_rewrite_noise_as_inputs_computes_the_same_when_it_is_fed_what_was_drawn(
    op: str, attributes: dict[str, Any], wanted: tuple[str, float, float], opset: int
) -> None:
    original = drawing(op, opset=opset, **attributes)
    done = applied(rewrite_noise_as_inputs(), original)
    assert (done.hits, names(done.model.graph.inputs)) == (1, ["x", "n"])
    assert done.interface.added == (AddedInput("n", "n", Noise("n", *wanted)),)
    assert list(done.model.graph.inputs[1].shape or ()) == attributes.get("shape", SHAPE)
    feed = {"x": noise(*SHAPE)}
    after = run(done.model, {**feed, **draw_of(original, done, feed)})
    np.testing.assert_array_equal(after["y"], run(original, feed)["y"])


@pytest.mark.parametrize(("length", "wanted"), [(127, "n" * 127), (128, "n" * 80 + "_rewrite_noise_as_inputs")])
@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, TensorProto.DOUBLE])
def test_rewrite_noise_as_inputs_gives_another_name_when_the_tensors_is_too_long_for_an_input(
    dtype: int, length: int, wanted: str
) -> None:
    original = drawing("RandomNormal", dtype=dtype, shape=SHAPE)
    original.graph[0].outputs[0].name = "n" * length
    done = applied(rewrite_noise_as_inputs(), original)
    if dtype == TensorProto.DOUBLE:  # which has another name anyway
        wanted = "n" * 80 + "_rewrite_noise_as_inputs"
    (added,) = done.interface.added
    assert (added.name, added.drawn_as, added.noise.input) == (wanted, "n" * length, wanted)
    feed = {"x": noise(*SHAPE)}
    after = run(done.model, {**feed, **draw_of(original, done, feed)})
    assert snr_db(run(original, feed)["y"], after["y"]) >= DOUBLE_DB


def _shape(op: str) -> dict[str, Any]:
    return {} if op.endswith("Like") else {"shape": SHAPE}


@pytest.mark.parametrize("op", ["RandomNormalLike", "RandomUniform"])
@pytest.mark.parametrize(
    ("dtype", "least_db"),
    [(TensorProto.FLOAT, np.inf), (TensorProto.DOUBLE, DOUBLE_DB)],
)
def test_rewrite_noise_as_inputs_takes_float32_and_casts_when_noise_is_of_another_type(
    op: str, dtype: int, least_db: float
) -> None:
    original = drawing(op, dtype=dtype, **_shape(op))
    done = applied(rewrite_noise_as_inputs(), original)
    name = "n" if dtype == TensorProto.FLOAT else "n_rewrite_noise_as_inputs"
    assert done.interface.added[0].name == name
    assert done.interface.added[0].drawn_as == "n"
    assert [value.dtype for value in done.model.graph.inputs] == [ir.DataType.FLOAT] * 2
    feed = {"x": noise(*SHAPE)}
    after = run(done.model, {**feed, **draw_of(original, done, feed)})
    assert snr_db(run(original, feed)["y"], after["y"]) >= least_db


@pytest.mark.parametrize("op", ["RandomNormalLike", "RandomUniform"])
def test_rewrite_noise_as_inputs_rounds_what_it_is_fed_when_noise_is_half(op: str) -> None:
    original = drawing(op, dtype=TensorProto.FLOAT16, **_shape(op))  # onnxruntime has no kernel for it
    done = applied(rewrite_noise_as_inputs(), original)
    assert [value.dtype for value in done.model.graph.inputs] == [ir.DataType.FLOAT] * 2
    x, drawn = noise(*SHAPE), noise(*SHAPE, seed=2)
    after = run(done.model, {"x": x, "n_rewrite_noise_as_inputs": drawn})
    np.testing.assert_array_equal(after["y"], x + drawn.astype(np.float16).astype(np.float32))


def test_rewrite_noise_as_inputs_is_like_a_double_when_no_dtype_is_stated() -> None:
    x, y = (tensor(name, SHAPE, TensorProto.DOUBLE) for name in "xy")
    original = model([node("RandomNormalLike", "x", "n", seed=5.0), node("Add", "x n", "y")], [x], [y])
    done = applied(rewrite_noise_as_inputs(), original)
    assert operators(done.model) == ["Cast", "Add"]
    feed = {"x": noise(*SHAPE).astype(np.float64)}
    after = run(done.model, {**feed, **draw_of(original, done, feed)})
    assert snr_db(run(original, feed)["y"], after["y"]) >= DOUBLE_DB


def test_rewrite_noise_as_inputs_infers_sizes_behind_other_nodes() -> None:
    nodes = [
        node("Transpose", "x", "t", perm=[0, 2, 1]),
        node("RandomNormalLike", "t", "n", seed=5.0),
        node("Add", "t n", "y"),
    ]
    original = model(nodes, [X], [tensor("y", [1, 9, 4])])
    done = applied(rewrite_noise_as_inputs(), original)
    assert list(done.model.graph.inputs[1].shape or ()) == [1, 9, 4]


def test_rewrite_noise_as_inputs_makes_one_input_of_each_node_and_one_of_a_draw_that_is_read_twice() -> None:
    nodes = [
        node("RandomNormalLike", "x", "n", seed=1.0),
        node("RandomUniform", "", "u", shape=[9], seed=2.0),
        node("Mul", "n u", "a"),
        node("Add", "a n", "b"),
        node("Add", "b x", "y"),
    ]
    original = model(nodes, [X], [Y])
    done = applied(rewrite_noise_as_inputs(), original)
    assert (done.hits, names(done.model.graph.inputs)) == (2, ["x", "n", "u"])
    feed = {"x": noise(*SHAPE)}
    after = run(done.model, {**feed, **draw_of(original, done, feed)})
    np.testing.assert_array_equal(after["y"], run(original, feed)["y"])


@pytest.mark.parametrize(("dtype", "least_db"), [(TensorProto.FLOAT, np.inf), (TensorProto.DOUBLE, DOUBLE_DB)])
def test_rewrite_noise_as_inputs_keeps_the_output_when_a_draw_is_one(dtype: int, least_db: float) -> None:
    nodes = [node("RandomNormalLike", "x", "n", seed=1.0, dtype=dtype), node("Cast", "n", "m", to=TensorProto.FLOAT)]
    outputs = [Y, tensor("n", SHAPE, dtype)]
    original = model([*nodes, node("Add", "x m", "y")], [X], outputs)
    done = applied(rewrite_noise_as_inputs(), original)
    assert names(done.model.graph.outputs) == ["y", "n"]
    assert done.interface.added[0].name == "n_rewrite_noise_as_inputs"
    feed = {"x": noise(*SHAPE)}
    before, after = run(original, feed), run(done.model, {**feed, **draw_of(original, done, feed)})
    assert {name: array.dtype for name, array in before.items()} == {name: a.dtype for name, a in after.items()}
    assert min(snr_db(array, after[name]) for name, array in before.items()) >= least_db


@pytest.mark.parametrize("op", ["Tanh", "Dropout"])
def test_rewrite_noise_as_inputs_leaves_a_graph_alone_when_it_draws_nothing(op: str) -> None:
    left_alone(rewrite_noise_as_inputs(), model([node(op, "x", "y")], [X], [Y]))


def test_rewrite_noise_as_inputs_leaves_another_domains_operator_alone() -> None:
    draw = node("RandomNormalLike", "x", "y", domain="com.example")
    left_alone(rewrite_noise_as_inputs(), model([draw], [X], [Y]))


def test_rewrite_noise_as_inputs_gives_a_rank_0_draw_a_rank_0_input() -> None:
    nodes = [node("RandomNormalLike", "s", "n", seed=1.0), node("Add", "x n", "y")]
    done = applied(rewrite_noise_as_inputs(), model(nodes, [X], [Y], [constant("s", 1.0)]))
    assert list(done.model.graph.inputs[1].shape or ()) == []
