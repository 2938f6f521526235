"""What of a VITS voice lies behind its frame mask: the decoder, where the flow before it masks every convolution."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from surgery.declaration import Refused
from surgery.graph import ancestors, descendants

MASK_MULTIPLIES = "a node that multiplies by the mask"


@dataclass(frozen=True)
class Behind:
    """The decoder.

    Attributes:
        mask: the mask input.
        start: what the last node that multiplies by it makes, in the graph's order.
        nodes: what depends on that and an output depends on, in the graph's order.
    """

    mask: ir.Value
    start: ir.Value
    nodes: tuple[ir.Node, ...]


def behind_mask(graph: ir.Graph, mask_name: str) -> Behind | Refused:
    """What lies behind the last Mul by the input called `mask_name`; why nothing does."""
    mask = next((value for value in graph.inputs if value.name == mask_name), None)
    multiplying = [] if mask is None else [n for n in graph if n.op_type == "Mul" and mask in n.inputs]
    if mask is None or not multiplying:
        got = "there is no such input" if mask is None else "no Mul reads it"
        return Refused(f"input '{mask_name}'", MASK_MULTIPLIES, "one at least", got)
    start = multiplying[-1].outputs[0]
    behind = descendants(graph, [start]) & ancestors(graph.outputs)
    return Behind(mask, start, tuple(node for node in graph if node in behind))
