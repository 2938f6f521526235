from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto

from surgery.rewrite_reverse_sequence import rewrite_reverse_sequence
from tests.surgery.one_operator import equal_after, left_alone, operator, operators

PASS = rewrite_reverse_sequence()


def reverse(*lengths: int, shape: tuple[int, ...] = (9, 1, 3), **options: Any) -> ir.Model:
    return operator("ReverseSequence", "x n", shape=shape, constants={"n": np.array(lengths, np.int64)}, **options)


@pytest.mark.parametrize("length", [1, 2, 8])
@pytest.mark.parametrize("given", [{}, {"batch_axis": 1, "time_axis": 0}])
@pytest.mark.parametrize("opset", [11, 17])
def test_front_is_reversed_by_gather(length: int, given: dict[str, Any], opset: int) -> None:
    assert operators(equal_after(PASS, reverse(length, opset=opset, **given))) == ["Gather"]


@pytest.mark.parametrize("shape", [(9, 1), (9, 1, 2, 3)])
@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, TensorProto.INT64])
def test_front_is_reversed_whatever_the_rank_and_type(shape: tuple[int, ...], dtype: int) -> None:
    equal_after(PASS, reverse(4, shape=shape, dtype=dtype))


@pytest.mark.parametrize(
    "original",
    [
        reverse(9),
        reverse(2, 5, shape=(9, 2, 3)),
        reverse(4, shape=(1, 9, 3), batch_axis=0, time_axis=1),
        operator("Softmax"),
    ],
)
def test_graph_is_left_alone_when_the_toolkit_is_right_on_it(original: ir.Model) -> None:
    left_alone(PASS, original)
