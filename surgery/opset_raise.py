"""Operators of opsets 7 to 12 as opset 13 writes them: what were attributes are inputs, softmax works on one axis.

Each step takes a node and drafts what stands for it; a text is why it cannot. The semantics are those of ONNX's
operator changelog; softmax before 13 flattens to two axes at `axis` and works on the second.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from surgery.graph import input_at
from surgery.splice import Draft, constant, whole_numbers
from surgery.weights import tensor_of

Outcome = list[ir.Value] | str
"""What stands for the named outputs, or why nothing can."""

Step = Callable[[ir.Node, Draft], Outcome]


def _same(
    node: ir.Node, draft: Draft, inputs: Sequence[ir.Value | None], without: Sequence[str] = (), **new: Any
) -> Outcome:
    """The same operator with other inputs and attributes."""
    kept = {name: value for name, value in node.attributes.items() if name not in without}
    draft.add(node.op_type, *inputs, outputs=len(node.outputs), copied=kept, **new)
    made = draft.nodes[-1]
    return [new for old, new in zip(node.outputs, made.outputs, strict=True) if old.name]


def _ints(node: ir.Node, name: str) -> ir.Value | None:
    attribute = node.attributes.get(name)
    return None if attribute is None else whole_numbers(list(attribute.as_ints()))


def _scalar(node: ir.Node, name: str, absent: float | None) -> ir.Value | None:
    """The attribute `name` as a scalar of the type that the node works in."""
    attribute = node.attributes.get(name)
    number = absent if attribute is None else attribute.as_float()
    return None if number is None else constant(number, dtype_of(node))


def dtype_of(node: ir.Node) -> ir.DataType:
    """The type of the node's first input; float32 where nothing says it."""
    first = input_at(node, 0)
    return ir.DataType.FLOAT if first is None or first.dtype is None else first.dtype


def _listed(*names: str) -> Step:
    """Lists of whole numbers that become inputs behind the first, in this order."""

    def step(node: ir.Node, draft: Draft) -> Outcome:
        lists = [_ints(node, name) for name in names]
        while lists and lists[-1] is None:
            lists.pop()
        return _same(node, draft, [node.inputs[0], *lists], without=names)

    return step


def _clip(node: ir.Node, draft: Draft) -> Outcome:
    bounds = [_scalar(node, "min", None), _scalar(node, "max", None)]
    return _same(node, draft, [node.inputs[0], *bounds], without=("min", "max"))


def _pad(node: ir.Node, draft: Draft) -> Outcome:
    inputs = [node.inputs[0], _ints(node, "pads"), _scalar(node, "value", 0.0)]
    return _same(node, draft, inputs, without=("pads", "value"))


def _top_k(node: ir.Node, draft: Draft) -> Outcome:
    return _same(node, draft, [node.inputs[0], whole_numbers([node.attributes["k"].as_int()])], without=("k",))


def _dropout(node: ir.Node, draft: Draft) -> Outcome:
    """Up to opset 11 the mask says what is dropped, of the data's type up to 9; from 12 on what is kept."""
    if len(node.outputs) > 1 and (node.outputs[1].uses() or node.outputs[1].is_graph_output()):
        return "its mask is read"
    return _same(node, draft, node.inputs, without=("ratio",))


def _batch_normalization(node: ir.Node, draft: Draft) -> Outcome:
    spatial = node.attributes.get("spatial")
    if spatial is not None and not spatial.as_int():
        return "spatial is 0: a mean for each element"
    return _same(node, draft, node.inputs, without=("spatial",))


def _upsample(node: ir.Node, draft: Draft) -> Outcome:
    listed = node.attributes.get("scales")
    scales = constant(list(listed.as_floats())) if listed is not None else node.inputs[1]
    return _resized(node, draft, scales)


def _resize(node: ir.Node, draft: Draft) -> Outcome:
    return _resized(node, draft, node.inputs[1])


def _resized(node: ir.Node, draft: Draft, scales: ir.Value | None) -> Outcome:
    """Up to opset 10: x / scale, and for the nearest the step below (growing) or above (shrinking), as onnxruntime."""
    mode = node.attributes["mode"].as_string() if "mode" in node.attributes else "nearest"
    rounding = "floor"
    if mode == "nearest":
        known = tensor_of(scales)
        factors = np.ones(0) if known is None else known.numpy()
        if node.op_type == "Resize" and known is None:
            return "its scales are computed"
        if np.any(factors < 1):
            if np.any(factors > 1):
                return f"the scales {factors.tolist()} grow one axis and shrink another"
            rounding = "ceil"
    placed = "asymmetric"
    return [
        draft.add(
            "Resize", node.inputs[0], None, scales,
            mode=mode, coordinate_transformation_mode=placed, nearest_mode=rounding,
        )
    ]  # fmt: skip


def _resize_11(node: ir.Node, draft: Draft) -> Outcome:
    """In opset 11 roi and scales had to be there, empty where they said nothing."""
    inputs = [value if place == 0 or not _is_empty(value) else None for place, value in enumerate(node.inputs)]
    return _same(node, draft, inputs)


def _is_empty(value: ir.Value | None) -> bool:
    known = tensor_of(value)
    return known is not None and known.size == 0


def _softmax(node: ir.Node, draft: Draft) -> Outcome:
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 1
    given = node.inputs[0]
    rank = None if given is None or given.shape is None else len(given.shape)
    if axis == -1 or (rank is not None and axis % rank == rank - 1):
        return _same(node, draft, node.inputs, axis=-1)
    flat = draft.add("Flatten", given, axis=axis)
    made = draft.add(node.op_type, flat, axis=-1)
    return [draft.add("Reshape", made, draft.add("Shape", given))]


def _scatter(node: ir.Node, draft: Draft) -> Outcome:
    return [draft.add("ScatterElements", *node.inputs, copied=node.attributes)]


def _scan(node: ir.Node, draft: Draft) -> Outcome:
    return "a Scan of before opset 9 has sequence lengths"


RAISED: Mapping[str, Sequence[tuple[int, Step]]] = {
    "BatchNormalization": ((9, _batch_normalization),),
    "Clip": ((11, _clip),),
    "Dropout": ((12, _dropout),),
    "Hardmax": ((13, _softmax),),
    "LogSoftmax": ((13, _softmax),),
    "Pad": ((11, _pad),),
    "ReduceSum": ((13, _listed("axes")),),
    "Resize": ((11, _resize), (13, _resize_11)),
    "Scan": ((9, _scan),),
    "Scatter": ((13, _scatter),),
    "Slice": ((10, _listed("starts", "ends", "axes")),),
    "Softmax": ((13, _softmax),),
    "Split": ((13, _listed("split")),),
    "Squeeze": ((13, _listed("axes")),),
    "TopK": ((10, _top_k),),
    "Unsqueeze": ((13, _listed("axes")),),
    "Upsample": ((13, _upsample),),
}
"""For an operator, the opsets below which a step holds, and the step; the first that holds is taken."""


def raised(node: ir.Node, opset: int) -> Step | None:
    """How `node` of `opset` (7 to 12) becomes one of opset 13; None where it is one already."""
    return next((step for below, step in RAISED.get(node.op_type, ()) if opset < below), None)
