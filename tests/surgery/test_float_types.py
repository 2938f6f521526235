"""Graphs of half floats and doubles in float32, against numpy."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto

from surgery.declaration import Recast
from surgery.float_types import IN_RANGE, KNOWN_SHAPE, make_float32
from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import run
from tests.surgery.graphs import check, serialised
from tests.surgery.interfaces import node

HALF, DOUBLE = ir.DataType.FLOAT16, ir.DataType.DOUBLE


@pytest.mark.parametrize("kind", [HALF, DOUBLE])
def test_make_float32_computes_in_float32_when_all_is_of_another_float(kind: ir.DataType) -> None:
    nodes = [node("Mul", "x w", "m"), node("Tanh", "m", "y")]
    weights = [constant("w", [0.5, 2, -1], kind.numpy())]
    original = model(nodes, [tensor("x", [1, 3], int(kind))], [tensor("y", [1, 3], int(kind))], weights)
    before = serialised(original)
    done = make_float32(original, {kind}, "test")
    assert serialised(original) == before
    check(done.model)
    assert (done.interface.inputs, done.interface.outputs) == (
        (Recast("x", (1, 3), "float32"),),
        (Recast("y", (1, 3), "float32"),),
    )
    assert done.hits == 4  # x, w, m and y
    x = np.array([[0.25, 1, 3]], np.float32)
    np.testing.assert_allclose(run(done.model, {"x": x})["y"], np.tanh(x * [0.5, 2, -1]), rtol=1e-6)


def test_make_float32_takes_the_casts_out_when_they_are_left_without_effect() -> None:
    nodes = [
        node("Cast", "x", "h", to=TensorProto.FLOAT16),
        node("Neg", "h", "n"),
        node("Cast", "n", "y", to=TensorProto.FLOAT),
    ]
    done = make_float32(model(nodes, [tensor("x", [1, 3])], [tensor("y", [1, 3])]), {HALF}, "test")
    check(done.model)
    assert [one.op_type for one in done.model.graph] == ["Neg", "Identity"]
    assert (done.interface.inputs, done.interface.outputs) == ((), ())


def test_make_float32_rounds_once_at_the_end_when_a_constant_is_worked_out_in_double() -> None:
    # (1 + 1e-10) - 1 is 0 in float32.
    nodes = [
        node("Add", "one tiny", "a"),
        node("Sub", "a one", "d"),
        node("Cast", "x", "w", to=TensorProto.DOUBLE),
        node("Mul", "w d", "m"),
        node("Cast", "m", "y", to=TensorProto.FLOAT),
    ]
    weights = [constant("one", [1.0], np.float64), constant("tiny", [1e-10], np.float64)]
    done = make_float32(model(nodes, [tensor("x", [3])], [tensor("y", [3])], weights), {DOUBLE}, "test")
    check(done.model)
    x = np.array([1, 2, 3], np.float32)
    np.testing.assert_allclose(run(done.model, {"x": x})["y"], x * 1e-10, rtol=1e-6)


def test_make_float32_gives_back_the_very_model_when_nothing_is_of_the_types() -> None:
    original = model([node("Neg", "x", "y")], [tensor("x", [3])], [tensor("y", [3])])
    done = make_float32(original, {HALF, DOUBLE}, "test")
    assert (done.model, done.hits, done.refused) == (original, 0, ())


def test_make_float32_refuses_when_a_weight_is_past_float32() -> None:
    kind = int(DOUBLE)
    weights = [constant("w", [1e300, np.inf], np.float64)]
    original = model([node("Mul", "x w", "y")], [tensor("x", [2], kind)], [tensor("y", [2], kind)], weights)
    done = make_float32(original, {DOUBLE}, "test")
    assert [(place.node, place.precondition, place.got) for place in done.refused] == [
        ("weight 'w'", IN_RANGE, "it holds 1e+300")
    ]
    assert (done.model, done.hits) == (original, 0)


def test_make_float32_refuses_when_an_input_has_no_known_sizes() -> None:
    kind = int(HALF)
    original = model([node("Neg", "x", "y")], [tensor("x", ["n"], kind)], [tensor("y", [3], kind)])
    done = make_float32(original, {HALF}, "test")
    assert [(place.node, place.precondition, place.got) for place in done.refused] == [
        ("input 'x'", KNOWN_SHAPE, "[n]"),
    ]
