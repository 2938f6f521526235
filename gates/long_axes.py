"""What of a node overflows a field by the length of its last axis (`contracts.axis_fields`).

Left to the log: masks, for whether one overflows depends on its layout, which the compiler chooses; and a value less
its own ReduceMean, and its quotient by a root, for where that is a normalisation the compiler makes one layer of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx_ir as ir

from contracts.axis_fields import (
    COPYING_MODES,
    LONGEST_PADDED,
    LONGEST_SPREAD,
    PADDED_OFFSETS,
    SPREAD_OFFSETS,
    SPREADING,
    padded_overflow,
    spread_overflow,
)

_BINARY = 2

_ROOTS = frozenset({"Pow", "Sqrt"})

_FLOATS = frozenset({ir.DataType.FLOAT, ir.DataType.FLOAT16})
"""Types of the NPU's own layers; the log judges the others."""


def long_axis_overflows(node: ir.Node, target: str) -> Iterator[tuple[str, str]]:
    """What of `node` overflows on `target`, and the REGTASK key, without the core, that the compiler would log."""
    if node.op_type in SPREADING and len(node.inputs) == _BINARY and not _may_be_norm(node):
        for wide, narrow in ((0, 1), (1, 0)):
            yield from _spread(node.inputs[wide], node.inputs[narrow], target)
    if node.op_type == "Pad" and (node.attributes.get_string("mode") or "") in COPYING_MODES:
        yield from _padded(node, target)


def _may_be_norm(node: ir.Node) -> bool:
    """Whether `node` is the beginning or the end of a normalisation by ReduceMean, Sub, Sqrt and Div."""
    wide, narrow = node.inputs
    maker = narrow.producer() if narrow is not None else None
    if node.op_type == "Sub":
        return maker is not None and maker.op_type == "ReduceMean" and maker.inputs[0] is wide
    centred = wide.producer() if wide is not None else None
    rooted = maker is not None and maker.op_type in _ROOTS
    return rooted and centred is not None and centred.op_type == "Sub" and _may_be_norm(centred)


def _spread(wide: ir.Value | None, narrow: ir.Value | None, target: str) -> Iterator[tuple[str, str]]:
    full, part = _sizes(wide), _sizes(narrow)
    if (
        wide is not None
        and wide.dtype in _FLOATS
        and full
        and part
        and not _is_constant(narrow)
        and spread_overflow(full, part)
    ):
        text = f"spreads {list(part)} over {full[-1]} steps, and at most {LONGEST_SPREAD} fit"
        yield text, _key(SPREAD_OFFSETS[target])


def _padded(node: ir.Node, target: str) -> Iterator[tuple[str, str]]:
    given = _sizes(node.inputs[0]) if node.inputs else ()
    pads = node.inputs[1].const_value if len(node.inputs) == _BINARY and node.inputs[1] is not None else None
    counts = [] if pads is None else np.asarray(pads.numpy()).tolist()
    if len(counts) != 2 * len(given):
        return
    before, behind = counts[len(given) - 1 : len(given)] + counts[-1:] if given else (0, 0)
    if min(before, behind) >= 0 and padded_overflow(given, before, behind):
        text = f"copies steps into an axis of {before + given[-1] + behind}, and at most {LONGEST_PADDED} fit"
        yield text, _key(PADDED_OFFSETS[target])


def _is_constant(value: ir.Value | None) -> bool:
    """Whether `value` is a weight or made by a Constant node."""
    producer = value.producer() if value is not None else None
    made = producer is not None and producer.op_type == "Constant"
    return made or (value is not None and value.is_initializer())


def _sizes(value: ir.Value | None) -> Sequence[int]:
    """The sizes of `value`; none where one is not fixed."""
    shape = value.shape if value is not None else None
    return tuple(shape.numpy()) if shape is not None and shape.is_static() else ()


def _key(offset: int) -> str:
    return f"{offset:#x}:0:0x1fff"
