"""The arithmetic of quantised values, against numbers worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from surgery.quantised import carries, dequantised, saturation


def tensor(values: Any, dtype: Any) -> ir.TensorProtocol:
    return ir.tensor(np.asarray(values, dtype))


def test_dequantised_takes_one_scale_for_all() -> None:
    got = dequantised(tensor([[0, 128], [255, 3]], np.uint8), tensor(0.5, np.float32), tensor(128, np.uint8))
    np.testing.assert_array_equal(got, np.array([[-64, 0], [63.5, -62.5]], np.float32))
    assert got.dtype == np.float32


@pytest.mark.parametrize(
    ("axis", "wanted"), [(0, [[1, 2], [30, 40]]), (1, [[1, 20], [3, 40]]), (-1, [[1, 20], [3, 40]])]
)
def test_dequantised_takes_a_scale_for_each_index_of_an_axis(axis: int, wanted: list[list[int]]) -> None:
    got = dequantised(tensor([[1, 2], [3, 4]], np.int8), tensor([1, 10], np.float32), None, axis)
    np.testing.assert_array_equal(got, wanted)


def test_dequantised_takes_a_scale_for_each_block_of_an_axis() -> None:
    weight, scale = tensor([[1, 2, 3, 4, 5]], np.int8), tensor([[1, 10, 100]], np.float32)
    got = dequantised(weight, scale, tensor([[1, 1, 1]], np.int8), axis=1, block=2)
    np.testing.assert_array_equal(got, [[0, 1, 20, 30, 400]])


@pytest.mark.parametrize(
    ("zero_point", "dtype", "wanted"),
    [(0, ir.DataType.INT8, (-64.0, 63.5)), (128, ir.DataType.UINT8, (-64.0, 63.5)), (0, ir.DataType.UINT4, (0.0, 7.5))],
)
def test_saturation_is_the_range_of_the_type(zero_point: int, dtype: ir.DataType, wanted: tuple[float, float]) -> None:
    assert saturation(0.5, zero_point, dtype) == wanted


@pytest.mark.parametrize(
    ("node", "wanted"),
    [
        (ir.node("Transpose", []), True),
        (ir.node("MaxPool", []), True),
        (ir.node("Resize", [], {"mode": "linear"}), True),
        (ir.node("Resize", [], {"mode": "cubic"}), False),
        (ir.node("AveragePool", []), False),
        (ir.node("Transpose", [], domain="com.microsoft"), False),
        (None, False),
    ],
)
def test_carries_what_moves_values_or_lies_between_them(node: ir.Node | None, wanted: bool) -> None:
    assert carries(node) is wanted
