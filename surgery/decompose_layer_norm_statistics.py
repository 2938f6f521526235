"""Compute the Mean and InvStdDev of a LayerNormalization beside it, where they are read.

Before:  y, Mean, InvStdDev = LayerNormalization(x)
After:   y = LayerNormalization(x), Mean = ReduceMean(x), InvStdDev = 1 / Sqrt(ReduceMean((x - Mean)^2) + epsilon)

The toolkit gives the first output alone ("inference returned 1 arrays"); computed so, the others reach 64 to 75 dB in
its simulator (measured, rknn-toolkit2 2.3.2, rk3588).

Preconditions: an input of known rank, of float32.

Bounded: the definition of the operator, but sums in another order. The partial sums of N numbers of deviation s around
zero grow to s sqrt(N) and round N times at random, so that their mean, which is s / sqrt(N), loses 20 log10(sqrt(N)) dB
of fp32's 144. Measured in onnxruntime: 113 dB for N = 4096.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir as ir

from surgery.declaration import Bounded, Declaration, Pass, Refused, Rewritten
from surgery.interface import inferred, node_label
from surgery.matching import Matched, is_one_of
from surgery.splice import Draft, constant, splice, whole_numbers

AXIS, EPSILON = -1, 1e-5
"""ONNX's defaults."""

KNOWN_RANK = "an input of known rank where Mean or InvStdDev is read"
FLOAT32 = "an input of float32 where Mean or InvStdDev is read"

MINIMUM_DB = 90.0
"""144 dB of fp32, less the 48 of N = 65536 numbers normalised together, and 6 of reserve."""

DECLARATION = Declaration(
    name="decompose_layer_norm_statistics",
    summary="Mean and InvStdDev of a LayerNormalization by ReduceMean, where they are read",
    exactness=Bounded(MINIMUM_DB, "fp32 cancellation in the mean of up to 65536 numbers around zero"),
    after=frozenset({"normalise_empty_slots"}),
    matches=(
        Matched(
            "LayerNormalization",
            used=frozenset({"axis", "epsilon"}),
            irrelevant={"stash_type": "float32 or of a float32 input, which is the same"},
        ),
    ),
    preconditions=(KNOWN_RANK, FLOAT32),
)

_AXES_ATTRIBUTE_UP_TO = 17
"""Highest opset in which ReduceMean has its axes as an attribute (ONNX changelog)."""


@dataclass(frozen=True)
class _Norm:
    """A node whose statistics are read: which of the two, and the axes they are over."""

    node: ir.Node
    mean: bool
    inverse: bool
    axes: tuple[int, ...]


def decompose_layer_norm_statistics() -> Pass:
    """The pass; its hits are the nodes."""
    return Pass(DECLARATION, _rewrite)


def _rewrite(model: ir.Model) -> Rewritten:
    if not any(_is_wanted(node) for node in model.graph):
        return Rewritten(model, 0)
    copy = model.clone()
    known = inferred(copy)
    looked = [_look(node, known) for node in copy.graph if _is_wanted(node)]
    refused = tuple(found for found in looked if isinstance(found, Refused))
    if refused:
        return Rewritten(model, 0, refused)
    for found in looked:
        if isinstance(found, _Norm):
            _replace(found, copy.opset_imports.get("", _AXES_ATTRIBUTE_UP_TO))
    return Rewritten(copy, hits=len(looked))


def _is_wanted(node: ir.Node) -> bool:
    return is_one_of(node, DECLARATION.matches) and any(_is_read(value) for value in node.outputs[1:])


def _is_read(value: ir.Value) -> bool:
    return bool(value.uses()) or value.is_graph_output()


def _look(node: ir.Node, known: Mapping[str, ir.Value]) -> _Norm | Refused:
    given = node.inputs[0] if node.inputs else None
    x = None if given is None else known.get(given.name or "", given)
    if x is None or x.shape is None:
        return Refused(node_label(node), KNOWN_RANK, "its shape", "none")
    if x.dtype not in (None, ir.DataType.FLOAT):
        return Refused(node_label(node), FLOAT32, "float32", str(x.dtype))
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else AXIS
    mean, inverse = ([_is_read(value) for value in node.outputs[1:]] + [False])[:2]
    return _Norm(node, mean, inverse, tuple(range(axis % len(x.shape), len(x.shape))))


def _replace(norm: _Norm, opset: int) -> None:
    node, x = norm.node, norm.node.inputs[0]
    assert x is not None
    draft = Draft()
    y = draft.add("LayerNormalization", x, *node.inputs[1:], copied=node.attributes)
    mean = _mean(draft, x, norm.axes, opset)
    made = [y, mean] if norm.mean else [y]
    if norm.inverse:
        off = draft.add("Sub", x, mean)
        variance = _mean(draft, draft.add("Mul", off, off), norm.axes, opset)
        epsilon = node.attributes["epsilon"].as_float() if "epsilon" in node.attributes else EPSILON
        made.append(
            draft.add("Div", constant([1.0]), draft.add("Sqrt", draft.add("Add", variance, constant([epsilon]))))
        )
    for value, read in zip(node.outputs[1:], (norm.mean, norm.inverse), strict=False):
        if not read:
            value.name = None
    splice(node, draft.nodes, made, DECLARATION.name)


def _mean(draft: Draft, x: ir.Value, axes: tuple[int, ...], opset: int) -> ir.Value:
    if opset <= _AXES_ATTRIBUTE_UP_TO:
        return draft.add("ReduceMean", x, axes=axes, keepdims=1)
    return draft.add("ReduceMean", x, whole_numbers(axes), keepdims=1)
