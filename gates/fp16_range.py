"""Range gate: what leaves fp16, in the weights and in the activations of an fp32 run.

fp16 ends at 65504; larger values become infinite on the NPU, and NaN soon after. Below 2^-14 a value is subnormal and
loses precision; below 2^-25 it rounds to zero.

Activations are measured inside onnxruntime: three reductions behind every tensor give its largest and smallest value
and its sum of squares (NaN exactly where the tensor holds one). One run serves all tensors and keeps none of them, so
that memory stays that of a plain run: each reduction stands right behind what it looks at, and the session keeps that
order. In onnxruntime's own, tensors waited for their reductions: 12 GB for Qwen3's step of 16 codes, which runs in
1.7 GB (measured).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from contracts.errors import RknnTtsError
from contracts.verdicts import Measurement, Status, Verdict, at_most, failure
from gates.graphs import node_label, with_shapes
from gates.sentences import listed
from gates.session import Feeds, Session

FP16_MAX = 65504.0
"""Largest finite fp16 (IEEE 754)."""

FP16_SMALLEST_NORMAL = 2.0**-14
FP16_ZERO_BELOW = 2.0**-25
"""Half the smallest subnormal, 2^-24: what is not larger rounds to zero."""

WEIGHTS_GATE = "range.weights"
ACTIVATIONS_GATE = "range.activations"
SUBNORMAL_WEIGHTS = "range.subnormal_weights"

_REMEDY = "the NPU makes infinity of it: scale the model so that it fits, or write a mask as -1e4"
"""Masks in front of a softmax are written so by the pass `rewrite_mask_constants`; what is left is something else."""

_REDUCTIONS = ("ReduceMax", "ReduceMin", "ReduceSumSquare")
_WHOLE = (ir.DataType.FLOAT, ir.DataType.DOUBLE)
_HALF = ir.DataType.FLOAT16


@dataclass(frozen=True)
class Extreme:
    """The value of a tensor that is farthest from zero (NaN where it holds one), and whose tensor it is."""

    tensor: str
    value: float

    @property
    def fits(self) -> bool:
        """Whether the tensor stays within fp16."""
        return abs(self.value) <= FP16_MAX

    def __str__(self) -> str:
        return f"{self.tensor}: {self.value:.6g}"


def weight_range(model: ir.Model) -> tuple[Verdict, Measurement]:
    """Verdict that every weight, constant and float attribute fits fp16; and how many weights are subnormal there."""
    extremes: list[Extreme] = []
    subnormal = zero = total = 0
    try:
        for name, array in _constants(model):
            if array.size:
                extremes.append(Extreme(name, _farthest(array)))
                size = np.abs(array[array != 0])
                subnormal += int(np.count_nonzero(size < FP16_SMALLEST_NORMAL))
                zero += int(np.count_nonzero(size <= FP16_ZERO_BELOW))
                total += array.size
    except (OSError, ValueError) as error:
        verdict = failure(WEIGHTS_GATE, f"the weights could not be read: {error}")
        return verdict, Measurement(name=SUBNORMAL_WEIGHTS, measured=None, unit="values", reason=verdict.detail)
    reason = (
        f"of {total} weights, those below 2^-14 in fp16, where precision falls; {zero} of them round to zero. "
        "Whether that matters the numeric gates judge"
    )
    verdict = _range_verdict(WEIGHTS_GATE, extremes, "the largest")
    if verdict.status is Status.FAILED:
        verdict = replace(verdict, detail=f"{verdict.detail}; {_REMEDY}")
    return (
        verdict,
        Measurement(name=SUBNORMAL_WEIGHTS, measured=float(subnormal), unit="values", reason=reason),
    )


def activation_range(model: ir.Model, feeds: Sequence[Feeds]) -> Verdict:
    """Verdict that every tensor of an fp32 run of `model` fits fp16, over all `feeds`.

    On failure the first tensor in graph order is named with its value and the node that makes it; `measured` is the
    largest absolute value either way, so the headroom can be read from it. A graph that does not run fails, and so
    does one without a single tensor to judge. Integers are not judged; tensors of another floating-point type, or of an
    unknown one, are named as not judged.
    """
    if not feeds:
        return failure(ACTIVATIONS_GATE, "there are no inputs to run the graph on")
    try:
        probed, labels, unjudged = _probed(model)
        if not labels:
            named = f": not judged are {listed(unjudged)}" if unjudged else ""
            return failure(ACTIVATIONS_GATE, f"there is no tensor of a floating-point type that could be judged{named}")
        session = Session(probed, in_order=True)
        runs = [_extremes(session.run(feed), labels) for feed in feeds]
    except RknnTtsError as error:
        return failure(ACTIVATIONS_GATE, f"it could not run: {error}")
    verdict = _range_verdict(ACTIVATIONS_GATE, [item for run in runs for item in run], "the largest activation")
    return replace(verdict, detail=f"{verdict.detail}; not judged: {listed(unjudged)}") if unjudged else verdict


def _range_verdict(gate: str, extremes: Sequence[Extreme], what: str) -> Verdict:
    if not extremes:
        return at_most(gate, 0.0, FP16_MAX, "", "there are no values of a floating-point type")
    largest = next((item for item in extremes if math.isnan(item.value)), None) or max(
        extremes, key=lambda item: abs(item.value)
    )
    outside = [str(item) for item in dict.fromkeys(extremes) if not item.fits]
    detail = f"past fp16's {FP16_MAX:.0f}, first: {listed(outside)}" if outside else f"{what}: {largest}"
    return at_most(gate, abs(largest.value), FP16_MAX, "", detail)


def _constants(model: ir.Model) -> Iterator[tuple[str, NDArray[np.float64]]]:
    for graph in model.graphs():
        for value in graph.initializers.values():
            if value.const_value is not None and value.const_value.dtype.is_floating_point():
                yield f"weight '{value.name}'", _as_float64(value.const_value.numpy())
    for node in model.graph.all_nodes():
        for attribute in node.attributes.values():
            place = f"attribute '{attribute.name}' of {node.op_type}, {node_label(node)}"
            if attribute.is_ref():
                continue
            if attribute.type == ir.AttributeType.TENSOR:
                tensor = attribute.as_tensor()
                if tensor.dtype.is_floating_point():
                    yield place, _as_float64(tensor.numpy())
            elif attribute.type in (ir.AttributeType.FLOAT, ir.AttributeType.FLOATS):
                yield place, np.atleast_1d(np.asarray(attribute.value, np.float64))


def _as_float64(array: NDArray[Any]) -> NDArray[np.float64]:
    return np.atleast_1d(array).astype(np.float64)


def _farthest(array: NDArray[np.float64]) -> float:
    if np.isnan(array).any():
        return math.nan
    low, high = float(array.min()), float(array.max())
    return high if high >= -low else low


def _probed(model: ir.Model) -> tuple[ir.Model, list[str], list[str]]:
    """`model` with the reductions of every tensor that can be judged as its only outputs.

    And the labels of those tensors, and of those that may be too large but have no reduction here: a floating-point
    type that onnxruntime does not reduce, or a type that shape inference did not find.
    """
    probed = with_shapes(model)
    graph = probed.graph
    values = [(value, f"input '{value.name}'") for value in graph.inputs]
    for node in graph:
        values += [(value, f"'{value.name}' of {node.op_type}, {node_label(node)}") for value in node.outputs]
    graph.outputs.clear()
    labels, unjudged = [], []
    for number, (value, label) in enumerate(values):
        if not value.name:
            continue
        if value.dtype in (*_WHOLE, _HALF):
            nodes, figures = _probe(value, f"rknn_tts_probe_{number}")
            _put_behind(graph, value.producer(), nodes)
            graph.outputs.extend(figures)
            labels.append(label)
        elif value.dtype is None or value.dtype.is_floating_point():
            unjudged.append(f"{label} ({'type not known' if value.dtype is None else value.dtype.name})")
    return probed, labels, unjudged


def _put_behind(graph: ir.Graph, maker: ir.Node | None, nodes: Sequence[ir.Node]) -> None:
    """Put `nodes` right behind `maker`; of an input, which nothing makes, to the graph's beginning."""
    if maker is not None:
        graph.insert_after(maker, nodes)
    elif len(graph):
        graph.insert_before(graph[0], nodes)
    else:
        graph.extend(nodes)


def _probe(value: ir.Value, name: str) -> tuple[list[ir.Node], list[ir.Value]]:
    """The nodes that reduce `value`, and the figures that they give."""
    nodes = []
    if value.dtype == _HALF:
        cast = ir.node("Cast", [value], {"to": ir.DataType.FLOAT.value}, name=f"{name}_cast")
        cast.outputs[0].name = f"{name}_cast"
        nodes.append(cast)
        value = cast.outputs[0]
    dtype = ir.DataType.FLOAT if value.dtype in (None, _HALF) else value.dtype
    reductions = []
    for op in _REDUCTIONS:
        reduction = ir.node(op, [value], {"keepdims": 0}, name=f"{name}_{op}")
        reduction.outputs[0].name = f"{name}_{op}"
        reduction.outputs[0].shape, reduction.outputs[0].type = ir.Shape([]), ir.TensorType(dtype)
        reductions.append(reduction)
    return [*nodes, *reductions], [reduction.outputs[0] for reduction in reductions]


def _extremes(outputs: dict[str, NDArray[Any]], labels: Sequence[str]) -> list[Extreme]:
    figures = np.array([float(value) for value in outputs.values()]).reshape(-1, len(_REDUCTIONS))
    extremes = []
    for label, (high, low, power) in zip(labels, figures, strict=True):
        farthest = high if abs(high) >= abs(low) else low
        extremes.append(Extreme(label, math.nan if math.isnan(power) else float(farthest)))
    return extremes
