"""Structural gate: sizes that overflow a field of the hardware, found in the graph before it is built.

The compiler logs such a size as an anonymous REGTASK line and returns 0. Here the node and its attribute are named.
What is measured is in `contracts.convolution_fields` and `contracts.axis_fields` (`gates.long_axes`); what these do not
cover (three axes, other targets, pads that are not explicit, axes so long that it depends on the compiler's tiles) is
left to the log.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

import onnx_ir as ir

from contracts.convolution_fields import (
    AVERAGING_TARGETS,
    LONGEST_AVERAGE_POOL,
    LONGEST_MAX_POOL,
    POOLED_LIMIT,
    STRIDE_LIMIT,
    TRANSPOSED_FIELDS,
    TRANSPOSED_STRIDE_LIMIT,
    Axis,
    dilated_overflow,
    gathered_stride_overflow,
    overflowing,
    pooled_overflow,
    spatial_axes,
    transposed_overflow,
)
from contracts.verdicts import Verdict, at_most, passed
from gates.graphs import node_label
from gates.long_axes import long_axis_overflows
from gates.sentences import listed

GATE = "structure.fields"

CORES = {"rk3562": "t4", "rk3566": "lite", "rk3568": "lite", "rk3576": "f2", "rk3588": "v2"}
"""The target's name in REGTASK lines."""

_MOST_AXES = 2
"""Spatial axes that were measured."""


@dataclass(frozen=True)
class _Overflow:
    """What of a node overflows, and the REGTASK key, without the core, that the compiler would log first."""

    text: str
    key: str


def hardware_fields(shaped: ir.Model, target: str | None, accepted: Collection[str] = ()) -> Verdict:
    """Verdict that no size of a convolution, pool or long axis overflows a field of `target`; offenders are named.

    Args:
        shaped: the graph as `gates.graphs.with_shapes` gives it; a size that is not known is not judged.
        target: the chip, or None.
        accepted: REGTASK keys (`v2:0x1014:0:0x7`) that the user builds past.
    """
    core = CORES.get(target or "")
    if target is None or core is None:
        return passed(GATE, f"not judged: no fields were measured for {target or 'no target'}")
    offenders: dict[tuple[str, _Overflow], list[str]] = {}
    for node in shaped.graph.all_nodes():
        for overflow in _overflows(node, target):
            if f"{core}:{overflow.key}" not in accepted:
                offenders.setdefault((node.op_type, overflow), []).append(node_label(node))
    detail = "every stride, kernel and long axis fits its hardware field"
    if offenders:
        texts = [
            f"{op}, {listed(labels)}, {'each ' if len(labels) > 1 else ''}{overflow.text} ({core}:{overflow.key})"
            for (op, overflow), labels in offenders.items()
        ]
        detail = (
            f"{listed(texts)}. The compiler would build it all the same, and a board compute wrong values: change "
            "the size, or build past it with --accept-regtask and the key."
        )
    return at_most(GATE, sum(map(len, offenders.values())), 0, "sizes", detail)


def _overflows(node: ir.Node, target: str) -> Iterator[_Overflow]:
    find = _FINDERS.get(node.op_type)
    axes = _axes(node) if find is not None and node.domain in ("", "ai.onnx") else ()
    if find is not None and axes and len(axes) <= _MOST_AXES:
        yield from find(node, axes, target)
    if node.domain in ("", "ai.onnx"):
        yield from (_Overflow(text, key) for text, key in long_axis_overflows(node, target))


def _conv(_: ir.Node, axes: tuple[Axis, ...], target: str) -> Iterator[_Overflow]:
    yield from _strides(axes)
    fields = TRANSPOSED_FIELDS[target]
    for place in dilated_overflow(axes, fields.kernel):
        text = f"has a kernel of {axes[place].kernel} with dilation {axes[place].dilation}, and at most {fields.kernel}"
        yield _Overflow(f"{text} fit", _kernel_key(axes, place, target))
    for place in gathered_stride_overflow(axes):
        text = f"has a kernel of {axes[place].kernel} with dilation {axes[place].dilation}, whose taps are gathered and"
        yield _Overflow(f"{text} strided over", _stride_key(axes, place))


def _strides(axes: tuple[Axis, ...]) -> Iterator[_Overflow]:
    for place in overflowing(axes):
        text = f"has stride {axes[place].stride}, and at most {STRIDE_LIMIT} fit, or those times 2, 4, 8, ..."
        yield _Overflow(text, _stride_key(axes, place))


def _conv_transpose(node: ir.Node, axes: tuple[Axis, ...], target: str) -> Iterator[_Overflow]:
    fields = TRANSPOSED_FIELDS[target]
    weights = node.inputs[1] if len(node.inputs) > 1 else None
    computed = weights is not None and not weights.is_initializer()
    for place in transposed_overflow(axes, fields, computed):
        axis = axes[place]
        if axis.stride > TRANSPOSED_STRIDE_LIMIT:
            text = f"has stride {axis.stride}, and at most {TRANSPOSED_STRIDE_LIMIT} fit"
            yield _Overflow(text, f"0x1014:{_of_place(axes, place, '8', '11')}:0x7")
        if axis.kernel > fields.kernel:
            yield _Overflow(
                f"has a kernel of {axis.kernel}, and at most {fields.kernel} fit", _kernel_key(axes, place, target)
            )
        elif fields.reach is not None and axis.kernel - 1 - axis.pad_begin > fields.reach:
            text = f"has a kernel of {axis.kernel} with a first pad of {axis.pad_begin}, and at most {fields.reach}"
            yield _Overflow(f"{text} of kernel - 1 - pad fit", f"0x1068:{_of_place(axes, place, '4', '0')}:0xf")


def _max_pool(_: ir.Node, axes: tuple[Axis, ...], __: str) -> Iterator[_Overflow]:
    if all(axis.kernel <= LONGEST_MAX_POOL and axis.dilation == 1 for axis in axes):
        yield from _pooled(axes)


def _average_pool(node: ir.Node, axes: tuple[Axis, ...], target: str) -> Iterator[_Overflow]:
    rounds_up = node.attributes.get_int("ceil_mode", 0)
    if rounds_up or any(axis.pad_begin or axis.pad_end for axis in axes):
        return
    yield from _strides(axes)
    small = all(max(axis.kernel, axis.stride) <= LONGEST_AVERAGE_POOL for axis in axes)
    if small and target in AVERAGING_TARGETS:
        yield from _pooled(axes)


def _pooled(axes: tuple[Axis, ...]) -> Iterator[_Overflow]:
    if all(axis.kernel == 1 for axis in axes):
        return
    for place in pooled_overflow(axes):
        text = f"reads {axes[place].length} steps of an axis, and at most {POOLED_LIMIT} fit"
        yield _Overflow(text, f"{_of_place(axes, place, '0x600c', '0x6010')}:0:0x1fff")


def _stride_key(axes: tuple[Axis, ...], place: int) -> str:
    return f"0x1014:{_of_place(axes, place, '0', '3')}:0x7"


def _kernel_key(axes: tuple[Axis, ...], place: int, target: str) -> str:
    offset = "0x1038" if TRANSPOSED_FIELDS[target].reach is not None else "0x1024"
    return f"{offset}:{_of_place(axes, place, '24', '16')}:0x1f"


def _of_place(axes: tuple[Axis, ...], place: int, last: str, before: str) -> str:
    """`last` for the last axis, `before` for the one before it."""
    return last if place == len(axes) - 1 else before


_FINDERS: Mapping[str, Callable[[ir.Node, tuple[Axis, ...], str], Iterator[_Overflow]]] = {
    "AveragePool": _average_pool,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "MaxPool": _max_pool,
}


def _axes(node: ir.Node) -> tuple[Axis, ...]:
    """The spatial axes of `node`; none where something of them is not known or makes no sense."""
    sizes = _sizes(node.inputs[0])[2:] if node.inputs else []
    kernel = node.attributes.get_ints("kernel_shape") or (_sizes(node.inputs[1])[2:] if len(node.inputs) > 1 else ())
    auto_pad = node.attributes.get_string("auto_pad") or "NOTSET"
    if auto_pad not in {"NOTSET", "VALID"} or "output_shape" in node.attributes:
        return ()
    strides, dilations, pads = (node.attributes.get_ints(name) or () for name in ("strides", "dilations", "pads"))
    try:
        return spatial_axes(sizes, kernel, strides, dilations, () if auto_pad == "VALID" else pads)
    except ValueError:
        return ()


def _sizes(value: ir.Value | None) -> list[int]:
    """The sizes of `value`; none where one is not fixed."""
    sizes = list(value.shape) if value is not None and value.shape is not None else []
    known = [size for size in sizes if isinstance(size, int)]
    return known if len(known) == len(sizes) else []
