"""Make float weights of quantised ones.

Before: y = DequantizeLinear(w, scale, zero_point) of constants; or of Gather(w, ids) and other choices from a constant,
as an embedding has them. After: y = (w - zero_point) * scale, a constant; or the same choice from that.
The toolkit takes a DequantizeLinear for a quantised engine, and makes its inputs int8 (log of 2.3.2: "The QAT model is
loaded"). A weight that several nodes read is made float once.

A place is rewritten where the scale and the zero point are constants, and where the weight is chosen from only if there
is one scale for all of it. Others are left to `decompose_quantised`.

Exact: the product is the one that DequantizeLinear computes, in the scale's type.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir
from onnx_ir.passes import common

from surgery.declaration import Declaration, Exact, Pass, Rewritten
from surgery.graph_constants import add_constant
from surgery.matching import ONNX_DOMAINS, Matched
from surgery.quantised import Chosen, chosen_from, dequantised
from surgery.splice import Draft, splice
from surgery.weights import tensor_of

DEQUANTISING = (*ONNX_DOMAINS, "com.microsoft")
"""onnxruntime has QuantizeLinear and DequantizeLinear of its own, with more types and the same meaning."""

DECLARATION = Declaration(
    name="fold_dequantised_weights",
    summary="8-bit and 4-bit weights become float constants",
    exactness=Exact("(w - zero_point) * scale, as DequantizeLinear computes it"),
    after=frozenset({"decompose_functions"}),
    matches=(Matched("DequantizeLinear", used=frozenset({"axis"})),),
)


@dataclass(frozen=True)
class _Place:
    """A DequantizeLinear of a constant, or of what is chosen from one."""

    node: ir.Node
    chosen: Chosen


def fold_dequantised_weights() -> Pass:
    """The pass; its hits are the DequantizeLinear nodes."""

    def rewrite(model: ir.Model) -> Rewritten:
        if not _plan(model.graph):
            return Rewritten(model, 0)
        model = model.clone()
        plan = _plan(model.graph)
        made: dict[tuple[object, ...], ir.Value] = {}
        for place in plan:
            key = (place.chosen.weight, *place.node.inputs[1:], *_layout(place.node))
            if key not in made:
                made[key] = _float_weight(model.graph, place)
            _replace(place, made[key])
        common.RemoveUnusedNodesPass()(model)
        return Rewritten(model, hits=len(plan))

    return Pass(DECLARATION, rewrite)


def _plan(graph: ir.Graph) -> list[_Place]:
    return [place for node in graph if (place := _place(node)) is not None]


def _place(node: ir.Node) -> _Place | None:
    if node.op_type != "DequantizeLinear" or node.domain not in DEQUANTISING:
        return None
    scale = tensor_of(node.inputs[1])
    zero_point = node.inputs[2] if len(node.inputs) > 2 else None
    if scale is None or (zero_point is not None and tensor_of(zero_point) is None):
        return None
    chosen = chosen_from(node.inputs[0])
    if chosen is None or not _fits(node, chosen.tensor, scale, bool(chosen.chain)):
        return None
    return _Place(node, chosen)


def _fits(node: ir.Node, quantised: ir.TensorProtocol, scale: ir.TensorProtocol, chosen: bool) -> bool:
    """Whether there is one scale; or, for a weight that is read whole, as many as its axis or its blocks ask for."""
    if scale.size == 1:
        return True
    axis, block = _layout(node)
    sizes = quantised.shape.numpy()
    if chosen or not -len(sizes) <= axis < len(sizes):
        return False
    return scale.size == sizes[axis] if not block else len(scale.shape.numpy()) == len(sizes)


def _layout(node: ir.Node) -> tuple[int, int]:
    """The axis of several scales, and how many indices share one (block_size is of opset 21)."""
    return node.attributes.get_int("axis", 1), node.attributes.get_int("block_size", 0)


def _float_weight(graph: ir.Graph, place: _Place) -> ir.Value:
    inputs = [tensor_of(value) for value in place.node.inputs[1:]]
    scale, zero_point = (*inputs, None)[:2]
    assert scale is not None
    values = dequantised(place.chosen.tensor, scale, zero_point, *_layout(place.node))
    return add_constant(graph, f"{place.chosen.weight.name}_{DECLARATION.name}", values, scale.dtype)


def _replace(place: _Place, weight: ir.Value) -> None:
    """Choose from the float weight as from the quantised one, in the place of the DequantizeLinear."""
    draft, chosen = Draft(), weight
    for step in reversed(place.chosen.chain):
        draft.nodes.append(ir.node(step.op_type, [chosen, *step.inputs[1:]], step.attributes))
        chosen = draft.nodes[-1].outputs[0]
    if not draft.nodes and not place.node.outputs[0].is_graph_output():
        place.node.outputs[0].replace_all_uses_with(weight)
        return
    result = chosen if draft.nodes else draft.add("Identity", weight)
    splice(place.node, draft.nodes, [result], DECLARATION.name)
