"""Compositions of reductions, poolings and normalisations, against numpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from surgery.missing_reductions import MVN_EPSILON, REDUCTIONS
from surgery.splice import Draft, splice
from tests.onnx_runs import Array, run
from tests.surgery.graphs import check
from tests.surgery.one_operator import operator

SHAPE = (2, 3, 8)
X = (np.random.default_rng(3).standard_normal(SHAPE) * 2).astype(np.float32)


def composed(made: ir.Model, opset: int = 17) -> ir.Model | None:
    """The one node of `made`, replaced by its composition; None where it has none."""
    node = made.graph[0]
    draft = Draft()
    value = REDUCTIONS[node.op_type](node, draft, opset)
    if value is None:
        return None
    splice(node, draft.nodes, [value], "test")
    check(made)
    assert node.op_type not in [one.op_type for one in made.graph]
    return made


def l1(x: Array, **axes: Any) -> Array:
    return np.asarray(np.abs(x).sum(**axes))


def sum_square(x: Array, **axes: Any) -> Array:
    return np.asarray((x**2).sum(**axes))


def log_sum(x: Array, **axes: Any) -> Array:
    return np.asarray(np.log(x.sum(**axes)))


def log_sum_exp(x: Array, **axes: Any) -> Array:
    return np.asarray(np.log(np.exp(x).sum(**axes)))


@pytest.mark.parametrize(
    ("op", "numpy"),
    [("ReduceL1", l1), ("ReduceSumSquare", sum_square), ("ReduceLogSum", log_sum), ("ReduceLogSumExp", log_sum_exp)],
)
@pytest.mark.parametrize("axes", [(1,), (0, -1), None])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("opset", [17, 18])
def test_reduction_is_numpys_when_it_is_composed(
    op: str, numpy: Callable[..., Array], axes: tuple[int, ...] | None, keepdims: int, opset: int
) -> None:
    reduced = len(SHAPE) if axes is None else len(axes)
    made = {"y": (len(SHAPE) - (0 if keepdims else reduced), 1)}
    if axes is None:
        original = operator(op, shape=SHAPE, made=made, opset=opset, keepdims=keepdims)
    elif opset < 18:
        original = operator(op, shape=SHAPE, made=made, opset=opset, keepdims=keepdims, axes=list(axes))
    else:
        constants = {"axes": np.array(axes)}
        original = operator(op, "x axes", shape=SHAPE, made=made, opset=opset, keepdims=keepdims, constants=constants)
    result = composed(original, opset)
    assert result is not None
    x = np.abs(X) + 1 if op == "ReduceLogSum" else X
    wanted = numpy(x.astype(np.float64), axis=axes, keepdims=bool(keepdims))
    np.testing.assert_allclose(run(result, {"x": x})["y"], wanted, rtol=1e-5)


def test_log_sum_exp_is_finite_when_the_exponentials_overflow() -> None:
    made = composed(operator("ReduceLogSumExp", shape=(1, 2), axes=[1]))
    assert made is not None
    x = np.array([[1000, 1000]], np.float32)
    np.testing.assert_allclose(run(made, {"x": x})["y"], [[1000 + np.log(2)]], rtol=1e-6)


@pytest.mark.parametrize("attributes", [{}, {"p": 1}, {"p": 2}, {"p": 3}])
def test_global_lp_pool_is_numpys_norm(attributes: Mapping[str, Any]) -> None:
    made = composed(operator("GlobalLpPool", shape=SHAPE, **attributes))
    assert made is not None
    wanted = np.linalg.norm(X.astype(np.float64), attributes.get("p", 2), axis=-1, keepdims=True)
    np.testing.assert_allclose(run(made, {"x": X})["y"], wanted, rtol=1e-5)


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize(("stride", "pads"), [(1, (0, 0)), (2, (1, 1)), (3, (2, 0))])
def test_lp_pool_is_numpys_norm_of_each_window_when_padding_counts_as_zeros(
    p: int, stride: int, pads: tuple[int, int]
) -> None:
    made = composed(operator("LpPool", shape=SHAPE, kernel_shape=[3], p=p, strides=[stride], pads=list(pads)))
    assert made is not None
    padded = np.pad(X.astype(np.float64), ((0, 0), (0, 0), pads))
    windows = np.lib.stride_tricks.sliding_window_view(padded, 3, axis=-1)[:, :, ::stride]
    np.testing.assert_allclose(run(made, {"x": X})["y"], np.linalg.norm(windows, p, axis=-1), rtol=1e-5)


@pytest.mark.parametrize("axes", [(0, 2, 3), (1, 3)])
@pytest.mark.parametrize("opset", [17, 18])
def test_mean_variance_normalization_is_numpys(axes: tuple[int, ...], opset: int) -> None:
    attributes: dict[str, Any] = {} if axes == (0, 2, 3) else {"axes": list(axes)}
    made = operator("MeanVarianceNormalization", shape=(2, 3, 4, 5), opset=opset, **attributes)
    result = composed(made, opset)
    assert result is not None
    x = np.random.default_rng(4).standard_normal((2, 3, 4, 5)).astype(np.float32) + 3
    wide = x.astype(np.float64)
    deviation = wide.std(axis=axes, keepdims=True) + MVN_EPSILON
    wanted = (wide - wide.mean(axis=axes, keepdims=True)) / deviation
    np.testing.assert_allclose(run(result, {"x": x})["y"], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "original",
    [
        operator("LpPool", shape=SHAPE, kernel_shape=[3], dilations=[2], opset=18),
        operator("LpPool", shape=SHAPE, kernel_shape=[3], ceil_mode=1, opset=18),
        operator("ReduceL1", shape=SHAPE, noop_with_empty_axes=1, opset=18),
        operator("GroupNormalization", "x s b", shape=(1, 4, "t"), fed={"s": (2,), "b": (2,)}, num_groups=2, opset=18),
    ],
    ids=["dilated", "rounded up", "no axes", "open length"],
)
def test_reduction_is_left_when_its_composition_does_not_hold(original: ir.Model) -> None:
    assert composed(original) is None
