"""Affine steps: what multiplies a tensor by constants and shifts it by others, one for each channel, in any order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from surgery.channel_layout import CONVOLUTIONS
from surgery.constant_operands import may_have_operand, operand_of
from surgery.elementwise import ELEMENTWISE
from surgery.graph import graph_of, input_of, only_reader
from surgery.graph_builder import take_place
from surgery.inferred import static_shape
from surgery.linear_layers import LARGEST_HALF, Array
from surgery.matching import Matched, is_one_of
from surgery.scopes import drop_unused_weights
from surgery.spelled_activations import SPELLED
from surgery.value_ranges import LEAKY_RELU, is_absolute
from surgery.weights import tensor_of

SCALES = (Matched("Mul"), Matched("Div"))
SHIFTS = (Matched("Add"), Matched("Sub"))
NEG = Matched("Neg")

_TAKEN = "whatever it multiplies, its weights take a scale in"
_GEMM = Matched("Gemm", irrelevant=dict.fromkeys(("alpha", "beta", "transA", "transB"), _TAKEN))
LAYERS = (*CONVOLUTIONS, _GEMM, Matched("MatMul"))

_PLAIN = tuple(matched for matched in ELEMENTWISE if matched.op != LEAKY_RELU.op)
_NAMED = frozenset(matched.op for matched in _PLAIN)
MATCHES = (*_PLAIN, *(matched for matched in SPELLED if matched.op not in _NAMED), LEAKY_RELU, *LAYERS)
"""What is looked at; affine steps are elementwise operators too."""

CONVOLVED_RANKS = (3, 4)
"""[N, C, T] and [N, C, H, W]: what the toolkit convolves."""

SMALLEST_HALF = float(np.finfo(np.float16).smallest_normal)
"""Smallest number that fp16 holds in full precision: 6.1e-5."""


@dataclass(frozen=True)
class Affine:
    """A value [N, C, ...] times `scale` [C] plus `shift` [C], which `nodes` compute, the first one first.

    Attributes:
        nodes: each but the last is read by the next one alone.
        place: where the first of them reads the value.
        scale, shift: of all of them together, in double precision.
        kinds: a letter for each node: s scales and a shifts by a constant that is the second input; S and A by one that
            is the first; r is the constant minus its input.
    """

    nodes: tuple[ir.Node, ...]
    place: int
    scale: Array
    shift: Array
    kinds: str

    @property
    def value(self) -> ir.Value:
        """What is scaled and shifted."""
        return input_of(self.nodes[0], self.place)

    @property
    def output(self) -> ir.Value:
        """What they make of it."""
        return self.nodes[-1].outputs[0]

    @property
    def fits_half(self) -> bool:
        """Whether fp16 holds the scale in full precision, and the shift at all.

        A small shift needs no precision: what it is added to has no more.
        """
        scale, shift = np.abs(self.scale), np.abs(self.shift)
        held = (scale == 0) | ((scale >= SMALLEST_HALF) & (scale <= LARGEST_HALF))
        return bool(np.all(held) and np.all(shift <= LARGEST_HALF))


def may_be_step(node: ir.Node) -> bool:
    """Whether `node` may be an affine step; asks for no shape."""
    return is_one_of(node, (NEG,)) or may_have_operand(node, (*SCALES, *SHIFTS))


def affine_ending_at(node: ir.Node) -> Affine | None:
    """All the steps in a row of which `node` is the last; None where it is none, or another one follows.

    None too where the value's shape is not known, or where a convolution could not take their place: other ranks than
    3 and 4, or a layer before them that takes them into its weights, which the compiler does where no pass has
    (nothing else reads its output).
    """
    found = _step(node)
    if found is None or _is_followed(node):
        return None
    producer = found.value.producer()
    while producer is not None and only_reader(found.value) is not None:
        if is_one_of(producer, LAYERS):
            return None
        before = _step(producer)
        if before is None:
            break
        found = _joined(before, found)
        producer = found.value.producer()
    return found


def before_steps(value: ir.Value) -> ir.Value:
    """What `value` is made of by affine steps alone, each read by one node; `value` itself where it is by none."""
    while only_reader(value) is not None and (node := value.producer()) is not None:
        step = _step(node)
        if step is None:
            break
        value = step.value
    return value


def take_affine(affine: Affine, made: ir.Value) -> None:
    """Let `made` stand for what the steps of `affine` make; they go, and their constants with them."""
    *earlier, last = affine.nodes
    graph = graph_of(last)
    constants = [value for node in affine.nodes for value in node.inputs if value is not None and tensor_of(value)]
    take_place(last, made)
    for node in reversed(earlier):
        graph.remove(node, safe=True)
    for value in dict.fromkeys(constants):
        node_of_it = value.producer()
        if value.uses() or value.is_graph_output():
            continue
        if node_of_it is not None:
            graph_of(node_of_it).remove(node_of_it, safe=True)
        elif value.name in graph.initializers:
            drop_unused_weights(graph, [value])


def is_convolved(value: ir.Value) -> bool:
    """Whether convolutions read `value` as their data, and nothing else does."""
    readers = value.uses()
    data = all(place == 0 and is_one_of(node, CONVOLUTIONS) for node, place in readers)
    return bool(readers) and data and not value.is_graph_output()


def would_be_zeroed(affine: Affine) -> bool:
    """Whether the toolkit may take a channel for zero once a layer with weights computes the steps.

    Its step `sparse_weight` does so where the weights and the bias are zero or less, the data are known to be zero or
    more (they come out of a Relu, say), and a Relu is behind; but also where what is behind is an Abs, or a LeakyRelu
    of negative slope, of which the values are then wrong (measured, 2.3.2). Data that are known to lie in a narrower
    range (a Clip's) are not looked at: `rewrite_zeroed_absolutes` mends what such a row would do, and such graphs as
    they are given.
    """
    reader = only_reader(affine.output)
    if reader is None or not np.any((affine.scale <= 0.0) & (affine.shift <= 0.0)):
        return False
    return is_absolute(reader)


def _step(node: ir.Node) -> Affine | None:
    if not may_be_step(node):
        return None
    one, none = np.ones(()), np.zeros(())
    if node.op_type == "Neg":
        return _affine(node, 0, -one, none, "s")
    operand = operand_of(node, (*SCALES, *SHIFTS))
    if operand is None or (node.op_type == "Div" and (operand.place == 1 or not np.all(operand.values))):
        return None
    place, values = operand.place, operand.values.astype(np.float64)
    if node.op_type in ("Mul", "Div"):
        scale = values if node.op_type == "Mul" else 1.0 / values
        return _affine(node, place, scale, none, "sS"[place])
    turned = node.op_type == "Sub" and place == 1
    shift = -values if node.op_type == "Sub" and not turned else values
    return _affine(node, place, -one if turned else one, shift, "r" if turned else "aA"[place])


def _affine(node: ir.Node, place: int, scale: Array, shift: Array, kind: str) -> Affine | None:
    value = node.inputs[place]
    sizes = static_shape(value)
    if value is None or sizes is None or len(sizes) not in CONVOLVED_RANKS or value.dtype is not ir.DataType.FLOAT:
        return None
    scales, shifts = _per_channel(scale, sizes), _per_channel(shift, sizes)
    return None if scales is None or shifts is None else Affine((node,), place, scales, shifts, kind)


def _per_channel(values: Array, sizes: tuple[int, ...]) -> Array | None:
    """`values`, as they broadcast with a tensor of `sizes`, as one for each channel; None where they vary otherwise."""
    shape = (1,) * (len(sizes) - values.ndim) + values.shape
    if values.size != shape[1] or shape[1] not in (1, sizes[1]):
        return None
    return np.broadcast_to(values.reshape(-1), sizes[1])


def _joined(first: Affine, then: Affine) -> Affine:
    scale, shift = first.scale * then.scale, first.shift * then.scale + then.shift
    return Affine(first.nodes + then.nodes, first.place, scale, shift, first.kinds + then.kinds)


def _is_followed(node: ir.Node) -> bool:
    """Whether the one reader of what `node` makes is an affine step too."""
    reader = only_reader(node.outputs[0])
    return reader is not None and _step(reader) is not None
