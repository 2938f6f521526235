"""The spatial axes of a convolution or pool, read from its attributes and the shape of its input."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from contracts.convolution_fields import Axis, spatial_axes
from surgery.declaration import Refused

STATIC_LENGTH = "static lengths"
EXPLICIT_PADS = "explicit pads"
EVERY_AXIS = "one number an axis"

PRECONDITIONS = (STATIC_LENGTH, EXPLICIT_PADS, EVERY_AXIS)

_EXPLICIT = ("", "NOTSET", "VALID")


def axes_of(node: ir.Node) -> tuple[Axis, ...] | Refused:
    """The axes of `node`, a Conv, ConvTranspose or pool, in order; or what of it is not known."""
    label = label_of(node)
    auto_pad = node.attributes.get_string("auto_pad") or ""
    if auto_pad not in _EXPLICIT:
        return Refused(label, EXPLICIT_PADS, "auto_pad NOTSET or VALID", f"auto_pad {auto_pad}")
    lengths = static_sizes(node.inputs[0])
    kernel = kernel_of(node)
    if not lengths or not kernel:
        what, value = ("weights", node.inputs[1]) if lengths else ("input", node.inputs[0])
        return Refused(label, STATIC_LENGTH, "a fixed shape", f"the {what} '{value.name if value else ''}' has none")
    strides, dilations, pads = (numbers(node, name, ()) for name in ("strides", "dilations", "pads"))
    try:
        return spatial_axes(lengths[2:], kernel, strides, dilations, [] if auto_pad == "VALID" else pads)
    except ValueError as error:
        return Refused(label, EVERY_AXIS, f"{len(lengths) - 2} numbers each, above 0 but for pads", str(error))


def kernel_of(node: ir.Node) -> list[int]:
    """The kernel of `node`, by its attribute or its weights; empty where neither says."""
    weight = node.inputs[1] if len(node.inputs) > 1 else None
    return list(node.attributes.get_ints("kernel_shape") or static_sizes(weight)[2:])


def numbers(node: ir.Node, name: str, default: Sequence[int]) -> list[int]:
    """The attribute `name` of `node`, or `default` where it is absent."""
    return list(node.attributes.get_ints(name) or default)


def static_sizes(value: ir.Value | None) -> list[int]:
    """The sizes of `value`; none where one of them is not fixed."""
    sizes = list(value.shape) if value is not None and value.shape is not None else []
    return [size for size in sizes if isinstance(size, int)] if all(isinstance(s, int) for s in sizes) else []


def label_of(node: ir.Node) -> str:
    """How a refusal names `node`: by its name, or by its first output where it has none."""
    return node.name or f"the node that makes '{node.outputs[0].name}'"
