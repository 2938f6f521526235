"""An affine step as a depthwise convolution."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper

from surgery.depthwise import depthwise
from surgery.graph_builder import Builder, take_place
from tests.gates.small_graphs import model, tensor
from tests.onnx_runs import run
from tests.surgery.graphs import check


@pytest.mark.parametrize("sizes", [(1, 3, 5), (2, 3, 4, 5)])
@pytest.mark.parametrize(("scale", "shift"), [(2.0, None), (-0.5, 0.25), ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0])])
def test_it_is_the_affine_step(
    sizes: tuple[int, ...], scale: float | list[float], shift: float | list[float] | None
) -> None:
    made: ir.Model = model(
        [helper.make_node("Identity", ["x"], ["y"], "step")], [tensor("x", sizes)], [tensor("y", sizes)]
    )
    node = made.graph[0]
    given = node.inputs[0]
    assert given is not None
    take_place(node, depthwise(Builder(made.graph, node, "pass"), given, scale, shift, "affine"))
    check(made)
    x = np.random.default_rng(0).standard_normal(sizes).astype(np.float32)
    column = [1, 3, *[1] * (len(sizes) - 2)]
    wanted = x * np.broadcast_to(scale, 3).reshape(column)
    if shift is not None:
        wanted = wanted + np.broadcast_to(shift, 3).reshape(column)
    np.testing.assert_allclose(run(made, {"x": x})["y"], wanted, rtol=1e-6)
    assert made.graph[0].op_type == "Conv"
    assert made.graph[0].attributes.get_int("group") == 3
