from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from surgery.normalise_layer_norm import normalise_layer_norm
from tests.onnx_runs import Array
from tests.surgery.one_operator import equal_after, left_alone, only, operator, operators, weight

PASS = normalise_layer_norm()


def noise(*shape: int, seed: int = 5) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def layer_norm(
    shape: tuple[int, ...] = (1, 4, 12), axis: int | None = None, bias: bool = True, **options: Any
) -> ir.Model:
    """A LayerNormalization of x; without the attribute where `axis` is None."""
    normalised = shape[-1 if axis is None else axis :]
    weights = {"g": noise(*normalised, seed=1), **({"b": noise(*normalised, seed=2)} if bias else {})}
    attributes: dict[str, Any] = {} if axis is None else {"axis": axis}
    return operator(
        "LayerNormalization", " ".join(["x", *weights]), shape=shape, constants=weights, **attributes, **options
    )


@pytest.mark.parametrize("axis", [None, -1, 2, 1, -2, 0])
@pytest.mark.parametrize("epsilon", [None, 1e-5, 0.1])
@pytest.mark.parametrize("opset", [17, 19])
def test_axis_and_epsilon_are_written_out(axis: int | None, epsilon: float | None, opset: int) -> None:
    given: dict[str, Any] = {} if epsilon is None else {"epsilon": epsilon}
    original = layer_norm(axis=axis, opset=opset, **given)
    if axis is not None and epsilon is not None:
        left_alone(PASS, original)
        return
    node = only(equal_after(PASS, original), "LayerNormalization")
    assert node.attributes["axis"].as_int() == (-1 if axis is None else axis)
    assert math.isclose(node.attributes["epsilon"].as_float(), 1e-5 if epsilon is None else epsilon, rel_tol=1e-6)


@pytest.mark.parametrize("shape", [(12,), (3, 12), (1, 2, 3, 12), (1, 2, 3, 4, 12)])
@pytest.mark.parametrize("bias", [True, False])
def test_defaults_are_written_out_whatever_the_rank(shape: tuple[int, ...], bias: bool) -> None:
    assert operators(equal_after(PASS, layer_norm(shape, bias=bias))) == ["LayerNormalization"]


@pytest.mark.parametrize("axis", [1, -3, 0, -4])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("stash", [{}, {"stash_type": 1, "epsilon": 0.01}])
def test_input_is_flattened_when_the_toolkit_dies_of_it(axis: int, bias: bool, stash: dict[str, Any]) -> None:
    original = layer_norm((1, 3, 4, 5), axis, bias, **stash)
    made = equal_after(PASS, original)
    assert operators(made) == ["Reshape", "LayerNormalization", "Reshape"]
    node = only(made, "LayerNormalization")
    assert node.attributes["axis"].as_int() == -1
    assert [weight(value).shape for value in node.inputs[1:]] == [(60,)] * (1 + bias)
    assert ("stash_type" in node.attributes) == bool(stash)
    assert all("normalise_layer_norm" in str(made_node.name) for made_node in made.graph)


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((1, 3, 4, 5), 2), ((2, 3, 4, 5), 1), ((2, 3, 4, 5), 0), ((1, 2, 3, 4, 5), 1), ((3, 4, 5), 0), ((1, 4, 5), 1)],
)
def test_graph_is_left_alone_when_the_toolkit_takes_the_axes(shape: tuple[int, ...], axis: int) -> None:
    left_alone(PASS, layer_norm(shape, axis, epsilon=1e-5))


def test_graph_is_left_alone_when_the_weights_are_inputs() -> None:
    original = operator("LayerNormalization", "x g", shape=(1, 3, 4, 5), fed={"g": (3, 4, 5)}, axis=1, epsilon=1e-5)
    left_alone(PASS, original)


def test_graph_is_left_alone_when_the_operator_is_another() -> None:
    left_alone(PASS, operator("Relu"))
    weights = {"g": noise(4), "b": noise(4, seed=2)}
    left_alone(PASS, operator("InstanceNormalization", "x g b", constants=weights))


def test_other_outputs_stay_when_they_are_read() -> None:
    original = operator("LayerNormalization", "x g", "y mean inverse", constants={"g": noise(12)}, shape=(1, 4, 12))
    equal_after(PASS, original)
