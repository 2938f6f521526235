from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto

from surgery.normalise_mean_axes import normalise_mean_axes
from tests.surgery.one_operator import equal_after, left_alone, only, operator, operators

PASS = normalise_mean_axes()


def mean(axes: list[int], rank: int = 2, op: str = "ReduceMean", **options: Any) -> ir.Model:
    """A reduction over `axes`, without them in the output of so many axes unless `keepdims` says so."""
    made = {"y": (rank, TensorProto.FLOAT)}
    given: dict[str, Any] = {"shape": (2, 3, 4, 5), "keepdims": 0, "made": made, **options}
    if given.get("opset", 17) < 18:
        return operator(op, axes=axes, **given)
    return operator(op, "x a", constants={"a": np.array(axes, np.int64)}, **given)


@pytest.mark.parametrize("axes", [[2, 3], [-2, -1], [3, 2], [-1, 2]])
@pytest.mark.parametrize("opset", [11, 17, 18, 21])
@pytest.mark.parametrize("batch", [1, 2])
def test_axes_are_kept_and_dropped_behind(axes: list[int], opset: int, batch: int) -> None:
    made = equal_after(PASS, mean(axes, opset=opset, shape=(batch, 3, 4, 5)))
    assert operators(made) == ["ReduceMean", "Reshape"]
    assert only(made, "ReduceMean").attributes["keepdims"].as_int() == 1


@pytest.mark.parametrize("axes", [None, [0, 1, 2], [-1, 1, 0]])
@pytest.mark.parametrize("opset", [11, 17, 18, 21])
def test_first_axis_is_left_out_when_the_mean_is_over_every_axis(axes: list[int] | None, opset: int) -> None:
    given = (
        operator("ReduceMean", opset=opset) if axes is None else mean(axes, 3, shape=(1, 4, 6), keepdims=1, opset=opset)
    )
    assert operators(equal_after(PASS, given)) == ["ReduceMean"]


@pytest.mark.parametrize(
    "original",
    [
        mean([2, 3], 4, keepdims=1),
        mean([1, 2]),
        mean([0, 1, 2], 3, shape=(2, 4, 6), keepdims=1),
        mean([0], 1, shape=(1,), keepdims=1),
        mean([1, 2], 3, shape=(1, 4, 6), keepdims=1),
        mean([3], 3),
        mean([1, 2, 3], 1),
        mean([1, 2], 1, shape=(2, 3, 4)),
        mean([2, 3], op="ReduceMax"),
        mean([2, 3], shape=("n", 3, 4, 5)),
        operator("ReduceMean", made={"y": (0, TensorProto.FLOAT)}, shape=(1, 2, 3, 4), keepdims=0),
        operator(
            "ReduceMean", "x a", fed={"a": [2]}, shape=(2, 3, 4, 5), dtype=TensorProto.INT64, keepdims=0, opset=18
        ),
    ],
)
def test_graph_is_left_alone_when_the_toolkit_is_right_on_it(original: ir.Model) -> None:
    left_alone(PASS, original)
