"""Reductions in the form that an opset wants."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from surgery.reductions import reduced
from surgery.splice import Draft, splice
from tests.gates.small_graphs import model, tensor
from tests.onnx_runs import run
from tests.surgery.graphs import check


@pytest.mark.parametrize("opset", [13, 17, 18, 19])
@pytest.mark.parametrize(("op", "numpy_op"), [("ReduceMean", np.mean), ("ReduceMax", np.max)])
def test_reduced_is_numpys_with_its_axes_kept_in_every_opset(opset: int, op: str, numpy_op: np.ufunc) -> None:
    made = model(
        [helper.make_node("Relu", ["x"], ["y"], "n")],
        [tensor("x", [2, 3, 4])],
        [tensor("y", ["a", "b", "c"])],
        opset=opset,
    )
    node, draft = made.graph[0], Draft()
    splice(node, draft.nodes, [reduced(draft, op, node.inputs[0], (0, 2), opset)], "test")
    check(made)
    x = np.random.default_rng(3).standard_normal((2, 3, 4)).astype(np.float32)
    np.testing.assert_allclose(run(made, {"x": x})["y"], numpy_op(x, axis=(0, 2), keepdims=True), rtol=1e-6)
