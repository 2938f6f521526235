from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from surgery.normalise_negative_axes import normalise_negative_axes
from tests.surgery.one_operator import equal_after, left_alone, only, operator, weight

PASS = normalise_negative_axes()


def cumulative(axis: Any, dtype: Any = np.int64, **options: Any) -> ir.Model:
    return operator("CumSum", "x a", constants={"a": np.array(axis, dtype)}, **options)


@pytest.mark.parametrize(("axis", "front"), [(-1, 2), (-2, 1), (-3, 0), ([-1], [2])])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("how", [{}, {"exclusive": 1}, {"reverse": 1}, {"exclusive": 1, "reverse": 1}])
@pytest.mark.parametrize("opset", [11, 17])
def test_axis_is_counted_from_the_front(axis: Any, front: Any, dtype: Any, how: dict[str, Any], opset: int) -> None:
    made = equal_after(PASS, cumulative(axis, dtype, opset=opset, **how))
    written = weight(only(made, "CumSum").inputs[1])
    assert (written.tolist(), written.dtype) == (front, np.dtype(dtype))


def test_rank_is_enough() -> None:
    feed = {"x": np.random.default_rng(2).standard_normal((3, 5)).astype(np.float32)}
    equal_after(PASS, cumulative(-1, shape=("n", "t")), feed=feed)


def gathered(**axis: Any) -> ir.Model:
    indices = np.random.default_rng(4).integers(-4, 4, (1, 4, 12))
    indices = indices if axis != {"axis": -3} else np.zeros_like(indices)
    return operator("GatherElements", "x i", constants={"i": indices}, **axis)


@pytest.mark.parametrize(("axis", "front"), [(-1, 2), (-2, 1), (-3, 0)])
def test_axis_of_gather_elements_is_counted_from_the_front(axis: int, front: int) -> None:
    node = only(equal_after(PASS, gathered(axis=axis)), "GatherElements")
    assert node.attributes["axis"].as_int() == front


@pytest.mark.parametrize(
    "original",
    [
        cumulative(0),
        cumulative(2),
        cumulative(-4),
        operator("Softmax", axis=-1),
        gathered(axis=1),
        gathered(),
    ],
)
def test_graph_is_left_alone_when_no_axis_is_negative(original: ir.Model) -> None:
    left_alone(PASS, original)
