"""Normalisations as exporters spell them out, and numpy's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import NodeProto, TensorProto, helper

from tests.gates.small_graphs import constant, proto, tensor
from tests.onnx_runs import Array

EPSILON = 1e-5
DIVISIONS = ("Div", "Reciprocal", "1 /", "Pow -0.5", "Pow 0.5", "Reciprocal first")
SQUARES = ("Pow", "Mul", "twice")
MEANS = ("ReduceMean", "ReduceSum /", "ReduceSum *")


@dataclass
class Steps:
    """Nodes in a row, and their weights."""

    opset: int = 15
    nodes: list[NodeProto] = field(default_factory=list)
    weights: list[onnx.TensorProto] = field(default_factory=list)

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        """A node; returns the name of its output."""
        made = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [made], f"n{len(self.nodes)}", **attributes))
        return made

    def constant(self, values: Any, dtype: Any = np.float32) -> str:
        """A weight; returns its name."""
        self.weights.append(constant(f"w{len(self.weights)}", values, dtype))
        return self.weights[-1].name

    def reduced(self, op: str, value: str, axes: Sequence[int], keepdims: int = 1) -> str:
        """`value` reduced in the form of the opset."""
        if self.opset >= (13 if op == "ReduceSum" else 18):
            return self.add(op, value, self.constant(list(axes), np.int64), keepdims=keepdims)
        return self.add(op, value, axes=list(axes), keepdims=keepdims)

    def conv(self, value: str, channels: int, seed: int = 1, scale: float = 1.0) -> str:
        """A convolution of `channels` to as many."""
        weight = np.random.default_rng(seed).standard_normal((channels, channels, 3)) * scale / np.sqrt(3 * channels)
        return self.add("Conv", value, self.constant(weight), kernel_shape=[3], pads=[1, 1])

    def proto(
        self, inputs: Mapping[str, Sequence[int | str]], output: Sequence[int | str], dtype: int = TensorProto.FLOAT
    ) -> onnx.ModelProto:
        """The graph whose output y is the last node's."""
        self.nodes[-1].output[0] = "y"
        given = [tensor(name, sizes, dtype) for name, sizes in inputs.items()]
        return proto(self.nodes, given, [tensor("y", output, dtype)], self.weights, opset=self.opset)

    def model(
        self, inputs: Mapping[str, Sequence[int | str]], output: Sequence[int | str], dtype: int = TensorProto.FLOAT
    ) -> ir.Model:
        """The same, as passes take it."""
        return ir.from_proto(self.proto(inputs, output, dtype))


def normalise(
    steps: Steps,
    x: str,
    axes: Sequence[int],
    count: int = 0,
    division: str = "Div",
    square: str = "Mul",
    mean: str = "ReduceMean",
    epsilon: float = EPSILON,
) -> str:
    """Adds the chain that normalises `x` over `axes`, `count` numbers each; returns its output."""

    def averaged(value: str) -> str:
        if mean == "GlobalAveragePool":
            return steps.add(mean, value)
        if mean == "ReduceMean":
            return steps.reduced(mean, value, axes)
        total = steps.reduced("ReduceSum", value, axes)
        if mean == "ReduceSum /":
            return steps.add("Div", total, steps.constant(float(count)))
        return steps.add("Mul", steps.constant([1 / count]), total)

    middle = averaged(x)
    off = steps.add("Sub", x, middle)
    if square == "Mul":
        power = steps.add("Mul", off, off)
    else:
        power = steps.add("Pow", steps.add("Sub", x, middle) if square == "twice" else off, steps.constant(2.0))
    variance = steps.add("Add", averaged(power), steps.constant(epsilon))
    if division == "Pow -0.5":
        return steps.add("Mul", off, steps.add("Pow", variance, steps.constant(-0.5)))
    if division == "Pow 0.5":
        return steps.add("Div", off, steps.add("Pow", variance, steps.constant(0.5)))
    root = steps.add("Sqrt", variance)
    if division == "Div":
        return steps.add("Div", off, root)
    if division == "1 /":
        return steps.add("Mul", off, steps.add("Div", steps.constant([1.0]), root))
    inverse = steps.add("Reciprocal", root)
    return steps.add("Mul", *((inverse, off) if division == "Reciprocal first" else (off, inverse)))


def affine(steps: Steps, value: str, sizes: Sequence[int], scaled: bool = True, shifted: bool = True) -> str:
    """Adds a scale and a shift of these sizes."""
    rng = np.random.default_rng(5)
    scale, shift = 1 + 0.3 * rng.standard_normal(sizes), 0.3 * rng.standard_normal(sizes)
    if scaled:
        value = steps.add("Mul", value, steps.constant(scale))
    return steps.add("Add", value, steps.constant(shift)) if shifted else value


def normalised(x: Array, axes: tuple[int, ...], epsilon: float = EPSILON) -> Array:
    """What it is, in float64."""
    wide = x.astype(np.float64)
    made: Array = (wide - wide.mean(axes, keepdims=True)) / np.sqrt(wide.var(axes, keepdims=True) + epsilon)
    return made


def masked(steps: Steps, x: str, mask: str, axes: Sequence[int], op: str = "ReduceSum") -> str:
    """Adds the normalisation of `x` under `mask`."""
    count = steps.reduced(op, mask, axes)
    middle = steps.add("Div", steps.reduced(op, steps.add("Mul", x, mask), axes), count)
    off = steps.add("Mul", steps.add("Sub", x, middle), mask)
    variance = steps.add("Div", steps.reduced(op, steps.add("Mul", off, off), axes), count)
    return steps.add("Div", off, steps.add("Sqrt", steps.add("Add", variance, steps.constant(EPSILON))))
