"""Forms of operators that the toolkit breaks on, where it takes the operator in others.

Measured with rknn-toolkit2 2.3.2 for rk3566, rk3576 and rk3588, one node a graph; what it says names no node:
a cubic Resize                      SIGSEGV in OpEmit
a Resize of rank 5, nearest too     "free(): invalid pointer", SIGABRT
a MaxPool over three axes           "vector::_M_range_check", SIGABRT; an AveragePool is right
a MaxPool with dilations            "only support dilations=1"
an LSTM with peepholes              "SubGraphManager: not support yet", SIGSEGV
a Cast to uint8 or uint16           "Not Support Dtype: 2. please check precision!"; int8 is right
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import onnx_ir as ir

_PEEPHOLES = 7
"""Position of the input P of an LSTM (ONNX operator specification)."""

_LARGEST_RESIZED_RANK = 4


def broken_form(node: ir.Node) -> str | None:
    """Why the toolkit breaks on `node`, of ONNX's own domain, and what to do; None where it is not known to."""
    found = _FORMS.get(node.op_type)
    return found(node) if found is not None else None


def _cast(node: ir.Node) -> str | None:
    kind = node.attributes.get_int("to", 0)
    if kind not in (ir.DataType.UINT8, ir.DataType.UINT16):
        return None
    return f"the toolkit has no {ir.DataType(kind).name.lower()}: cast to int32, or leave the values floats"


def _lstm(node: ir.Node) -> str | None:
    if len(node.inputs) <= _PEEPHOLES or node.inputs[_PEEPHOLES] is None:
        return None
    return "the toolkit has no peepholes: export an LSTM without"


def _max_pool(node: ir.Node) -> str | None:
    if any(step != 1 for step in node.attributes.get_ints("dilations", ())):
        return "the toolkit has no dilations of a MaxPool: use a pool without"
    if len(node.attributes.get_ints("kernel_shape", ())) > 2:
        return "the toolkit breaks on a MaxPool over three axes: pool over two, then over the third"
    return None


def _resize(node: ir.Node) -> str | None:
    if node.attributes.get_string("mode", "nearest") == "cubic":
        return "the toolkit breaks on a cubic Resize: use a linear one"
    if _rank(node) > _LARGEST_RESIZED_RANK:
        return "the toolkit breaks on a Resize of rank 5: fold an axis that stays into the batch by a Reshape"
    return None


def _rank(node: ir.Node) -> int:
    """Of the first input; 0 where it is not known."""
    shape = node.inputs[0].shape if node.inputs and node.inputs[0] is not None else None
    return 0 if shape is None else len(shape)


_FORMS: Mapping[str, Callable[[ir.Node], str | None]] = {
    "Cast": _cast,
    "LSTM": _lstm,
    "MaxPool": _max_pool,
    "Resize": _resize,
}
