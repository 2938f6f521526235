from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto

from surgery.decompose_negative_pads import decompose_negative_pads
from tests.surgery.one_operator import equal_after, left_alone, only, operator, operators, weight

PASS = decompose_negative_pads()


def padded(pads: list[int], value: float | None = None, **options: Any) -> ir.Model:
    constants: dict[str, Any] = {"p": np.array(pads, np.int64)}
    if value is not None:
        constants["v"] = np.array(value, np.float32)
    return operator("Pad", " ".join(["x", *constants]), constants=constants, **options)


@pytest.mark.parametrize("opset", [11, 13, 17, 18, 19])
@pytest.mark.parametrize(
    "pads", [[0, 0, -2, 0, 0, -3], [0, -1, 0, 0, 0, 0], [0, 0, 0, 0, -2, -11], [0, -1, -2, 0, -2, 0]]
)
def test_slice_stands_for_a_pad_that_only_cuts(pads: list[int], opset: int) -> None:
    assert operators(equal_after(PASS, padded(pads, opset=opset))) == ["Slice"]


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
@pytest.mark.parametrize("pads", [[0, 0, 4, 0, 0, -3], [0, 0, -5, 0, 0, 5], [0, 1, -2, 0, -2, 3], [0, -1, 4, 0, 0, 4]])
@pytest.mark.parametrize("shape", [(1, 4, 12), ("n", 4, "t")])
def test_pad_of_the_rest_follows_when_another_side_grows(pads: list[int], mode: str, shape: Any) -> None:
    feed = {"x": np.random.default_rng(5).standard_normal((1, 4, 12)).astype(np.float32)}
    value = 1.5 if mode == "constant" else None
    made = equal_after(PASS, padded(pads, value, mode=mode, opset=19, shape=shape), feed=feed)
    assert operators(made) == ["Slice", "Pad"]
    assert weight(only(made, "Pad").inputs[1]).min() == 0


@pytest.mark.parametrize(
    "original",
    [
        padded([0, 0, 2, 0, 0, 3]),
        padded([0, 0, 0, 0, 0, 0]),
        operator("Pad", "x p - a", constants={"p": np.array([-1, 2]), "a": np.array([2])}, opset=18),
        operator("Neg"),
    ],
)
def test_graph_is_left_alone_when_no_pad_cuts(original: ir.Model) -> None:
    left_alone(PASS, original)


def test_pads_that_are_computed_stay() -> None:
    left_alone(PASS, operator("Pad", "x p", shape=(6,), dtype=TensorProto.INT64, fed={"p": [2]}))
