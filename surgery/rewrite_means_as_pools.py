"""Take a mean over the steps by a global pool, and a mean under a mask as a fraction of two.

Before: ReduceSum(a) / ReduceSum(b), or of two ReduceMean, over all axes behind the channels, of as many numbers
After:  GlobalAveragePool(a) / GlobalAveragePool(b)

Before: ReduceMean(x), or ReduceSum(x) over its count, over the steps of x [N, C, T], which convolutions make
After:  GlobalAveragePool(x)

So a normalisation under a mask m, with mean = sum(x m) / sum(m), d = (x - mean) m and var = sum(d d) / sum(m), becomes
fractions of pools. A sum of d d leaves fp16 where T times the variance passes 65504: NaN in the simulator for 900 steps
of deviation 10, and for 7000 of 3, where the fraction gives 64 and 61 dB (rk3588). A fraction leaves it with d d alone,
|d| above 256; and it loses at the other end, where the mean of d d over all steps is below fp16's normal numbers: of
1200 steps, 120 of them valid, 46 dB at a deviation of 0.003 (the sums give 62), 59 at 0.01, as the sums from 0.03 on.

The toolkit makes Transposes and a MatMul of such a sum or mean, the Transposes on the CPU on rk3566 and rk3568; of the
pool convolutions, channel by channel, of up to 7 steps each, whatever T divides by. Modelled ms of [1, 128, 1200]
between two convolutions (measured, 2.3.2), a masked normalisation, and x sigmoid(mean(x)):

                rk3588   rk3576   rk3562   rk3566 and rk3568
    sums          1.38     1.44     1.67     8.14
    fractions     1.30     1.38     1.61     5.09
    and `rewrite_channel_differences`
                  1.24     1.32     1.55     5.03
    ReduceMean    0.76              1.02     5.99
    pool          0.72              0.99     4.46

Also for 64 to 512 channels and 64 to 7681 steps, primes too. On rk3566 7681 steps log 0x1028, of which engines are
known that run (`logs.regtask`).

Left alone: sums of different counts, a sum that is no fraction, other axes, types, unknown shapes; the means of a
normalisation without a mask, of which the toolkit makes one layer (exNorm) if they stay as they are; means over the
last of three axes that no convolution is known to have made, for the channels may be there; means over two axes, of
which the toolkit makes a pool itself.

Exact: both sums of a fraction are divided by one count.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from contracts.targets import EVERY_TARGET
from surgery.channel_layout import CONVOLUTIONS, lies_in_channels
from surgery.declaration import Declaration, Exact, Pass, Rewritten
from surgery.elementwise import ELEMENTWISE
from surgery.graph import input_of
from surgery.inferred import static_shape
from surgery.matching import is_one_of
from surgery.node_rewrites import rewrite_nodes
from surgery.norm_chains import DIV, MUL, REDUCE_MEAN, REDUCE_SUM, SUB, centred_under, mean_of, put_in_place
from surgery.reductions import keeps_axes, reduced_axes
from surgery.splice import Draft, whole_numbers

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
class _Plan:
    """What to write for `node`.

    Attributes:
        node: makes a mean, or a fraction of two.
        reductions: the one or two nodes whose first inputs are pooled.
        shape: to give a mean whose axes do not stay.
    """

    node: ir.Node
    reductions: tuple[ir.Node, ...]
    shape: tuple[int, ...] | None = None


def rewrite_means_as_pools() -> Pass:
    """The pass; its hits are fractions and means."""
    return Pass(DECLARATION, _rewrite)


def _rewrite(model: ir.Model) -> Rewritten:
    pools: dict[ir.Node, ir.Value] = {}
    return rewrite_nodes(model, _may_be, _plan, lambda plan: _write(plan, pools))


def _may_be(node: ir.Node) -> bool:
    """Whether `node` may be one to rewrite, before its shapes are known."""
    return is_one_of(node, (REDUCE_MEAN,)) or (is_one_of(node, (DIV, MUL)) and bool(_reductions(node)))


def _plan(node: ir.Node) -> _Plan | None:
    if is_one_of(node, (REDUCE_MEAN,)):
        return _of_mean(node)
    if _is_fraction(node):
        return _Plan(node, _reductions(node))
    mean = mean_of(node.outputs[0])
    if mean is None or mean.axes != _STEPS or not _is_alone(node.outputs[0], mean.given):
        return None
    return _Plan(node, _reductions(node))


def _reductions(node: ir.Node) -> tuple[ir.Node, ...]:
    """The sums and means that `node` reads."""
    producers = [value.producer() for value in node.inputs if value is not None]
    return tuple(made for made in producers if made is not None and is_one_of(made, (REDUCE_SUM, REDUCE_MEAN)))


def _is_fraction(node: ir.Node) -> bool:
    """Whether `node` divides two sums, or two means, over the same steps."""
    reductions = _reductions(node)
    if not is_one_of(node, (DIV,)) or len(reductions) != 2:
        return False
    one, other = reductions
    steps = _steps_of(one)
    return one.op_type == other.op_type and steps is not None and steps == _steps_of(other)


def _steps_of(reduction: ir.Node) -> tuple[int, ...] | None:
    """The sizes of all axes behind the channels, where these are what `reduction` is over, and they stay."""
    given = input_of(reduction)
    shape = static_shape(given)
    if shape is None or given.dtype is not ir.DataType.FLOAT or not keeps_axes(reduction) or len(shape) < _RANK:
        return None
    return shape[2:] if reduced_axes(reduction, len(shape)) == tuple(range(2, len(shape))) else None


def _of_mean(node: ir.Node) -> _Plan | None:
    given, made = input_of(node), node.outputs[0]
    shape = static_shape(given)
    if shape is None or len(shape) != _RANK or reduced_axes(node, _RANK) != _STEPS:
        return None
    if any(_is_fraction(use.node) for use in made.uses()) or not _is_alone(made, given):
        return None
    return _Plan(node, (node,), None if keeps_axes(node) else shape[:2])


def _is_alone(mean: ir.Value, given: ir.Value) -> bool:
    """Whether `mean`, that of `given` over the last axis, is one over steps, and in no normalisation without a mask."""
    if given.dtype is not ir.DataType.FLOAT or static_shape(given) is None:
        return False
    subtracted = any(is_one_of(use.node, (SUB,)) and use.node.inputs[0] is given for use in mean.uses())
    return not subtracted and centred_under(given) is None and lies_in_channels(given)


def _write(plan: _Plan, pools: dict[ir.Node, ir.Value]) -> None:
    """Write `plan`; `pools` has the pool that stands for each sum of a fraction: many share the count of a mask."""
    draft = Draft()
    if len(plan.reductions) == 1:
        made = draft.add("GlobalAveragePool", plan.reductions[0].inputs[0])
        if plan.shape is not None:
            made = draft.add("Reshape", made, whole_numbers(plan.shape))
    else:
        for reduction in plan.reductions:
            if reduction not in pools:
                pools[reduction] = draft.add("GlobalAveragePool", reduction.inputs[0])
        made = draft.add("Div", *(pools[reduction] for reduction in plan.reductions))
    put_in_place(plan.node, plan.reductions, draft, made, DECLARATION.name)
