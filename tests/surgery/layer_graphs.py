"""Graphs of convolutions and products with constants beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import NodeProto, helper

from tests.gates.small_graphs import constant, proto, tensor
from tests.onnx_runs import Array

RNG = np.random.default_rng(7)

CHANNELS, STEPS = 6, 10


def near_one(*shape: int) -> Array:
    """Factors and divisors: positive, different."""
    return RNG.uniform(0.5, 2.0, shape).astype(np.float32)


def noise(*shape: int) -> Array:
    """Weights and biases."""
    return RNG.standard_normal(shape).astype(np.float32)


WEIGHTS: dict[str, Any] = {
    "w": noise(6, 6, 3), "b": noise(6),
    "v": noise(6, 6, 3), "u": noise(6, 6, 3),
    "w2": noise(6, 3, 3),  # of two groups
    "wt": noise(6, 6, 4), "wt2": noise(6, 3, 4),
    "m": noise(6, 6), "row": noise(1, 6),
    "half": 0.5, "three": [3.0], "minus": -2.0, "zero": 0.0, "huge": 1e6, "tiny": 1e-7,
    "each": near_one(1, 6, 1), "each2": near_one(6, 1), "each_signed": noise(1, 6, 1),
    "last": near_one(6), "steps": near_one(1, 1, 10), "all": near_one(1, 6, 10),
    "wide": np.repeat(near_one(1, 6, 1), 10, axis=2), "fours": np.full((1, 6, 10), 4.0), "rank4": near_one(1, 1, 6, 1),
    "slope": near_one(6, 1), "t": noise(1, 6, 1), "t2": noise(6, 1), "far": np.full((1, 6, 1), 1e5),
    "scale": near_one(6), "shift": noise(6), "mean": noise(6), "variance": near_one(6),
}  # fmt: skip
"""What the nodes may read, by name."""


def node(op: str, inputs: str, output: str, **attributes: Any) -> NodeProto:
    """A node named after its output; a dash stands for an input that is left out."""
    names = ["" if name == "-" else name for name in inputs.split()]
    return helper.make_node(op, names, [output], f"to_{output}", **attributes)


def conv(inputs: str, output: str, **attributes: Any) -> NodeProto:
    """A Conv of kernel 3 that keeps the length."""
    return node("Conv", inputs, output, kernel_shape=[3], pads=[1, 1], **attributes)


def up(inputs: str, output: str, **attributes: Any) -> NodeProto:
    """A ConvTranspose of kernel 4 that doubles the length."""
    return node("ConvTranspose", inputs, output, kernel_shape=[4], strides=[2], pads=[1, 1], **attributes)


def layers(
    *nodes: NodeProto,
    shape: Sequence[int | str] = (1, CHANNELS, STEPS),
    outputs: str = "y",
    opset: int = 17,
    fed: Sequence[onnx.ValueInfoProto] = (),
    **more: Any,
) -> ir.Model:
    """x of `shape`, and `fed`, to `outputs`; constants are those of `WEIGHTS`, and `more`: float32, or int64."""
    constants = {**WEIGHTS, **more}
    taken = {*(value.name for value in fed), *(name for one in nodes for name in one.output)}
    read = {name for one in nodes for name in one.input if name in constants and name not in taken}
    return ir.from_proto(
        proto(
            nodes,
            [tensor("x", shape), *fed],
            [tensor(name, [f"{name}{axis}" for axis in range(len(shape))]) for name in outputs.split()],
            [constant(name, constants[name], _kind(constants[name])) for name in sorted(read)],
            opset=opset,
        )
    )


def _kind(values: Any) -> Any:
    return np.int64 if np.asarray(values).dtype.kind == "i" else np.float32
