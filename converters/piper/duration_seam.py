"""The seam behind a VITS voice's duration encoder, found by structure: prior statistics and duration conditioning.

A voice encodes its tokens once, and samples with that:

    ids -> text encoder -> Conv -> stats (* mask, Split: m, logs)
                        -> duration predictor -> Conv -> conditioning (* mask) -> flows -> exp -> ceil -> frames

What lies ahead of the two convolutions depends on no draw and on none of the scales. They are where all that crosses
from there to what is drawn comes from: the statistics' is the one that reaches the latent by products and sums alone
(the mean, expanded to frames), the other is the durations'. Where these have no flows, it gives the log durations.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from contracts.errors import Refusal
from surgery.graph import ancestors, descendants, node_dependencies
from surgery.naming import node_label

_SUMS = frozenset({"Add", "MatMul", "Mul"})
"""Operators by which the statistics become the latent's mean: masks, the path from tokens to frames, the noise."""

_MOVES = frozenset({"Cast", "Expand", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Transpose",
                    "Unsqueeze"})  # fmt: skip
"""Operators that move the values of their first input; the others say where to."""

_SIZES = frozenset({"Shape", "Size"})
"""What is behind them are sizes, of whatever tensor."""

_WHOLE = frozenset({"Ceil", "Floor", "Round"})
"""What makes whole numbers of frames: VITS rounds up."""

_NAMED = 4
"""How many nodes a message names."""


@dataclass(frozen=True)
class DurationSeam:
    """Names of the values at the seam.

    Attributes:
        stats: the prior's statistics ahead of their mask, [1, 2C, T] float32.
        conditioning: what durations are told from, ahead of its mask, [1, H, T] float32.
        durations: behind the seam: the frames of each token, whole numbers as float32, [1, 1, T].
    """

    stats: str
    conditioning: str
    durations: str


def find_duration_seam(
    graph: ir.Graph, latent: ir.Value, mask: ir.Value, sampled: Collection[ir.Value], where: str
) -> DurationSeam:
    """The seam in the graph of a voice, or of its host half.

    Args:
        graph: the graph, whose nodes are in topological order.
        latent: the latent that enters the flow (`VitsSeam`).
        mask: its frame mask.
        sampled: what an utterance is sampled with: the scales, and every draw.
        where: names the file in messages.

    Raises:
        Refusal: the voice has no such seam; the message says what is missing.
    """
    behind = descendants(graph, sampled) & ancestors([latent, mask])
    crossing = [
        value
        for node in graph
        if node in behind
        for value in node_dependencies(node)
        if value not in sampled and value.producer() not in behind
    ]
    ahead = _convolutions(crossing, _all_values)
    stats = _only(_convolutions([latent], _summed_values), where, "gives the statistics of the latent", "convolution")
    if stats not in ahead:
        raise _no_seam(where, "the statistics of the latent depend on the scales, or on a draw")
    others = [node for node in ahead if node is not stats]
    conditioning = _only(others, where, "gives what the durations are told from", "convolution")
    rounding = ancestors([mask]) & behind
    rounded = [node for node in graph if node in rounding and node.op_type in _WHOLE]
    durations = _only(rounded, where, f"rounds the durations ({', '.join(sorted(_WHOLE))})", "node")
    return DurationSeam(*(_name(node.outputs[0]) for node in (stats, conditioning, durations)))


def _convolutions(values: list[ir.Value], onward: Callable[[ir.Node], Sequence[ir.Value]]) -> list[ir.Node]:
    """The nearest convolutions that `values` come from, going `onward` from node to node; each node is met once."""
    found: dict[ir.Node, None] = {}
    seen: set[ir.Value] = set()
    todo = list(values)
    while todo:
        value = todo.pop()
        node = value.producer()
        if value in seen or node is None:
            continue
        seen.add(value)
        if node.op_type == "Conv":
            found[node] = None
        else:
            todo.extend(onward(node))
    return list(found)


def _summed_values(node: ir.Node) -> list[ir.Value]:
    """What `node` moves, adds up or multiplies."""
    values = node.inputs if node.op_type in _SUMS else node.inputs[:1] if node.op_type in _MOVES else ()
    return [value for value in values if value is not None]


def _all_values(node: ir.Node) -> list[ir.Value]:
    """What `node` computes with."""
    return [] if node.op_type in _SIZES else node_dependencies(node)


def _only(nodes: list[ir.Node], where: str, does_what: str, kind: str) -> ir.Node:
    if len(nodes) != 1:
        names = f": {', '.join(node_label(node) for node in nodes[:_NAMED])}" if nodes else ""
        raise _no_seam(where, f"one {kind} is expected that {does_what}, and there are {len(nodes)}{names}")
    return nodes[0]


def _no_seam(where: str, reason: str) -> Refusal:
    return Refusal(
        f"{where}: has no duration encoder that can be told from the rest: {reason}; --stage decoder needs none."
    )


def _name(value: ir.Value) -> str:
    if value.name is None:
        raise ValueError("a value of a loaded model has no name")
    return value.name
