"""Puts new nodes before one that a pass rewrites, and lets a new value stand for its output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from surgery.graph import graph_of
from surgery.graph_constants import add_constant
from surgery.inferred import static_shape
from surgery.matching import opset_of
from surgery.scopes import drop_unused_weights

SPLIT_SIZES_AS_INPUT = 13
"""The opset from which a Split takes its sizes as an input (ONNX operator specification)."""


@dataclass(frozen=True)
class Builder:
    """Puts nodes of one output into `graph`, before the node `before`; `prefix` begins their names."""

    graph: ir.Graph
    before: ir.Node
    prefix: str

    def add(self, op: str, inputs: Sequence[ir.Value], shape: Sequence[int], what: str, **attributes: Any) -> ir.Value:
        """The output, of `shape`, of a new node; it has the type of the first input."""
        node = ir.node(op, inputs, attributes, name=f"{self.prefix}/{what}")
        node.outputs[0].name = f"{self.prefix}/{what}"
        node.outputs[0].shape = ir.Shape(shape)
        node.outputs[0].type = inputs[0].type
        self.graph.insert_before(self.before, node)
        return node.outputs[0]

    def reshape(self, value: ir.Value, shape: Sequence[int], what: str) -> ir.Value:
        """`value` in another shape."""
        return self.add("Reshape", [value, self.sizes(f"{what}_shape", shape)], shape, what)

    def split(self, value: ir.Value, axis: int, sizes: Sequence[int], what: str) -> list[ir.Value]:
        """`value` cut along `axis` into parts of `sizes`."""
        listed = opset_of(self.graph) < SPLIT_SIZES_AS_INPUT
        inputs = [value] if listed else [value, self.sizes(f"{what}_sizes", sizes)]
        attributes: dict[str, Any] = {"axis": axis, **({"split": list(sizes)} if listed else {})}
        node = ir.node("Split", inputs, attributes, num_outputs=len(sizes), name=f"{self.prefix}/{what}")
        for place, (made, size) in enumerate(zip(node.outputs, sizes, strict=True)):
            shape = sizes_of(value)
            shape[axis] = size
            made.name, made.shape, made.type = f"{self.prefix}/{what}{place}", ir.Shape(shape), value.type
        self.graph.insert_before(self.before, node)
        return list(node.outputs)

    def sizes(self, what: str, numbers: Sequence[int]) -> ir.Value:
        """A constant of whole numbers."""
        return self.constant(what, np.array(numbers, np.int64))

    def constant(self, what: str, values: NDArray[Any]) -> ir.Value:
        """A constant."""
        return add_constant(self.graph, f"{self.prefix}/{what}", values)

    def first(self, value: ir.Value, axis: int, length: int, what: str) -> ir.Value:
        """The first `length` steps of `value` along `axis`."""
        return self.part(value, axis, 0, length, what)

    def part(self, value: ir.Value, axis: int, start: int, length: int, what: str) -> ir.Value:
        """`length` steps of `value` along `axis`, from `start` on; `value` itself where these are all."""
        sizes = sizes_of(value)
        if sizes[axis] == length:
            return value
        names = (f"{what}_start", f"{what}_end", f"{what}_axis")
        bounds = [self.sizes(name, [at]) for name, at in zip(names, (start, start + length, axis), strict=True)]
        sizes[axis] = length
        return self.add("Slice", [value, *bounds], sizes, what)

    def filled(self, value: ir.Value, axis: int, before: int, behind: int, blocks: int) -> ir.Value:
        """`value` with so many zeros before and behind it along `axis`, which is cut into `blocks` then.

        By a Concat, which stays on the NPU where a Pad falls to the CPU (channels that are no multiple of 8). But where
        the number of blocks divides both its parts (few blocks), the toolkit's rule `reduce_reshape_op_around_concat`
        takes the Reshape before it, which needs a real torch (measured, 2.3.2).
        """
        sizes = sizes_of(value)
        if not before and not behind:
            return value
        filled = [size + (before + behind if place == axis else 0) for place, size in enumerate(sizes)]
        if before or behind % blocks == 0:
            pads = [count if place == axis else 0 for count in (before, behind) for place in range(len(sizes))]
            return self.add("Pad", [value, self.sizes("pads", pads)], filled, "filled")
        return self.surrounded(value, axis, 0, behind, "filled")

    def surrounded(self, value: ir.Value, axis: int, before: int, behind: int, what: str) -> ir.Value:
        """The Concat of `before` zeros along `axis`, `value` and `behind` zeros; a side without any is left out."""
        assert value.dtype is not None
        sizes, zeros = sizes_of(value), {}
        for count in sorted({before, behind} - {0}):
            shape = [count if place == axis else size for place, size in enumerate(sizes)]
            zeros[count] = self.constant(f"{what}_zeros{count}", np.zeros(shape, value.dtype.numpy()))
        sizes[axis] += before + behind
        parts = [part for part in (zeros.get(before), value, zeros.get(behind)) if part is not None]
        return self.add("Concat", parts, sizes, what, axis=axis)


def sizes_of(value: ir.Value) -> list[int]:
    """The sizes of `value`, which has a static shape: an input that was looked at, or what a `Builder` made."""
    shape = static_shape(value)
    assert shape is not None
    return list(shape)


def take_place(node: ir.Node, made: ir.Value) -> None:
    """Let `made` stand for the one output of `node`, under its name; `node` and weights that nothing uses go."""
    output = node.outputs[0]
    graph = graph_of(node)
    weights = [value for value in node.inputs[1:] if value is not None and value.is_initializer()]
    made.shape = output.shape or made.shape
    output.replace_all_uses_with(made, replace_graph_outputs=True)
    graph.remove(node, safe=True)
    made.name = output.name
    drop_unused_weights(graph, weights)
