"""Mask the decoder half of a VITS voice, so that a short latent ends where its frames end.

The flow multiplies by the frame mask after every convolution, the decoder does not: behind the last real frame its
convolutions read the padding's own output (non-zero, from the biases), where a full-length decode reads implicit zeros.

Before:  y = Conv(x)  or  y = ConvTranspose(x)      for every such node behind the last use of the mask
After:   y = Conv(x) * m_r                          with m_r the frame mask at that node's rate r

m_1 is the mask input; a transposed convolution of stride s takes rate r to r s, and m_{rs} is m_r through a
ConvTranspose1d of s ones at stride s: exact nearest upsampling, on an operator the NPU runs (a Resize measures -7.9 dB
on the board: reference, Piper decoder, `--dec-mask`). Strides are read from the graph.

Exact where the mask is all ones (x * 1); where it is zero, the result is the full-length decode's by design.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from surgery.declaration import Declaration, Exact, Pass, Refused, Rewritten
from surgery.graph import ancestors, descendants, level_of_ratio, value_named

DECLARATION = Declaration(
    name="mask_decoder",
    summary="multiply by the upsampled frame mask after every decoder convolution",
    exactness=Exact("multiplying by a mask of ones; what zeros do is judged by the short-utterance gates"),
    changes_padding=True,
)


def mask_decoder(mask_name: str) -> Pass:
    """The pass, driven by the mask input called `mask_name` ([1, 1, N], 1 on real frames); hits are masked nodes."""

    def rewrite(model: ir.Model) -> Rewritten:
        model = model.clone()
        graph = model.graph
        mask = value_named(graph, mask_name)
        nodes = _decoder_nodes(graph, mask)
        if nodes is None:
            return Rewritten(model, 0, (Refused(mask_name, "the mask is used", "once at least", "no node reads it"),))
        last_masked, decoder = nodes
        try:
            rate_of = level_of_ratio(decoder, last_masked.outputs)
        except ValueError as error:
            return Rewritten(model, 0, (Refused(mask_name, "one rate a node", "1", str(error)),))
        masks = {1: mask}
        convolutions = [n for n in decoder if n.op_type in ("Conv", "ConvTranspose") and n.outputs[0] in rate_of]
        for node in sorted(convolutions, key=lambda n: rate_of[n.outputs[0]]):
            rate = rate_of[node.outputs[0]]
            if rate not in masks:
                slower = max(r for r in masks if rate % r == 0)
                masks[rate] = _upsampled(graph, masks[slower], rate // slower, rate)
            _multiply_output(graph, node, masks[rate])
        graph.sort()
        return Rewritten(model, hits=len(convolutions))

    return Pass(DECLARATION, rewrite)


def _decoder_nodes(graph: ir.Graph, mask: ir.Value) -> tuple[ir.Node, list[ir.Node]] | None:
    """The last node that reads the mask, and in order the nodes from there to the outputs."""
    readers = set(mask.consumers())
    in_order = [node for node in graph if node in readers]
    if not in_order:
        return None
    last = in_order[-1]
    behind = descendants(graph, last.outputs) & ancestors(graph.outputs)
    return last, [node for node in graph if node in behind]


def _upsampled(graph: ir.Graph, mask: ir.Value, factor: int, rate: int) -> ir.Value:
    name = f"mask_decoder/mask_x{rate}"
    ones = ir.val(f"{name}/ones", const_value=ir.tensor(np.ones((1, 1, factor), np.float32), name=f"{name}/ones"))
    graph.register_initializer(ones)
    node = ir.node("ConvTranspose", [mask, ones], {"strides": [factor], "kernel_shape": [factor]}, name=name)
    node.outputs[0].name = name
    node.outputs[0].dtype = ir.DataType.FLOAT
    graph.append(node)
    return node.outputs[0]


def _multiply_output(graph: ir.Graph, node: ir.Node, mask: ir.Value) -> None:
    value = node.outputs[0]
    masked = ir.node("Mul", [value, mask], name=f"mask_decoder/{node.name}")
    masked.outputs[0].name = f"mask_decoder/{value.name}"
    masked.outputs[0].dtype = ir.DataType.FLOAT
    value.replace_all_uses_with(masked.outputs[0], replace_graph_outputs=True)
    masked.replace_input_with(0, value)
    graph.append(masked)
