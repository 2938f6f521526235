"""Write out the padding that `auto_pad` and `output_shape` leave to the reader.

Before:  auto_pad SAME_UPPER, SAME_LOWER or VALID, or a ConvTranspose with output_shape
After:   pads, for a ConvTranspose output_padding too, and neither of the two

Along an axis of length n, with stride s and d(k - 1) + 1 = e the kernel's extent:
a Conv or pool    SAME gives ceil(n / s) steps and pads p = max((ceil(n / s) - 1) s + e - n, 0) in all;
a ConvTranspose   SAME gives n s steps, output_shape its own; s (n - 1) + e + output_padding are there, and pads are
                  what is over. Where that is less, output_padding makes up for it.
An odd p has its larger half behind for SAME_UPPER, before for SAME_LOWER and for an output_shape alone.

The toolkit dies of SAME in one dimension and in a ConvTranspose ("Node (op)"), takes SAME_UPPER for SAME_LOWER in two
(-3 dB for a Conv, -inf for a MaxPool), and halves an odd padding of output_shape the other way (-2.6 dB). Explicit pads
are right (measured, rknn-toolkit2 2.3.2, rk3588).

Preconditions: a known length and kernel; an output_padding below the stride; and not where onnxruntime 1.23 departs
from ONNX, so that nothing proves the rewrite: dilation beside SAME (a Conv is not run, a pool ignores it), a SAME
kernel shorter than the stride (a Conv or pool crops the front, a ConvTranspose gives less than n s steps).

Exact: the same padding.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from surgery.declaration import Declaration, Exact, Pass, Refused, Rewritten
from surgery.inferred import static_shape
from surgery.matching import Matched, is_one_of
from surgery.naming import node_label
from surgery.node_rewrites import rewrite_nodes

KNOWN_LENGTH = "a known input shape"
KNOWN_KERNEL = "a known kernel shape"
SMALL_OUTPUT_PADDING = "an output_padding below the stride"
UNDILATED = "dilation 1 beside auto_pad SAME"
REACHING_KERNEL = "a kernel as long as the stride beside auto_pad SAME"

_PLACING = frozenset({"auto_pad", "dilations", "kernel_shape", "pads", "strides"})
_CHANNELS = {"group": "says which channels are summed"}
_POOLING = "says what is made of a window, not where it lies"
_CEIL = {"ceil_mode": "the padding of SAME leaves no rest to round; VALID pads nothing"}

TRANSPOSED = Matched("ConvTranspose", used=_PLACING | {"output_padding", "output_shape"}, irrelevant=_CHANNELS)

DECLARATION = Declaration(
    name="normalise_auto_pad",
    summary="pads in place of auto_pad and output_shape",
    exactness=Exact("the padding that ONNX derives, written out"),
    after=frozenset({"fold_constants"}),
    matches=(
        Matched("Conv", used=_PLACING, irrelevant=_CHANNELS),
        TRANSPOSED,
        Matched("MaxPool", used=_PLACING, irrelevant={**_CEIL, "storage_order": _POOLING}),
        Matched("AveragePool", used=_PLACING, irrelevant={**_CEIL, "count_include_pad": _POOLING}),
        Matched("LpPool", used=_PLACING, irrelevant={**_CEIL, "p": _POOLING}),
    ),
    preconditions=(KNOWN_LENGTH, KNOWN_KERNEL, SMALL_OUTPUT_PADDING, UNDILATED, REACHING_KERNEL),
)


@dataclass(frozen=True)
class _Axis:
    """One spatial axis: its length (0 where not needed), kernel, stride and dilation."""

    length: int
    kernel: int
    stride: int
    dilation: int

    @property
    def extent(self) -> int:
        """How many steps the dilated kernel spans."""
        return self.dilation * (self.kernel - 1) + 1


@dataclass(frozen=True)
class _Padding:
    """What a node gets: pads as ONNX lists them (starts, then ends), and output_padding (none: as it is)."""

    node: ir.Node
    pads: tuple[int, ...]
    output_padding: tuple[int, ...] = ()


def normalise_auto_pad() -> Pass:
    """The pass; its hits are the nodes."""
    return Pass(DECLARATION, _rewrite)


def _rewrite(model: ir.Model) -> Rewritten:
    return rewrite_nodes(model, _is_implicit, _look, _write)


def _is_implicit(node: ir.Node) -> bool:
    return is_one_of(node, DECLARATION.matches) and (_auto_pad(node) != "NOTSET" or "output_shape" in node.attributes)


def _auto_pad(node: ir.Node) -> str:
    return node.attributes["auto_pad"].as_string() if "auto_pad" in node.attributes else "NOTSET"


def _look(node: ir.Node) -> _Padding | Refused | None:
    """The plan for one node; None where its attributes fit nothing, which onnxruntime will say."""
    kernel = _kernel(node)
    if kernel is None:
        return Refused(node_label(node), KNOWN_KERNEL, "a kernel_shape or weights of known shape", "neither")
    rank = len(kernel)
    if _auto_pad(node) == "VALID" and "output_shape" not in node.attributes:
        return _Padding(node, (0,) * 2 * rank)
    shape = static_shape(node.inputs[0])
    if shape is None or len(shape) != rank + 2:
        got = "no static shape" if shape is None else f"{list(shape)}"
        return Refused(node_label(node), KNOWN_LENGTH, f"a static shape of rank {rank + 2}", got)
    strides, dilations = _ints(node, "strides", [1] * rank), _ints(node, "dilations", [1] * rank)
    if not _is_sound(node, rank, strides, dilations):
        return None
    axes = [_Axis(*sizes) for sizes in zip(shape[2:], kernel, strides, dilations, strict=True)]
    if node.op_type == TRANSPOSED.op:
        return _transposed(node, axes)
    fault = _undilated(node, axes)
    if fault is not None:
        return fault
    missing = [(-(-axis.length // axis.stride) - 1) * axis.stride + axis.extent - axis.length for axis in axes]
    if min(missing) < -_steps_left(node):
        return _short(node, axes[missing.index(min(missing))])
    return _Padding(node, _halves([max(more, 0) for more in missing], more_behind=_auto_pad(node) == "SAME_UPPER"))


def _steps_left(node: ir.Node) -> int:
    """How many steps onnxruntime 1.23 leaves behind the last window; of more, SAME crops some in front (measured)."""
    return 1 + (node.op_type == "Conv") + (_auto_pad(node) == "SAME_LOWER")


def _undilated(node: ir.Node, axes: list[_Axis]) -> Refused | None:
    dilation = max(axis.dilation for axis in axes)
    return None if dilation == 1 else Refused(node_label(node), UNDILATED, "1", f"{node.op_type} has {dilation}")


def _short(node: ir.Node, axis: _Axis) -> Refused:
    return Refused(node_label(node), REACHING_KERNEL, f"{axis.stride} at least", f"the kernel has {axis.extent}")


def _is_sound(node: ir.Node, rank: int, strides: list[int], dilations: list[int]) -> bool:
    output_padding = _ints(node, "output_padding", [0] * rank)
    output_shape = _ints(node, "output_shape", [1] * rank)
    lengths = {len(strides), len(dilations), len(output_padding)}
    return lengths == {rank} and len(output_shape) in (rank, rank + 2) and min(strides + dilations) > 0


def _kernel(node: ir.Node) -> tuple[int, ...] | None:
    if "kernel_shape" in node.attributes:
        return tuple(node.attributes["kernel_shape"].as_ints())
    shape = static_shape(node.inputs[1]) if len(node.inputs) > 1 else None
    return None if shape is None else shape[2:]


def _ints(node: ir.Node, name: str, absent: list[int]) -> list[int]:
    return list(node.attributes[name].as_ints()) if name in node.attributes else absent


def _transposed(node: ir.Node, axes: list[_Axis]) -> _Padding | Refused:
    given = _ints(node, "output_padding", [0] * len(axes))
    # ONNX lets output_shape name the spatial axes alone, or all.
    wanted = _ints(node, "output_shape", [axis.length * axis.stride for axis in axes])[-len(axes) :]
    over = [
        axis.stride * (axis.length - 1) + axis.extent + more - length
        for axis, more, length in zip(axes, given, wanted, strict=True)
    ]
    if "output_shape" not in node.attributes and min(over) < 0:
        return _short(node, axes[over.index(min(over))])
    output_padding = tuple(more + max(-rest, 0) for more, rest in zip(given, over, strict=True))
    for axis, more in zip(axes, output_padding, strict=True):
        if more >= axis.stride:
            return Refused(node_label(node), SMALL_OUTPUT_PADDING, f"less than {axis.stride}", str(more))
    pads = _halves([max(rest, 0) for rest in over], more_behind=_auto_pad(node) == "SAME_UPPER")
    return _Padding(node, pads, output_padding)


def _halves(totals: list[int], *, more_behind: bool) -> tuple[int, ...]:
    small, large = [total // 2 for total in totals], [total - total // 2 for total in totals]
    return (*small, *large) if more_behind else (*large, *small)


def _write(padding: _Padding) -> None:
    attributes = padding.node.attributes
    for name in ("auto_pad", "output_shape"):
        attributes.pop(name, None)
    attributes["pads"] = ir.AttrInt64s("pads", padding.pads)
    if any(padding.output_padding):
        attributes["output_padding"] = ir.AttrInt64s("output_padding", padding.output_padding)
