"""Graphs of one operator, and what holds after a pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx import TensorProto, helper

from surgery.declaration import EXACT_PARITY_DB, Exact, Pass
from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import Array, run, snr_db
from tests.surgery.graphs import check, serialised


def operator(
    op: str,
    inputs: str = "x",
    outputs: str = "y",
    *,
    shape: Sequence[int | str] = (1, 4, 12),
    dtype: int = TensorProto.FLOAT,
    fed: Mapping[str, Sequence[int]] | None = None,
    constants: Mapping[str, Any] | None = None,
    made: Mapping[str, tuple[int, int]] | None = None,
    opset: int = 17,
    **attributes: Any,
) -> ir.Model:
    """One node `op`.

    Args:
        op: the operator.
        inputs, outputs: its names, a dash for an empty one. The input x comes first.
        shape, dtype: of x.
        fed: other inputs of the graph, of the dtype of x, and their shapes.
        constants: weights, as arrays; lists are float32.
        made: the graph's outputs, each with its rank and dtype; as x, of every named output, where it is not given.
        opset: of the graph.
        attributes: of the node.
    """
    named = [name if name != "-" else "" for name in outputs.split()]
    node = helper.make_node(op, [name if name != "-" else "" for name in inputs.split()], named, "op", **attributes)
    stated = made or {name: (len(shape), dtype) for name in named if name}
    return model(
        [node],
        [tensor("x", shape, dtype), *(tensor(name, sizes, dtype) for name, sizes in (fed or {}).items())],
        [tensor(name, [f"{name}{axis}" for axis in range(rank)], kind) for name, (rank, kind) in stated.items()],
        [constant(name, array, getattr(array, "dtype", np.float32)) for name, array in (constants or {}).items()],
        opset=opset,
    )


def feed_of(made: ir.Model, seed: int = 3) -> dict[str, Array]:
    """White noise; whole numbers up to a thousand where an input holds such."""
    rng = np.random.default_rng(seed)
    feed = {}
    for value in made.graph.inputs:
        assert value.name is not None
        assert value.shape is not None
        assert value.dtype is not None
        noise = rng.standard_normal([int(size) for size in value.shape])  # type: ignore[arg-type] # static here
        whole = value.dtype.numpy().kind != "f"
        feed[value.name] = (noise * 300 if whole else noise).astype(value.dtype.numpy())
    return feed


def equal_after(bound: Pass, original: ir.Model, hits: int = 1, feed: Mapping[str, Array] | None = None) -> ir.Model:
    """Run the pass: so many hits, the original untouched, valid ONNX that gives the same in onnxruntime."""
    before = serialised(original)
    done = bound.rewrite(original)
    assert (done.refused, done.hits) == ((), hits)
    assert serialised(original) == before
    check(done.model)
    given = feed_of(original) if feed is None else feed
    wanted, got = run(original, given), run(done.model, given)
    assert list(got) == list(wanted)
    exactness = bound.declaration.exactness
    least = EXACT_PARITY_DB if isinstance(exactness, Exact) else exactness.minimum_db
    for name, array in wanted.items():
        assert got[name].dtype == array.dtype
        assert snr_db(array, got[name]) >= least, name
    assert bound.rewrite(done.model).hits == 0
    return done.model


def left_alone(bound: Pass, original: ir.Model) -> None:
    """The pass finds nothing to do, and gives back the very model."""
    before = serialised(original)
    done = bound.rewrite(original)
    assert (done.hits, done.refused) == (0, ())
    assert done.model is original
    assert serialised(original) == before


def only(made: ir.Model, op: str) -> ir.Node:
    """The one node `op` of a graph."""
    (node,) = [node for node in made.graph if node.op_type == op]
    return node


def weight(value: ir.Value | None) -> Array:
    """The values of a constant input."""
    assert value is not None
    assert value.const_value is not None
    return value.const_value.numpy()


def operators(made: ir.Model) -> list[str]:
    """The operators in order."""
    return [node.op_type for node in made.graph]
