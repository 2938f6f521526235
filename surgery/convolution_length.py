"""The length of what a Conv or ConvTranspose makes, exactly; where it is not the rate times its input's, why.

With T = pads - dilation (kernel - 1) - 1, both pads summed (ONNX operator specification, Conv and ConvTranspose):

    Conv            out = floor((in + T) / stride) + 1           = in / stride  where  -stride <= T <= -1
    ConvTranspose   out = stride (in - 1) + output_padding - T   = in * stride  where  T = output_padding - stride
"""

from __future__ import annotations

import onnx_ir as ir

from surgery.declaration import Refused
from surgery.graph import input_at
from surgery.matching import Matched
from surgery.naming import node_label

EXPLICIT_PADS = "explicit pads"
NO_OUTPUT_SHAPE = "no output_shape"
ONE_AXIS = "one spatial axis"
KNOWN_KERNEL = "a known kernel length"
WHOLE_RATE = "an output of exactly the rate times the input's length"

PRECONDITIONS = (EXPLICIT_PADS, NO_OUTPUT_SHAPE, ONE_AXIS, KNOWN_KERNEL, WHOLE_RATE)

_IRRELEVANT = {"group": "says which channels are summed; the time axis is not touched"}

CONV = Matched(
    op="Conv",
    used=frozenset({"dilations", "kernel_shape", "pads", "strides"}),
    required={"auto_pad": "NOTSET"},
    irrelevant=_IRRELEVANT,
)
CONV_TRANSPOSE = Matched(
    op="ConvTranspose",
    used=CONV.used | {"output_padding"},
    required={"auto_pad": "NOTSET", "output_shape": "absent"},
    irrelevant=_IRRELEVANT,
)


def length_fault(node: ir.Node) -> Refused | None:
    """Why the output of `node`, a Conv or ConvTranspose, is not its rate times its input long; None where it is."""
    name = node_label(node)
    auto_pad = node.attributes.get("auto_pad")
    if auto_pad is not None and auto_pad.value != "NOTSET":
        return Refused(name, EXPLICIT_PADS, "auto_pad NOTSET", f"auto_pad {auto_pad.value}")
    if "output_shape" in node.attributes:
        return Refused(name, NO_OUTPUT_SHAPE, "absent", f"output_shape {node.attributes['output_shape'].value}")
    sizes = {attribute: _numbers(node, attribute, default) for attribute, default in _DEFAULTS.items()}
    broken = [attribute for attribute, numbers in sizes.items() if numbers is None]
    if broken:
        got = ", ".join(f"{attribute} {node.attributes[attribute].value}" for attribute in broken)
        return Refused(name, ONE_AXIS, "one number, and two pads", got)
    kernel = _kernel(node)
    if kernel is None:
        return Refused(name, KNOWN_KERNEL, "a kernel_shape, or weights of known shape", "neither")
    if len(kernel) != 1:
        return Refused(name, ONE_AXIS, "a kernel of one axis", f"a kernel of shape {list(kernel)}")
    return _rate_fault(node, {attribute: sum(numbers or ()) for attribute, numbers in sizes.items()}, kernel[0])


_DEFAULTS = {"strides": (1,), "dilations": (1,), "pads": (0, 0), "output_padding": (0,)}
"""ONNX's, for one spatial axis."""


def _rate_fault(node: ir.Node, sizes: dict[str, int], kernel: int) -> Refused | None:
    stride = sizes["strides"]
    trimmed = sizes["pads"] - sizes["dilations"] * (kernel - 1) - 1
    if node.op_type == CONV.op:
        holds, limit = -stride <= trimmed <= -1, f"from {-stride} to -1"
    else:
        holds, limit = trimmed == sizes["output_padding"] - stride, str(sizes["output_padding"] - stride)
    what = f"pads - dilation * (kernel - 1) - 1 = {trimmed} (stride {stride}, kernel {kernel})"
    return None if holds else Refused(node_label(node), WHOLE_RATE, limit, what)


def _numbers(node: ir.Node, name: str, default: tuple[int, ...]) -> tuple[int, ...] | None:
    """The attribute `name`, or `default`; None where it is not as many whole numbers as that."""
    attribute = node.attributes.get(name)
    if attribute is None:
        return default
    numbers = tuple(attribute.as_ints()) if attribute.type == ir.AttributeType.INTS else ()
    return numbers if len(numbers) == len(default) else None


def _kernel(node: ir.Node) -> tuple[int, ...] | None:
    stated = node.attributes.get("kernel_shape")
    if stated is not None and stated.type == ir.AttributeType.INTS:
        return tuple(stated.as_ints())
    weight = input_at(node, 1)
    sizes = tuple(weight.shape)[2:] if weight is not None and weight.shape is not None else ()
    return tuple(size for size in sizes if isinstance(size, int)) or None
