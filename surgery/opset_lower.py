"""Operators of opsets above 19 as opset 19 writes them.

An operator whose signature and meaning are the same but for further types stays as it is. One that changed is drafted
again, one that is new is what ONNX's own function body makes of it. A text is why nothing can be done.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import onnx_ir as ir
from onnx import defs

from contracts.onnx_versions import HIGHEST_OPSET
from surgery.graph import input_at
from surgery.group_normalization import group_normalization
from surgery.opset_raise import Outcome
from surgery.splice import Draft
from surgery.weights import tensor_of

NEUTRAL: Mapping[str, Mapping[str, Collection[int | str] | None]] = {
    "Cast": {"round_mode": None},
    "CastLike": {"round_mode": None},
    "DequantizeLinear": {"block_size": (0,), "output_dtype": (0,)},
    "QuantizeLinear": {"block_size": (0,), "output_dtype": (0,), "precision": (0, 1)},
    "Range": {"stash_type": None},
    "SpaceToDepth": {"mode": ("DCR",)},
}
"""Attributes that opset 19 does not have, and the values at which they ask for what it does; None is any.

round_mode is read for float8e8m0 only and stash_type for half floats only (ONNX operator changelog); precision 1 is
float32, which is what onnxruntime computes in.
"""

_MODES = {"linear": "bilinear", "cubic": "bicubic"}


WRONG_BODIES = {"AffineGrid": "ONNX's definition of it by others is wrong for a batch of one"}
"""Its body squeezes without naming axes (onnx 1.23), so that a batch of one goes too."""


def is_new(op: str) -> bool:
    """Whether opset 19 has no such operator."""
    return not defs.has(op, HIGHEST_OPSET, "")


def same_meaning(node: ir.Node, opset: int) -> bool:
    """Whether `node` stands in opset 19 as it stands in `opset`."""
    return defs.get_schema(node.op_type, opset, "").since_version <= HIGHEST_OPSET


def relabelled(node: ir.Node) -> str | None:
    """Take from `node` the neutral attributes that opset 19 does not have; returns why that is not all."""
    known = defs.get_schema(node.op_type, HIGHEST_OPSET, "")
    neutral = NEUTRAL.get(node.op_type, {})
    for name in [name for name in node.attributes if name not in known.attributes]:
        value = node.attributes[name].value
        allowed = neutral.get(name, ())
        if allowed is not None and value not in allowed:
            return f"{name} is {value}"
        del node.attributes[name]
    return _foreign_type(node, known)


LATER = frozenset({ir.DataType.BFLOAT16, ir.DataType.DOUBLE, ir.DataType.FLOAT16})
"""Types that a later pass makes float32 of, whether opset 19 has the operator for them or not."""


def _foreign_type(node: ir.Node, known: defs.OpSchema) -> str | None:
    for place, value in enumerate(node.inputs):
        if value is None or not isinstance(value.type, ir.TensorType) or value.dtype in (None, *LATER):
            continue
        formal = known.inputs[min(place, len(known.inputs) - 1)]
        spelled = f"tensor({value.type.dtype.name.lower()})"  # as ONNX's schemas do
        if spelled not in formal.types:
            return f"its input '{value.name}' is {spelled}"
    return None


def without(node: ir.Node, name: str) -> dict[str, ir.Attr]:
    """The attributes of `node` but for one."""
    return {key: value for key, value in node.attributes.items() if key != name}


def _dft(node: ir.Node, draft: Draft) -> Outcome:
    axis = input_at(node, 2)
    known = tensor_of(axis)
    if axis is not None and known is None:
        return "its axis is computed"
    number = -2 if known is None else int(known.numpy())
    if number < 0:
        shape = node.inputs[0].shape if node.inputs[0] is not None else None
        if shape is None:
            return f"its axis is {number} and the rank of its input is not known"
        number += len(shape)
    return [draft.add("DFT", *node.inputs[:2], copied=without(node, "axis"), axis=number)]


def _grid_sample(node: ir.Node, draft: Draft) -> Outcome:
    shape = node.inputs[0].shape if node.inputs[0] is not None else None
    if shape is not None and len(shape) != 4:
        return f"its input has the rank {len(shape)}, opset 19 samples images [N, C, H, W]"
    mode = node.attributes["mode"].as_string() if "mode" in node.attributes else "linear"
    return [draft.add("GridSample", *node.inputs, copied=without(node, "mode"), mode=_MODES.get(mode, mode))]


def _group_normalization(node: ir.Node, draft: Draft) -> Outcome:
    return [group_normalization(node, draft, per_channel=True)]


def _of_bools(node: ir.Node, draft: Draft) -> Outcome | None:
    if node.inputs[0] is None or node.inputs[0].dtype is not ir.DataType.BOOL:
        return None
    numbers = draft.add("Cast", node.inputs[0], to=int(ir.DataType.FLOAT))
    reduced = draft.add(node.op_type, numbers, *node.inputs[1:], copied=node.attributes)
    return [draft.add("Cast", reduced, to=int(ir.DataType.BOOL))]


LOWERED: Mapping[str, Callable[[ir.Node, Draft], Outcome | None]] = {
    "DFT": _dft,
    "GridSample": _grid_sample,
    "GroupNormalization": _group_normalization,
    "ReduceMax": _of_bools,
    "ReduceMin": _of_bools,
}
"""Operators of opset 19 whose meaning changed after it, and how the newer ones are written in it; None is
as they are."""
