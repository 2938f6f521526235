from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from surgery.decompose_layer_norm_statistics import decompose_layer_norm_statistics
from tests.onnx_runs import Array, run
from tests.surgery.one_operator import equal_after, feed_of, left_alone, only, operator

PASS = decompose_layer_norm_statistics()


def ones(*shape: int) -> Array:
    return np.linspace(0.5, 2, int(np.prod(shape))).astype(np.float32).reshape(shape)


def layer_norm(outputs: str, shape: tuple[int, ...] = (2, 4, 12), axis: int = -1, **options: Any) -> ir.Model:
    constants = {"g": ones(*shape[axis:]), "b": ones(*shape[axis:])}
    return operator("LayerNormalization", "x g b", outputs, shape=shape, constants=constants, axis=axis, **options)


@pytest.mark.parametrize("outputs", ["y mean inverse", "y mean", "y - inverse"])
@pytest.mark.parametrize("axis", [-1, 2, 1, -2, 0])
@pytest.mark.parametrize("opset", [17, 18, 20])
def test_statistics_are_computed_beside(outputs: str, axis: int, opset: int) -> None:
    made = equal_after(PASS, layer_norm(outputs, axis=axis, opset=opset))
    assert len([value for value in only(made, "LayerNormalization").outputs if value.name]) == 1


@pytest.mark.parametrize("given", [{}, {"epsilon": 0.25}, {"stash_type": 1}])
def test_attributes_are_kept(given: dict[str, Any]) -> None:
    equal_after(PASS, layer_norm("y mean inverse", **given))


def test_statistics_are_those_of_numpy() -> None:
    original = layer_norm("y mean inverse", epsilon=0.5)
    feed = feed_of(original)
    got = run(PASS.rewrite(original).model, feed)
    x = feed["x"].astype(np.float64)
    np.testing.assert_allclose(got["mean"], x.mean(-1, keepdims=True), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(got["inverse"], 1 / np.sqrt(x.var(-1, keepdims=True) + 0.5), rtol=1e-5)


def test_bound_holds_when_the_mean_is_of_many_numbers_around_zero() -> None:
    equal_after(PASS, layer_norm("y mean inverse", (1, 64, 1024), 1))


@pytest.mark.parametrize("outputs", ["y", "y - -"])
def test_graph_is_left_alone_when_nothing_reads_them(outputs: str) -> None:
    left_alone(PASS, layer_norm(outputs))


def test_graph_is_left_alone_when_they_have_names_alone() -> None:
    left_alone(PASS, layer_norm("y mean inverse", made={"y": (3, 1)}))
