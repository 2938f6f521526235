"""The spatial axes of a convolution or pool, read from its attributes and the shape of its input."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from contracts.convolution_fields import Axis, spatial_axes
from surgery.declaration import Refused
from surgery.graph import input_at
from surgery.inferred import static_shape
from surgery.matching import Matched
from surgery.naming import node_label

STATIC_LENGTH = "static lengths"
EXPLICIT_PADS = "explicit pads"
EVERY_AXIS = "one number an axis"

CONV = Matched(
    "Conv",
    used=frozenset({"dilations", "group", "kernel_shape", "pads", "strides"}),
    required={"auto_pad": "NOTSET or VALID"},
)

CONV_TRANSPOSE = Matched(
    "ConvTranspose",
    used=frozenset({"dilations", "group", "kernel_shape", "output_padding", "pads", "strides"}),
    required={"auto_pad": "NOTSET or VALID", "output_shape": "absent"},
)
"""As passes match them that read their axes here, and rewrite them along these."""

PRECONDITIONS = (STATIC_LENGTH, EXPLICIT_PADS, EVERY_AXIS)

_EXPLICIT = ("", "NOTSET", "VALID")


def axes_of(node: ir.Node) -> tuple[Axis, ...] | Refused:
    """The axes of `node`, a Conv, ConvTranspose or pool, in order; or what of it is not known."""
    label = node_label(node)
    auto_pad = node.attributes.get_string("auto_pad") or ""
    if auto_pad not in _EXPLICIT:
        return Refused(label, EXPLICIT_PADS, "auto_pad NOTSET or VALID", f"auto_pad {auto_pad}")
    lengths, kernel = static_shape(node.inputs[0]), kernel_of(node)
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
    weight = static_shape(input_at(node, 1)) or ()
    return list(node.attributes.get_ints("kernel_shape") or weight[2:])


def numbers(node: ir.Node, name: str, default: Sequence[int]) -> list[int]:
    """The attribute `name` of `node`, or `default` where it is absent."""
    return list(node.attributes.get_ints(name) or default)
