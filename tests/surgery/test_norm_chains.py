"""What is found of a normalisation that is spelled out."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from surgery.inferred import infer_types
from surgery.norm_chains import affine_behind, find_chain, is_over_steps, mean_of, size_along
from tests.surgery.norm_graphs import EPSILON, Steps, affine, normalise

SHAPE = (2, 6, 9)


def inferred(steps: Steps, shape: tuple[int | str, ...] = SHAPE, output: tuple[int | str, ...] = SHAPE) -> ir.Graph:
    made = steps.model({"x": shape}, output)
    infer_types(made)
    return made.graph


@pytest.mark.parametrize(("axes", "found", "over"), [((2,), (2,), True), ((-2,), (1,), False), ((2, 1), (1, 2), False)])
def test_chain_is_found_with_its_axes_from_the_front(axes: tuple[int, ...], found: tuple[int, ...], over: bool) -> None:
    steps = Steps()
    normalise(steps, "x", axes)
    graph = inferred(steps)
    chain = find_chain(graph[-1])
    assert chain is not None
    assert (chain.axes, chain.rank, is_over_steps(chain)) == (found, 3, over)
    assert chain.epsilon == pytest.approx(EPSILON)
    assert (chain.given.name, chain.nodes) == ("x", frozenset(graph))


@pytest.mark.parametrize("place", range(6))
def test_chain_ends_at_its_last_node_alone(place: int) -> None:
    steps = Steps()
    normalise(steps, "x", [2])
    assert find_chain(inferred(steps)[place]) is None


@pytest.mark.parametrize(("count", "op", "is_mean"), [(9.0, "Div", True), (8.0, "Div", False), (1 / 9, "Mul", True)])
def test_sum_over_its_count_is_a_mean(count: float, op: str, is_mean: bool) -> None:
    steps = Steps()
    steps.add(op, steps.reduced("ReduceSum", "x", [2]), steps.constant(count))
    mean = mean_of(inferred(steps, output=(2, 6, 1))[-1].outputs[0])
    assert (mean is not None) is is_mean
    assert mean is None or mean.axes == (2,)


def test_count_over_a_sum_is_no_mean() -> None:
    steps = Steps()
    steps.add("Div", steps.constant(9.0), steps.reduced("ReduceSum", "x", [2]))
    assert mean_of(inferred(steps, output=(2, 6, 1))[-1].outputs[0]) is None


def test_sum_of_unknown_count_is_no_mean() -> None:
    steps = Steps()
    steps.add("Div", steps.reduced("ReduceSum", "x", [2]), steps.constant(9.0))
    assert mean_of(inferred(steps, (2, 6, "t"), (2, 6, 1))[-1].outputs[0]) is None


@pytest.mark.parametrize(
    ("sizes", "axis", "nodes"),
    [((6, 1), 1, 2), ((1, 6, 1), 1, 2), ((), 1, 2), ((9,), 2, 2), ((9,), 1, 0), ((6, 9), 1, 0), ((1, 1, 6, 1), 1, 0)],
)
def test_affine_is_what_changes_along_the_axis_alone(sizes: tuple[int, ...], axis: int, nodes: int) -> None:
    steps = Steps()
    affine(steps, steps.add("Tanh", "x"), sizes)
    graph = inferred(steps, output=SHAPE if len(sizes) < 4 else (1, *SHAPE))
    found = affine_behind(graph[0], axis, 3, SHAPE[axis])
    assert found.nodes == tuple(graph)[1 : 1 + nodes]
    if nodes:
        assert found.scale is not None
        scale = (1 + 0.3 * np.random.default_rng(5).standard_normal(sizes)).astype(np.float32)
        np.testing.assert_array_equal(found.scale, np.broadcast_to(scale.reshape(-1), SHAPE[axis]))


def test_size_is_known_or_none() -> None:
    steps = Steps()
    steps.add("Tanh", "x")
    (x,) = inferred(steps, (2, "c", 9), (2, "c", 9)).inputs
    assert [size_along(x, axis) for axis in range(3)] == [2, None, 9]
