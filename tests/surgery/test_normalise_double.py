"""Doubles become float32, inputs and outputs too."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from surgery.declaration import Recast
from surgery.normalise_double import LEAST_DB, normalise_double
from tests.gates.small_graphs import constant, proto, tensor
from tests.onnx_runs import run, snr_db
from tests.surgery.float_graphs import GRAPHS, feed_of, followed, scaled, shared_weight, types_of, weight
from tests.surgery.graphs import check, serialised

DOUBLE = TensorProto.DOUBLE


@pytest.mark.parametrize("build", GRAPHS, ids=lambda build: build.__name__)
def test_normalise_double_computes_the_same_when_a_graph_is_of_doubles(
    build: Callable[[int], onnx.ModelProto],
) -> None:
    original = ir.from_proto(build(DOUBLE))
    before = serialised(original)
    done = normalise_double().rewrite(original)
    assert done.hits > 0
    assert serialised(original) == before
    check(done.model)
    feed = feed_of(build(DOUBLE))
    wanted, made = run(original, feed), run(done.model, followed(feed, done.interface))
    for name, array in wanted.items():
        assert made[name].dtype != np.float64
        assert snr_db(array, made[name]) >= LEAST_DB


def test_normalise_double_states_inputs_and_outputs_when_they_change() -> None:
    done = normalise_double().rewrite(ir.from_proto(scaled(DOUBLE)))
    assert done.interface.inputs == (Recast("x", (1, 4), "float32"),)
    assert done.interface.outputs == (Recast("y", (1, 4), "float32"),)
    assert types_of(done.model) == {ir.DataType.FLOAT}


def test_normalise_double_keeps_a_constants_type_when_a_constant_reads_it_too() -> None:
    done = normalise_double().rewrite(ir.from_proto(shared_weight(DOUBLE)))
    assert done.model.graph.initializers["k"].dtype is ir.DataType.DOUBLE
    assert [node.op_type for node in done.model.graph] == ["Cast", "Cast", "Gather", "Mul"]


def test_normalise_double_works_a_size_out_in_doubles_when_it_would_round_otherwise() -> None:
    """floor(100 * 0.29) is 28 in doubles; in float32 it is 29."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"], "sizes"),
        helper.make_node("Cast", ["s"], ["d"], "real", to=DOUBLE),
        helper.make_node("Mul", ["d", "k"], ["m"], "times"),
        helper.make_node("Floor", ["m"], ["f"], "down"),
        helper.make_node("Cast", ["f"], ["n"], "whole", to=TensorProto.INT64),
        helper.make_node("Slice", ["x", "zero", "n"], ["c"], "cut"),
        helper.make_node("Mul", ["c", "k"], ["y"], "scale"),
    ]
    weights = [weight("k", [0.29], DOUBLE), constant("zero", [0], np.int64)]
    made = proto(nodes, [tensor("x", [100], DOUBLE)], [tensor("y", [28], DOUBLE)], weights)
    done = normalise_double().rewrite(ir.from_proto(made))
    feed = feed_of(made)
    wanted = run(made, feed)["y"]
    assert len(wanted) == 28
    assert snr_db(wanted, run(done.model, followed(feed, done.interface))["y"]) >= LEAST_DB


def test_normalise_double_returns_the_model_itself_when_nothing_is_double() -> None:
    made = ir.from_proto(scaled(TensorProto.FLOAT16))
    assert normalise_double().rewrite(made).model is made
