"""What the tests of the passes over inputs and outputs share."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import helper

from surgery.declaration import Pass, Rewritten
from tests.gates.small_graphs import constant
from tests.onnx_runs import Array, run
from tests.surgery.graphs import check, serialised

WEIGHT = constant("w", np.random.default_rng(3).standard_normal((4, 4, 3)) / 4)
"""Of `conv`."""


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    """A node named after its first output; `inputs` and `outputs` are names with spaces between, `-` an empty one."""
    read, made = ([name if name != "-" else "" for name in text.split()] for text in (inputs, outputs))
    return helper.make_node(op, read, made, f"n_{made[0]}", **attributes)


def conv(source: str = "x", made: str = "c") -> onnx.NodeProto:
    """A convolution [1, 4, n] to [1, 4, n] with the weight `WEIGHT`."""
    return node("Conv", f"{source} w", made, kernel_shape=[3], pads=[1, 1])


def applied(bound: Pass, original: ir.Model) -> Rewritten:
    """What `bound` makes of `original`, which must be refused nowhere, be untouched, and be valid ONNX afterwards."""
    before = serialised(original)
    done = bound.rewrite(original)
    assert serialised(original) == before
    assert not done.refused
    check(done.model)
    return done


def left_alone(bound: Pass, original: ir.Model) -> None:
    """`bound` gives back the very model."""
    done = bound.rewrite(original)
    assert (done.model is original, done.hits, done.refused) == (True, 0, ())


def names(values: object) -> list[str]:
    """Names of inputs or outputs."""
    return [value.name for value in values]  # type: ignore[attr-defined] # any of onnx-ir's lists of values


def operators(model: ir.Model) -> list[str]:
    """Types of the nodes of the main graph, in order."""
    return [made.op_type for made in model.graph]


def noise(*shape: int, seed: int = 1) -> Array:
    """White noise."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def same(
    original: ir.Model, after: ir.Model, feed: dict[str, Array], fed_after: dict[str, Array] | None = None
) -> None:
    """Both give bit-identical outputs; the shapes of those of rank 0 aside."""
    before, now = run(original, feed), run(after, feed if fed_after is None else fed_after)
    assert list(before) == list(now)
    for name, array in before.items():
        np.testing.assert_array_equal(now[name].reshape(array.shape), array)
        assert now[name].dtype == array.dtype
