"""Mask the decoder half of a VITS voice, so that a short latent ends where its frames end.

The flow multiplies by the frame mask after every convolution, the decoder does not: behind the last real frame its
convolutions read the padding's own output (non-zero, from the biases), where a full-length decode reads implicit zeros.

Before:  y = Conv(x)  or  y = ConvTranspose(x)      for every such node behind the last use of the mask
After:   y = Conv(x) * m_r                          with m_r the frame mask at that node's rate r

A speaker's embedding is the same on every frame, padding included: y = Conv(x) + c becomes y = (Conv(x) + c) * m_r.

m_1 is the mask input; a transposed convolution of stride s takes rate r to r s, and m_{rs} is m_r through a
ConvTranspose1d of s ones at stride s: exact nearest upsampling, on an operator the NPU runs (a Resize measures -7.9 dB
on the board: reference, Piper decoder, `--dec-mask`). Strides are read from the graph.

The masks have exactly the length of what they multiply: every convolution makes its rate times its input's length
(`convolution_length`), and what stands between them works element by element. Anything else is refused.

Exact where the mask is all ones (x * 1); where it is zero, the result is the full-length decode's by design.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from surgery import convolution_length
from surgery.behind_mask import MASK_MULTIPLIES, behind_mask
from surgery.convolution_length import CONV, CONV_TRANSPOSE, length_fault
from surgery.declaration import Declaration, Exact, Pass, Refused, Rewritten
from surgery.elementwise import ELEMENTWISE
from surgery.graph import ancestors, level_of_ratio, only_reader
from surgery.matching import is_one_of
from surgery.naming import node_label

ONE_RATE = "one rate a node"
TIME_AXIS_KEPT = "element by element between the convolutions"

CONVOLUTIONS = (CONV, CONV_TRANSPOSE)

_SUMS = ("Add", "Sub", "Sum")
"""What makes something of the zeros of padding, where it adds what is not zero there."""

DECLARATION = Declaration(
    name="mask_decoder",
    summary="multiply by the upsampled frame mask after every decoder convolution",
    exactness=Exact("multiplying by a mask of ones; what zeros do is judged by the short-utterance gates"),
    changes_padding=True,
    matches=(*CONVOLUTIONS, *ELEMENTWISE),
    preconditions=(MASK_MULTIPLIES, ONE_RATE, TIME_AXIS_KEPT, *convolution_length.PRECONDITIONS),
)


@dataclass(frozen=True)
class _Plan:
    """The nodes to mask, slowest first, each with its rate: convolutions, and sums with what has no frames."""

    mask: ir.Value
    nodes: tuple[tuple[ir.Node, int], ...]


def mask_decoder(mask_name: str) -> Pass:
    """The pass, driven by the mask input called `mask_name` ([1, 1, N], 1 on real frames); hits are masked nodes."""

    def rewrite(model: ir.Model) -> Rewritten:
        model = model.clone()
        plan = _plan(model.graph, mask_name)
        if not isinstance(plan, _Plan):
            return Rewritten(model, 0, plan)
        masks = {1: plan.mask}
        for node, rate in plan.nodes:
            if rate not in masks:
                slower = max(r for r in masks if rate % r == 0)
                masks[rate] = _upsampled(model.graph, masks[slower], rate // slower, rate)
            _multiply_output(model.graph, node, masks[rate])
        model.graph.sort()
        return Rewritten(model, hits=len(plan.nodes))

    return Pass(DECLARATION, rewrite)


def _plan(graph: ir.Graph, mask_name: str) -> _Plan | tuple[Refused, ...]:
    found = behind_mask(graph, mask_name)
    if isinstance(found, Refused):
        return (found,)
    mask, start, decoder = found.mask, [found.start], found.nodes
    convolutions = [node for node in decoder if is_one_of(node, CONVOLUTIONS)]
    up_to_last = ancestors([value for node in convolutions for value in node.inputs if value is not None])
    between = [node for node in decoder if node in up_to_last and not is_one_of(node, CONVOLUTIONS)]
    refused = [
        Refused(node_label(node), TIME_AXIS_KEPT, "an operator of surgery/elementwise.py", node.op_type)
        for node in between
        if not is_one_of(node, ELEMENTWISE)
    ]
    refused += [fault for node in convolutions if (fault := length_fault(node)) is not None]
    if refused:
        return tuple(refused)
    try:
        rate_of = level_of_ratio(decoder, start)
    except ValueError as error:
        return (Refused(f"input '{mask_name}'", ONE_RATE, "1", str(error)),)
    made = {value for node in decoder for value in node.outputs} | set(start)
    sums = [node for node in between if node.op_type in _SUMS and not made.issuperset(node.inputs)]
    masked = [*(node for node in convolutions if only_reader(node.outputs[0]) not in sums), *sums]
    rated = [(node, rate_of[node.outputs[0]]) for node in masked]
    return _Plan(mask, tuple(sorted(rated, key=lambda pair: pair[1])))


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
    masked = ir.node("Mul", [value, mask], name=f"mask_decoder/{node.name or value.name}")
    masked.outputs[0].name = f"mask_decoder/{value.name}"
    if value.is_graph_output():  # its name is the graph's interface
        value.name, masked.outputs[0].name = f"mask_decoder/{value.name}/unmasked", value.name
        masked.outputs[0].shape = value.shape
    masked.outputs[0].dtype = ir.DataType.FLOAT
    value.replace_all_uses_with(masked.outputs[0], replace_graph_outputs=True)
    masked.replace_input_with(0, value)
    graph.append(masked)
