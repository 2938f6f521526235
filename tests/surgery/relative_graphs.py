"""Attention with relative embeddings as VITS's exporters write it, and the same in double precision by its formula."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import helper

from tests.gates.small_graphs import constant, model, tensor
from tests.onnx_runs import Array


@dataclass(frozen=True)
class Attention:
    """One attention.

    Attributes:
        heads, positions, depth: of queries, keys and values [1, heads, positions, depth].
        window: the furthest distance that has an embedding.
        spelling: how zeros are added and rows cut: "pad" (exporters of torch's F.pad), "concat" (zeros that are
            concatenated, and two slices instead of one), "between" (Identity and Unsqueeze among the others).
        own_embeddings: each head has its own.
        prefix: of every name.
        opset: of the graph.
    """

    heads: int = 2
    positions: int = 5
    window: int = 4
    depth: int = 6
    spelling: str = "pad"
    own_embeddings: bool = False
    prefix: str = ""
    opset: int = 15

    @property
    def shape(self) -> tuple[int, ...]:
        """Of queries, keys and values."""
        return (1, self.heads, self.positions, self.depth)

    @property
    def widest(self) -> int:
        """The number of distances, 2N - 1."""
        return 2 * self.positions - 1

    def table(self, seed: int) -> Array:
        """Embeddings [heads or 1, 2 window + 1, depth] of the distances -window, .., window."""
        count = self.heads if self.own_embeddings else 1
        noise = np.random.default_rng(seed).standard_normal((count, 2 * self.window + 1, self.depth))
        return noise.astype(np.float32)

    def used(self, table: Array) -> Array:
        """`table` padded with zeros, or cut, to all distances there are: [.., 2N - 1, depth]."""
        zeros = max(self.positions - (self.window + 1), 0)
        start = max((self.window + 1) - self.positions, 0)
        padded = np.pad(table, [(0, 0), (zeros, zeros), (0, 0)])
        return padded[:, start : start + self.widest]


def attention(of: Attention) -> ir.Model:
    """The graph, static and folded: inputs q, k, v, output y."""
    made = Nodes(of.prefix, of.positions)
    scale = np.float32(np.sqrt(of.depth))
    queries = made.add("Div", "q", made.number("scale", scale))
    scores = made.add("MatMul", queries, made.add("Transpose", "k", perm=[0, 1, 3, 2]))
    keys = of.used(of.table(1))[None].swapaxes(-1, -2)
    logits = made.add("MatMul", queries, made.number("keys", keys))
    scores = made.add("Add", scores, shifted_to_positions(made, logits, of))
    weights = made.add("Softmax", scores, axis=-1)
    values = made.add("MatMul", weights, "v")
    distances = shifted_to_distances(made, weights, of)
    relative = made.add("MatMul", distances, made.number("values", of.used(of.table(2))[None]))
    made.add("Add", values, relative, gives="y")
    inputs = [tensor(name, of.shape) for name in "qkv"]
    return model(made.nodes, inputs, [tensor("y", of.shape)], made.weights, opset=of.opset)


def formula(of: Attention, q: Array, k: Array, v: Array) -> Array:
    """The same by its formula: y[i] = sum over j of p[i, j] (v[j] + e_v[j - i])."""
    keys, values = (np.broadcast_to(of.table(seed), (of.heads, *of.table(seed).shape[1:])) for seed in (1, 2))
    made = np.zeros(of.shape)
    for head in range(of.heads):
        for i in range(of.positions):
            scores, rows = np.zeros(of.positions), np.zeros((of.positions, of.depth))
            for j in range(of.positions):
                near = abs(j - i) <= of.window
                key = k[0, head, j].astype(np.float64) + (keys[head, j - i + of.window] if near else 0)
                scores[j] = q[0, head, i].astype(np.float64) @ key / np.sqrt(of.depth)
                rows[j] = v[0, head, j] + (values[head, j - i + of.window] if near else 0)
            weights = np.exp(scores - scores.max())
            made[0, head, i] = weights / weights.sum() @ rows
    return made


def shifted_to_positions(made: Nodes, logits: str, of: Attention) -> str:
    """[1, H, N, 2N - 1] to [1, H, N, N], as `_relative_position_to_absolute_position` does."""
    n, heads = of.positions, of.heads
    value = _between(made, made.zeros(logits, 3, 0, 1, (1, heads, n, 1), of), of)
    value = made.add("Reshape", value, made.whole("flat", [1, heads, 2 * n * n]))
    value = made.zeros(value, 2, 0, n - 1, (1, heads, n - 1), of)
    value = made.add("Reshape", value, made.whole("rows", [1, heads, n + 1, 2 * n - 1]))
    if of.spelling == "concat":
        value = made.cut(value, [2], [0], [n])
        return made.cut(value, [3], [n - 1], [2**63 - 1])
    return made.cut(value, [2, 3], [0, n - 1], [n, 2**63 - 1])


def shifted_to_distances(made: Nodes, weights: str, of: Attention) -> str:
    """[1, H, N, N] to [1, H, N, 2N - 1], as `_absolute_position_to_relative_position` does."""
    n, heads = of.positions, of.heads
    value = _between(made, made.zeros(weights, 3, 0, n - 1, (1, heads, n, n - 1), of), of)
    value = made.add("Reshape", value, made.whole("flat", [1, heads, n * n + n * (n - 1)]))
    value = made.zeros(value, 2, n, 0, (1, heads, n), of)
    value = made.add("Reshape", value, made.whole("rows", [1, heads, n, 2 * n]))
    return made.cut(value, [3], [1], [2**63 - 1])


def _between(made: Nodes, value: str, of: Attention) -> str:
    if of.spelling != "between":
        return value
    return made.add("Unsqueeze", made.add("Identity", value), made.whole("front", [0]))


class Nodes:
    """Nodes in order, and their weights."""

    def __init__(self, prefix: str = "", positions: int = 1) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self._prefix, self._positions = prefix, positions

    def add(self, op: str, *inputs: str, gives: str = "", **attributes: Any) -> str:
        """A node and the name of what it makes."""
        name = f"{self._prefix}{op}_{len(self.nodes)}"
        output = gives or f"{name}_output"
        self.nodes.append(helper.make_node(op, list(inputs), [output], name, **attributes))
        return output

    def number(self, name: str, values: object) -> str:
        """A weight of float32."""
        return self._weight(name, np.asarray(values, np.float32))

    def whole(self, name: str, values: Sequence[int]) -> str:
        """A list of sizes, axes or pads."""
        return self._weight(name, np.array(values, np.int64))

    def zeros(self, value: str, axis: int, before: int, behind: int, shape: Sequence[int], of: Attention) -> str:
        """`value` with zeros along `axis`, its last; of `shape` where they are concatenated."""
        if of.spelling == "concat":
            zeros = self.number("zeros", np.zeros(shape))
            return self.add("Concat", *((zeros, value) if before else (value, zeros)), axis=axis)
        pads = [0] * (2 * axis + 2)
        pads[axis], pads[-1] = before, behind
        return self.add("Pad", value, self.whole("pads", pads), mode="constant")

    def cut(self, value: str, axes: Sequence[int], starts: Sequence[int], ends: Sequence[int]) -> str:
        """A slice of `value`."""
        lists = [self.whole(name, list(given)) for name, given in (("starts", starts), ("ends", ends), ("axes", axes))]
        return self.add("Slice", value, *lists)

    def _weight(self, name: str, values: Array) -> str:
        fresh = f"{self._prefix}{name}_{len(self.weights)}"
        self.weights.append(constant(fresh, values, values.dtype))
        return fresh
