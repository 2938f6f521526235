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

from dataclasses import dataclass

import onnx_ir as ir

from surgery.declaration import Bounded, Declaration, Pass, Refused, Rewritten
from surgery.graph import input_at
from surgery.matching import Matched, is_one_of, opset_of
from surgery.naming import node_label
from surgery.node_rewrites import rewrite_nodes
from surgery.normalise_layer_norm import AXIS, EPSILON
from surgery.reductions import reduced
from surgery.splice import Draft, constant, splice

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
    return rewrite_nodes(model, _is_wanted, _look, _replace)


def _is_wanted(node: ir.Node) -> bool:
    return is_one_of(node, DECLARATION.matches) and any(_is_read(value) for value in node.outputs[1:])


def _is_read(value: ir.Value) -> bool:
    return bool(value.uses()) or value.is_graph_output()


def _look(node: ir.Node) -> _Norm | Refused:
    x = input_at(node, 0)
    if x is None or x.shape is None:
        return Refused(node_label(node), KNOWN_RANK, "its shape", "none")
    if x.dtype not in (None, ir.DataType.FLOAT):
        return Refused(node_label(node), FLOAT32, "float32", str(x.dtype))
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else AXIS
    mean, inverse = ([_is_read(value) for value in node.outputs[1:]] + [False])[:2]
    return _Norm(node, mean, inverse, tuple(range(axis % len(x.shape), len(x.shape))))


def _replace(norm: _Norm) -> None:
    node, x = norm.node, norm.node.inputs[0]
    assert x is not None
    draft, opset = Draft(), opset_of(node)
    y = draft.add("LayerNormalization", x, *node.inputs[1:], copied=node.attributes)
    mean = reduced(draft, "ReduceMean", x, norm.axes, opset)
    made = [y, mean] if norm.mean else [y]
    if norm.inverse:
        off = draft.add("Sub", x, mean)
        variance = reduced(draft, "ReduceMean", draft.add("Mul", off, off), norm.axes, opset)
        epsilon = node.attributes["epsilon"].as_float() if "epsilon" in node.attributes else EPSILON
        made.append(
            draft.add("Div", constant([1.0]), draft.add("Sqrt", draft.add("Add", variance, constant([epsilon]))))
        )
    for value, read in zip(node.outputs[1:], (norm.mean, norm.inverse), strict=False):
        if not read:
            value.name = None
    splice(node, draft.nodes, made, DECLARATION.name)
