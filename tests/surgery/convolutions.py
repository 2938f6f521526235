"""Graphs of one convolution or pool, and the right values of their rewritten forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx import helper, numpy_helper

from surgery.declaration import EXACT_PARITY_DB, Pass, Rewritten
from tests.gates.small_graphs import tensor
from tests.onnx_runs import run, snr_db
from tests.surgery.graphs import check, serialised


def one_node(
    op: str,
    shape: Sequence[int | str],
    weight: Sequence[int] | None = None,
    *,
    bias: int = 0,
    dtype: Any = np.float32,
    opset: int = 17,
    **attributes: Any,
) -> ir.Model:
    """x [shape] to y through the node `c`, with random weights of shape `weight` and `bias` biases."""
    random = np.random.default_rng(11)
    sizes = {"w": weight, "b": [bias] if bias else None}
    made = {name: random.standard_normal(size).astype(dtype) for name, size in sizes.items() if size is not None}
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    node = helper.make_node(op, ["x", *made], ["y"], "c", **attributes)
    outputs = [helper.make_tensor_value_info("y", kind, [f"d{axis}" for axis in range(len(shape))])]
    graph = helper.make_graph(
        [node],
        "small",
        [tensor("x", shape, kind)],
        outputs,
        [numpy_helper.from_array(values, name) for name, values in made.items()],
    )
    opsets = [helper.make_opsetid("", opset)]
    return ir.from_proto(helper.make_model(graph, opset_imports=opsets, ir_version=8))


def feed_of(model: ir.Model, seed: int = 5) -> dict[str, Any]:
    """White noise for every input that is no weight."""
    random = np.random.default_rng(seed)
    free = [value for value in model.graph.inputs if value.name not in model.graph.initializers]
    return {
        str(value.name): random.standard_normal(value.shape.numpy()).astype(value.dtype.numpy())
        for value in free
        if value.shape is not None and value.dtype is not None
    }


def rewritten(bound: Pass, original: ir.Model, hits: int = 1, least_db: float = EXACT_PARITY_DB) -> ir.Model:
    """What `bound` makes of `original`, proven: hits, no change of the given model, ONNX's checker, equal values."""
    before = serialised(original)
    done: Rewritten = bound.rewrite(original)
    assert (done.hits, done.refused) == (hits, ())
    assert serialised(original) == before
    check(done.model)
    feed = feed_of(original)
    wanted, made = run(original, feed), run(done.model, feed)
    assert list(made) == list(wanted)
    for name, values in wanted.items():
        assert snr_db(values, made[name]) >= least_db
    return done.model


def left_alone(bound: Pass, original: ir.Model) -> None:
    """Asserts that `bound` returns the very model it was given, and refuses nothing."""
    done = bound.rewrite(original)
    assert done.model is original
    assert (done.hits, done.refused) == (0, ())


def the_node(model: ir.Model, name: str = "c") -> ir.Node:
    """The node called `name`."""
    return next(node for node in model.graph if node.name == name)
