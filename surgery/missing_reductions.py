"""What reductions, poolings and normalisations without a kernel on the board are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import onnx_ir as ir

from surgery.graph import input_at
from surgery.group_normalization import group_normalization
from surgery.missing_kernels import Builder, given, number
from surgery.reductions import reduced
from surgery.splice import Draft, whole_numbers


def _axes(node: ir.Node) -> ir.Value | None:
    """The axes of a reduction as an input."""
    if "axes" in node.attributes:
        return whole_numbers(list(node.attributes["axes"].as_ints()))
    return input_at(node, 1)


def _is_summed(node: ir.Node) -> bool:
    """Whether `node` reduces at all; what one with `noop_with_empty_axes` and no axes means is said in no clear way."""
    noop = "noop_with_empty_axes" in node.attributes and node.attributes["noop_with_empty_axes"].as_int()
    return not noop or (len(node.inputs) > 1 and node.inputs[1] is not None)


def _summed(builder: Builder) -> Builder:
    """`builder` for the nodes that do reduce."""
    return lambda node, draft, opset: builder(node, draft, opset) if _is_summed(node) else None


def _sum(node: ir.Node, draft: Draft, values: ir.Value) -> ir.Value:
    """`values` summed over the axes of `node`."""
    return draft.add("ReduceSum", values, _axes(node), keepdims=node.attributes.get("keepdims"))


def _l1(node: ir.Node, draft: Draft, opset: int) -> ir.Value:
    """The sum of |x|."""
    return _sum(node, draft, draft.add("Abs", given(node)))


def _sum_square(node: ir.Node, draft: Draft, opset: int) -> ir.Value:
    """The sum of x * x."""
    return _sum(node, draft, draft.add("Mul", given(node), given(node)))


def _log_sum(node: ir.Node, draft: Draft, opset: int) -> ir.Value:
    """The logarithm of the sum."""
    return draft.add("Log", _sum(node, draft, given(node)))


def _log_sum_exp(node: ir.Node, draft: Draft, opset: int) -> ir.Value:
    """m + log(sum(exp(x - m))), with m the largest x: no exponent is above 0, so nothing overflows."""
    largest = draft.add("ReduceMax", given(node), *_own_axes(node), copied=_own_attributes(node), keepdims=1)
    total = _sum(node, draft, draft.add("Exp", draft.add("Sub", given(node), largest)))
    kept = node.attributes["keepdims"].as_int() if "keepdims" in node.attributes else 1
    if not kept:
        largest = draft.add("ReduceMax", given(node), *_own_axes(node), copied=_own_attributes(node), keepdims=0)
    return draft.add("Add", draft.add("Log", total), largest)


def _own_axes(node: ir.Node) -> Sequence[ir.Value | None]:
    return node.inputs[1:]


def _own_attributes(node: ir.Node) -> dict[str, ir.Attr]:
    return {name: value for name, value in node.attributes.items() if name != "keepdims"}


def _lp_power(node: ir.Node, draft: Draft) -> ir.Value:
    """|x|^p."""
    x, p = given(node), _order(node)
    if p == 1:
        return draft.add("Abs", x)
    if p == 2:
        return draft.add("Mul", x, x)
    return draft.add("Pow", draft.add("Abs", x), number(node, p))


def _lp_root(node: ir.Node, draft: Draft, total: ir.Value) -> ir.Value:
    """total^(1/p)."""
    p = _order(node)
    if p == 1:
        return total
    return draft.add("Sqrt", total) if p == 2 else draft.add("Pow", total, number(node, 1 / p))


def _order(node: ir.Node) -> int:
    return node.attributes["p"].as_int() if "p" in node.attributes else 2


def _lp_pool(node: ir.Node, draft: Draft, opset: int) -> ir.Value | None:
    """(K * mean(|x|^p))^(1/p) over windows of K steps, padding counted as zeros."""
    kernel = node.attributes["kernel_shape"].as_ints()
    spread = "dilations" in node.attributes and any(step != 1 for step in node.attributes["dilations"].as_ints())
    rounds_up = "ceil_mode" in node.attributes and node.attributes["ceil_mode"].as_int()
    if spread or rounds_up:
        return None
    kept = {name: node.attributes.get(name) for name in ("auto_pad", "kernel_shape", "pads", "strides")}
    mean = draft.add("AveragePool", _lp_power(node, draft), copied=kept, count_include_pad=1)
    total = draft.add("Mul", mean, number(node, prod(kernel)))
    return _lp_root(node, draft, total)


def _global_lp_pool(node: ir.Node, draft: Draft, opset: int) -> ir.Value | None:
    """(sum |x|^p)^(1/p) over all axes behind the channels."""
    shape = given(node).shape
    if shape is None:
        return None
    axes = whole_numbers(range(2, len(shape)))
    return _lp_root(node, draft, draft.add("ReduceSum", _lp_power(node, draft), axes, keepdims=1))


MVN_EPSILON = 1e-9
"""What ONNX's function body adds to the deviation."""


def _mean_variance(node: ir.Node, draft: Draft, opset: int) -> ir.Value:
    """(x - mean) / (deviation + 1e-9), the variance as the mean square of x - mean, which cancels nothing."""
    axes = list(node.attributes["axes"].as_ints()) if "axes" in node.attributes else [0, 2, 3]
    centred = draft.add("Sub", given(node), reduced(draft, "ReduceMean", given(node), axes, opset))
    variance = reduced(draft, "ReduceMean", draft.add("Mul", centred, centred), axes, opset)
    deviation = draft.add("Add", draft.add("Sqrt", variance), number(node, MVN_EPSILON))
    return draft.add("Div", centred, deviation)


def _group_normalization(node: ir.Node, draft: Draft, opset: int) -> ir.Value | None:
    shape = given(node).shape
    if shape is None or not shape.is_static():
        return None
    return group_normalization(node, draft, per_channel=False)


REDUCTIONS: Mapping[str, Builder] = {
    "GlobalLpPool": _global_lp_pool,
    "GroupNormalization": _group_normalization,
    "LpPool": _lp_pool,
    "MeanVarianceNormalization": _mean_variance,
    "ReduceL1": _summed(_l1),
    "ReduceLogSum": _summed(_log_sum),
    "ReduceLogSumExp": _summed(_log_sum_exp),
    "ReduceSumSquare": _summed(_sum_square),
}
"""Builders by operator."""
