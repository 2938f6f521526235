"""Take a mean over the steps by a global pool, and a mean under a mask as a fraction of two.

Before: ReduceSum(a) / ReduceSum(b), over all axes behind the channels, both of as many numbers
After:  GlobalAveragePool(a) / GlobalAveragePool(b)

Before: ReduceMean(x), or ReduceSum(x) over its count, over the steps of x [N, C, T], which convolutions make
After:  GlobalAveragePool(x)

So a normalisation under a mask m, with mean = sum(x m) / sum(m), d = (x - mean) m and var = sum(d d) / sum(m), becomes
fractions of pools. A sum of d d leaves fp16 where T times the variance passes 65504: NaN in the simulator for 900 steps
of deviation 10, and for 7000 of 3, where the fraction gives 64 and 61 dB (rk3588). A fraction leaves it with d d alone,
|d| above 256.

The toolkit makes Transposes and a MatMul of such a sum or mean, the Transposes on the CPU on rk3566 and rk3568; of the
pool convolutions, channel by channel, of up to 7 steps each, whatever T divides by. Modelled ms of [1, 128, 1200]
between two convolutions (measured, 2.3.2), a masked normalisation, and x sigmoid(mean(x)):

                rk3588   rk3576   rk3562   rk3566 and rk3568
    sums          1.38     1.44     1.67     8.14
    fractions     1.30     1.38     1.61     5.09
    ReduceMean    0.76              1.02     5.99
    pool          0.72              0.99     4.46

Also for 64 to 512 channels and 64 to 7681 steps, primes too. On rk3566 7681 steps log 0x1028, of which engines are
known that run (`logs.regtask`).

Left alone: sums of another count, a sum that is no fraction, other axes, types, unknown shapes; the means of a
normalisation without a mask, of which the toolkit makes one layer (exNorm) if they stay as they are; means over the
last of three axes that no convolution is known to have made, for the channels may be there; means over two axes, of
which the toolkit makes a pool itself.

Exact: both sums of a fraction are divided by one count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import onnx_ir as ir

from contracts.targets import EVERY_TARGET
from surgery.declaration import Declaration, Exact, Pass, Rewritten
from surgery.elementwise import ELEMENTWISE
from surgery.graph import input_of
from surgery.inferred import static_shape
from surgery.matching import Matched, is_one_of
from surgery.node_rewrites import rewrite_nodes
from surgery.norm_chains import DIV, MUL, REDUCE_MEAN, REDUCE_SUM, SUB, centred_under, mean_of, put_in_place
from surgery.reductions import keeps_axes, reduced_axes
from surgery.splice import Draft, whole_numbers

_LAYOUT = "whatever it is, the channels come second"
CONVOLUTIONS = (
    Matched(
        "Conv",
        irrelevant=dict.fromkeys(("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"), _LAYOUT),
    ),
    Matched(
        "ConvTranspose",
        irrelevant=dict.fromkeys(
            ("auto_pad", "dilations", "group", "kernel_shape", "output_padding", "output_shape", "pads", "strides"),
            _LAYOUT,
        ),
    ),
)
"""What makes [N, C, T]."""

DECLARATION = Declaration(
    name="rewrite_means_as_pools",
    summary="a mean over the steps by a global pool, a mean under a mask as a fraction of two pools",
    exactness=Exact("both sums of a fraction are divided by one count"),
    after=frozenset(
        {"decompose_functions", "fold_constants", "fuse_instance_norm", "fuse_layer_norm", "normalise_opset"}
    ),
    matches=(*ELEMENTWISE, REDUCE_MEAN, REDUCE_SUM, *CONVOLUTIONS),
    pays_on=EVERY_TARGET,
)

_RANK, _STEPS = 3, (2,)
"""Of a mean that is no fraction."""


@dataclass(frozen=True)
class _Fraction:
    """A division of two sums."""

    node: ir.Node


@dataclass(frozen=True)
class _Mean:
    """A mean of the first input of `reader`; the shape to give it behind, where its axes do not stay."""

    node: ir.Node
    reader: ir.Node
    shape: tuple[int, ...] | None


def rewrite_means_as_pools() -> Pass:
    """The pass; its hits are fractions and means."""
    return Pass(DECLARATION, _rewrite)


def _rewrite(model: ir.Model) -> Rewritten:
    pools: dict[ir.Node, ir.Value] = {}

    def write(plan: _Fraction | _Mean) -> None:
        _write(plan, pools)

    return rewrite_nodes(model, _may_be, _plan, write)


def _may_be(node: ir.Node) -> bool:
    """Whether `node` may be one to rewrite, before its shapes are known."""
    if is_one_of(node, (REDUCE_MEAN,)):
        return True
    if not is_one_of(node, (DIV, MUL)):
        return False
    return any(made is not None and is_one_of(made, (REDUCE_SUM,)) for made in _producers(node))


def _plan(node: ir.Node) -> _Fraction | _Mean | None:
    if is_one_of(node, (REDUCE_MEAN,)):
        return _of_mean(node)
    producers = list(_producers(node))
    sums = [made for made in producers if made is not None and is_one_of(made, (REDUCE_SUM,))]
    if is_one_of(node, (DIV,)) and len(sums) == len(producers) == 2:
        counts = [_steps_summed(made) for made in sums]
        return _Fraction(node) if counts[0] is not None and counts[0] == counts[1] else None
    mean = mean_of(node.outputs[0])
    if mean is None or mean.axes != _STEPS or not _is_alone(node.outputs[0], mean.given):
        return None
    (summed,) = sums
    return _Mean(node, summed, None)


def _producers(node: ir.Node) -> Iterator[ir.Node | None]:
    return (None if value is None else value.producer() for value in node.inputs)


def _steps_summed(summed: ir.Node) -> tuple[int, ...] | None:
    """The sizes of all axes behind the channels, where these are what `summed` sums, and they stay."""
    given = input_of(summed)
    shape = static_shape(given)
    if shape is None or given.dtype is not ir.DataType.FLOAT or not keeps_axes(summed) or len(shape) < _RANK:
        return None
    return shape[2:] if reduced_axes(summed, len(shape)) == tuple(range(2, len(shape))) else None


def _of_mean(node: ir.Node) -> _Mean | None:
    given = input_of(node)
    shape = static_shape(given)
    if shape is None or len(shape) != _RANK or reduced_axes(node, _RANK) != _STEPS:
        return None
    if not _is_alone(node.outputs[0], given):
        return None
    return _Mean(node, node, None if keeps_axes(node) else shape[:2])


def _is_alone(mean: ir.Value, given: ir.Value) -> bool:
    """Whether `mean`, that of `given` over the last axis, is one over steps, and in no normalisation without a mask."""
    if given.dtype is not ir.DataType.FLOAT or static_shape(given) is None:
        return False
    subtracted = any(is_one_of(use.node, (SUB,)) and use.node.inputs[0] is given for use in mean.uses())
    return not subtracted and centred_under(given) is None and _is_of_convolutions(given)


def _is_of_convolutions(value: ir.Value) -> bool:
    """Whether a convolution made `value`, or what it is computed of element by element."""
    shape, waiting, seen = static_shape(value), [value], set[ir.Value]()
    while waiting:
        at = waiting.pop()
        node = at.producer()
        if node is None or at in seen or static_shape(at) != shape:
            continue
        seen.add(at)
        if is_one_of(node, CONVOLUTIONS):
            return True
        if is_one_of(node, ELEMENTWISE):
            waiting.extend(read for read in node.inputs if read is not None)
    return False


def _write(plan: _Fraction | _Mean, pools: dict[ir.Node, ir.Value]) -> None:
    """Write `plan`; `pools` has the pool that stands for each sum, for fractions share the count of a mask."""
    draft, node = Draft(), plan.node
    if isinstance(plan, _Mean):
        made = draft.add("GlobalAveragePool", plan.reader.inputs[0])
        if plan.shape is not None:
            made = draft.add("Reshape", made, whole_numbers(plan.shape))
        put_in_place(node, {plan.reader}, draft, made, DECLARATION.name)
        return
    sums = [summed for summed in _producers(node) if summed is not None]
    for summed in sums:
        if summed not in pools:
            pools[summed] = draft.add("GlobalAveragePool", summed.inputs[0])
    made = draft.add("Div", *(pools[summed] for summed in sums))
    put_in_place(node, sums, draft, made, DECLARATION.name)
