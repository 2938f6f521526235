"""The vendor's lists of strides, kernels, pads and shapes, as warnings: measurements, never verdicts.

The lists are breached by graphs that build clean (a Conv of stride 16 and kernel 32), so the build log and the layer
table judge. Figures from the vendor's operator support list for rk3588 (toolkit-facts, Operators).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import onnx_ir as ir

from contracts.verdicts import Measurement
from gates.graphs import node_label
from gates.sentences import listed

CONV_TRANSPOSE_STRIDES = (1, 2, 4, 8)
CONV_TRANSPOSE_LONGEST_KERNEL = 31
CONV_TRANSPOSE_LARGEST_PAD = 15
CONV_LARGEST_STRIDE = 7
CONV_LONGEST_KERNEL = 31
SOFTMAX_AXES = (1, 3)
MATMUL_LARGEST_K = 8192
RESIZE_SCALES = range(2, 9)
UNSUPPORTED_BY_LIST = ("CumSum", "GatherND", "Reciprocal")
"""Listed as unsupported, but built: CumSum becomes a Conv, Reciprocal a Div on the CPU, GatherND runs on the CPU."""

Breach = tuple[str, str]
"""The name of a limit, and how a node breaches it."""


def vendor_limits(shaped: ir.Model) -> list[Measurement]:
    """One measurement for each breached limit: how many nodes breach it, and which.

    Args:
        shaped: the graph as `gates.graphs.with_shapes` gives it; a limit on an unknown shape is not judged.
    """
    breaches: dict[str, list[str]] = {}
    for node in shaped.graph.all_nodes():
        for name, text in _breaches(node):
            breaches.setdefault(name, []).append(f"{node_label(node)} {text}")
    return [
        Measurement(
            name=f"vendor.{name}",
            measured=float(len(nodes)),
            unit="nodes",
            reason=f"outside the vendor's list, which only warns (the log and the layer table judge): {listed(nodes)}",
        )
        for name, nodes in breaches.items()
    ]


def _breaches(node: ir.Node) -> Iterator[Breach]:
    if node.domain not in ("", "ai.onnx"):
        return
    if node.op_type in UNSUPPORTED_BY_LIST:
        yield "unsupported", f"is a {node.op_type}"
    check = _CHECKS.get(node.op_type)
    if check is not None:
        yield from check(node)


def _conv(node: ir.Node) -> Iterator[Breach]:
    stride = max(node.attributes.get_ints("strides") or [1])
    if stride > CONV_LARGEST_STRIDE:
        yield "conv_stride", f"has stride {stride}, not at most {CONV_LARGEST_STRIDE}"
    kernel = _longest_kernel(node)
    if kernel > CONV_LONGEST_KERNEL:
        yield "conv_kernel", f"has a kernel of {kernel}, not at most {CONV_LONGEST_KERNEL}"


def _conv_transpose(node: ir.Node) -> Iterator[Breach]:
    for stride in sorted({*(node.attributes.get_ints("strides") or [1])} - {*CONV_TRANSPOSE_STRIDES}):
        yield "conv_transpose_stride", f"has stride {stride}, not one of {CONV_TRANSPOSE_STRIDES}"
    kernel = _longest_kernel(node)
    if kernel > CONV_TRANSPOSE_LONGEST_KERNEL:
        yield "conv_transpose_kernel", f"has a kernel of {kernel}, not at most {CONV_TRANSPOSE_LONGEST_KERNEL}"
    pad = max(node.attributes.get_ints("pads") or [0])
    if pad > CONV_TRANSPOSE_LARGEST_PAD:
        yield "conv_transpose_pad", f"has a pad of {pad}, not at most {CONV_TRANSPOSE_LARGEST_PAD}"
    group = node.attributes.get_int("group", 1)
    if group != 1:
        yield "conv_transpose_group", f"has {group} groups, not 1"


def _softmax(node: ir.Node) -> Iterator[Breach]:
    shape = node.inputs[0].shape if node.inputs[0] is not None else None
    axis = node.attributes.get_int("axis", -1)
    axis = axis + len(shape) if axis < 0 and shape is not None else axis
    if axis not in SOFTMAX_AXES:
        yield "softmax_axis", f"works on axis {axis}, not one of {SOFTMAX_AXES}"


def _matmul(node: ir.Node) -> Iterator[Breach]:
    shape = node.inputs[0].shape if node.inputs[0] is not None else None
    size = shape[-1] if shape is not None and len(shape) else None
    if isinstance(size, int) and size > MATMUL_LARGEST_K:
        yield "matmul_k", f"sums over {size}, not at most {MATMUL_LARGEST_K}"


def _gather(node: ir.Node) -> Iterator[Breach]:
    shape = node.inputs[1].shape if node.inputs[1] is not None else None
    if shape is not None and len(shape) != 1:
        yield "gather_indices", f"has indices of rank {len(shape)}, not 1"


def _resize(node: ir.Node) -> Iterator[Breach]:
    source, made = (value.shape if value is not None else None for value in (node.inputs[0], node.outputs[0]))
    for before, after in zip(source or (), made or (), strict=False):
        if not isinstance(before, int) or not isinstance(after, int) or before in (0, after):
            continue
        if after % before or after // before not in RESIZE_SCALES:
            yield "resize_scale", f"scales {before} to {after}, not by an integer of 2 to 8"


def _longest_kernel(node: ir.Node) -> int:
    kernel = node.attributes.get_ints("kernel_shape")
    if kernel is None and node.inputs[1] is not None and node.inputs[1].shape is not None:
        kernel = [size for size in node.inputs[1].shape[2:] if isinstance(size, int)]
    return max(kernel or [1])


_CHECKS: Mapping[str, Callable[[ir.Node], Iterator[Breach]]] = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Gather": _gather,
    "MatMul": _matmul,
    "Resize": _resize,
    "Softmax": _softmax,
}
