"""Compute relative attention without the chains that shift rows, which the board gets wrong.

With N positions, E [2N - 1, D] one row for each distance, and `shift` the chains of `surgery.relative_chains`:

Before:  b = shift(q @ E_k^T), added to the scores;  o = shift(p) @ E_v, added to the values
After:   banded: b = ((q @ R_k^T) * A) @ Z * B;  o = (((p * B) @ Z^T) * A) @ R_v, the products as convolutions
         gather: b = GatherElements(q @ E_k^T, N - 1 + j - i);  o = ReduceSum(p[i, j] * E_v[N - 1 + j - i], j)

The chains (Pad, Reshape, Pad, Reshape, Slice) are right in the simulator and garbage on the board: 56 dB and 0.4 dB
(reference, Piper duration encoder).

Banded: VITS's embeddings are zero beyond a window of w = 4 positions, so that P = 2w + 1 = 9 distances count. R holds
those rows of E, P times; A, Z and B are zeros and ones (`surgery.relative_bands`). That takes O(P^2 N^2) sums in
convolutions, and two elementwise layers on N x N. Nine masks of N x N instead (Mul and Add) took 467 s to build at
N = 512, with 1332 REGTASK lines. Of constant indices the toolkit makes weights that grow as N^3: 137 MB, 1.8 GB and
10 s at N = 128 (measured), 402 MB at 192, 2.9 GB at 384, and it ran out of 31 GB at 512 (reference). The convolutions
are what it makes of products with constants, and where it makes them itself, its rule fuse_mul_into_matmul, which we
turn off, multiplies R and A into one as if A's rows were R's: it raises, or, where N is the depth, the result is wrong
(8 dB in this encoder; measured, 2.3.2).

The encoder of Piper's joe-medium (2 heads of 96, 6 layers), rk3588: N = 128, 192, 384 and 512 take 6, 6, 8 and 9 s and
0.47, 0.48, 0.59 and 0.64 GB to build, engines of 16.5, 17.4, 21.5 and 25.0 MB without a REGTASK line, of which a run is
modelled at 8.3 to 35.2 ms (65.4 ms with gathers of 128); 62.7 to 63.2 dB in the simulator (measured, 2.3.2). Scores of
more than some 300 x 300 still send their Softmax to the CPU, where a mask chooses some of them:
`rewrite_masked_choices` keeps it on the NPU.

Left alone: what is no such shift, of which the gate `structure.relative_shifts` tells.

Preconditions: the shifted logits are a product with constant embeddings, the shifted weights go into one, and (banded)
few distances count.

Exact: the same products; the other terms of each sum are zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from surgery.declaration import Declaration, Exact, Pass, Refused, Rewritten
from surgery.graph import input_of, only_reader
from surgery.inferred import static_shape
from surgery.matching import Matched, is_one_of, opset_of
from surgery.naming import node_label
from surgery.node_rewrites import rewrite_nodes
from surgery.relative_bands import Band, band_of
from surgery.relative_chains import MOVING, Kind, Shift, find_shift
from surgery.scopes import drop_unused
from surgery.splice import Draft, constant, splice, whole_numbers
from surgery.weights import weight_of

LOGITS = "shifted logits that are a product with constant embeddings"
WEIGHTS = "shifted weights that only a product with constant embeddings reads"
WINDOW = "embeddings of few distances, the others zero"

_PRODUCT = (Matched("MatMul"),)

DECLARATION = Declaration(
    name="rewrite_relative_attention",
    summary="relative attention without the Pad, Reshape, Slice chains that the board gets wrong",
    exactness=Exact("the same products; the other terms of each sum are zero"),
    after=frozenset({"fold_constants", "normalise_opset", "decompose_negative_pads"}),
    matches=(*MOVING, *_PRODUCT),
    preconditions=(LOGITS, WEIGHTS, WINDOW),
)

MOST_DISTANCES = 65
"""A window of 32 positions: the products grow with its square (VITS has 4, and no published voice more than 10)."""

_SUM_AXES_ARE_INPUTS = 13
"""From this opset on the axes of ReduceSum are an input (ONNX operator changelog)."""

Array = NDArray[Any]
Form = Literal["banded", "gather"]


@dataclass(frozen=True)
class _Plan:
    """A shift, and what of it is rewritten.

    Attributes:
        shift: the chain.
        last: the node that goes: the end of the chain, or the product that reads it.
        queries: what is multiplied with the embeddings before it is shifted; None behind it.
        embeddings: [.., 2N - 1, D]; none for one position, where nothing is shifted.
        band: the distances that count.
    """

    shift: Shift
    last: ir.Node
    queries: ir.Value | None
    embeddings: Array
    band: Band


def rewrite_relative_attention(form: Form = "banded") -> Pass:
    """The pass; its hits are the chains.

    Args:
        form: "gather" for constant indices, whose memory grows with the cube of the positions.
    """

    def rewrite(model: ir.Model) -> Rewritten:
        done = rewrite_nodes(model, _is_wanted, lambda node: _plan(node, form), lambda plan: _write(plan, form))
        if done.hits:
            drop_unused(done.model.graph)
        return done

    return Pass(DECLARATION, rewrite)


def _is_wanted(node: ir.Node) -> bool:
    return node.op_type == "Slice" and is_one_of(node, MOVING)


def _plan(node: ir.Node, form: Form) -> _Plan | Refused | None:
    shift = find_shift(node)
    if shift is None:
        return None
    if shift.kind is Kind.NONE:
        return _Plan(shift, node, None, np.zeros(0), Band(1, 0, 1))
    plan = _of_logits(shift) if shift.kind is Kind.TO_POSITIONS else _of_weights(shift)
    if isinstance(plan, _Plan) and form == "banded" and plan.band.count > MOST_DISTANCES:
        got = f"{plan.band.count} that are not zero; the form 'gather' takes as many"
        return Refused(node_label(node), WINDOW, f"at most {MOST_DISTANCES}", got)
    return plan


def _of_logits(shift: Shift) -> _Plan | Refused | None:
    product = shift.source.producer()
    if product is None or not is_one_of(product, _PRODUCT):
        got = "an input of the graph" if product is None else f"the {product.op_type} of {node_label(product)}"
        return Refused(node_label(shift.last), LOGITS, "MatMul", got)
    embeddings = weight_of(product.inputs[1])
    if embeddings is None or embeddings.ndim < 2:
        got = "embeddings that depend on the input, or of one axis"
        return Refused(node_label(shift.last), LOGITS, "a constant of two axes or more", got)
    turned, queries = embeddings.swapaxes(-1, -2), input_of(product)
    if (static_shape(queries) or ())[:-2] != shift.given[:-2]:
        return None  # embeddings that widen what they are multiplied with
    return _Plan(shift, shift.last, queries, turned, band_of(turned))


def _of_weights(shift: Shift) -> _Plan | Refused | None:
    shifted = shift.last.outputs[0]
    product = only_reader(shifted)
    if product is None or not is_one_of(product, _PRODUCT) or product.inputs[0] is not shifted:
        readers = [use.node.op_type for use in shifted.uses()]
        got = f"read by {', '.join(readers) or 'none'}"
        return Refused(node_label(shift.last), WEIGHTS, "one MatMul", got)
    embeddings = weight_of(product.inputs[1])
    if embeddings is None or embeddings.ndim < 2:
        got = "embeddings that depend on the input, or of one axis"
        return Refused(node_label(shift.last), WEIGHTS, "a constant of two axes or more", got)
    if (static_shape(product.outputs[0]) or ())[:-2] != shift.made[:-2]:
        return None  # embeddings that widen what they are multiplied with
    return _Plan(shift, product, None, embeddings, band_of(embeddings))


def _write(plan: _Plan, form: Form) -> None:
    shift, draft = plan.shift, Draft()
    if shift.kind is Kind.NONE:
        made = draft.add("Reshape", shift.source, whole_numbers(shift.made))
    elif shift.kind is Kind.TO_POSITIONS:
        made = _logits_banded(draft, plan) if form == "banded" else _logits_gathered(draft, shift)
        made = _shaped(draft, made, (*shift.given[:-1], shift.positions), shift.made)
    else:
        weights = _shaped(draft, shift.source, shift.given, (*shift.made[:-1], shift.positions))
        made = _values_banded(draft, plan, weights) if form == "banded" else _values_gathered(draft, plan, weights)
    splice(plan.last, draft.nodes, [made], DECLARATION.name)


def _shaped(draft: Draft, value: ir.Value, has: Sequence[int], wanted: Sequence[int]) -> ir.Value:
    """`value` of the shape `has` in the shape that is `wanted`."""
    return value if tuple(has) == tuple(wanted) else draft.add("Reshape", value, whole_numbers(wanted))


def _logits_banded(draft: Draft, plan: _Plan) -> ir.Value:
    band, lead = plan.band, plan.shift.given[:-2]
    turned = _turned(draft, plan.queries, len(lead))
    own = draft.add("Mul", _embedded(draft, turned, plan, lead), _everywhere(band.of_residue()))
    made = _convolved(draft, own, band.at_period())
    if not band.is_whole:
        made = draft.add("Mul", made, _everywhere(band.inside()))
    shape = (*lead, band.positions, band.positions)
    return _turned(draft, draft.add("Reshape", made, whole_numbers(shape)), len(lead))


def _values_banded(draft: Draft, plan: _Plan, weights: ir.Value) -> ir.Value:
    band, lead = plan.band, plan.shift.made[:-2]
    shape = (math.prod(lead), band.positions, 1, band.positions)
    inside = draft.add("Reshape", _turned(draft, weights, len(lead)), whole_numbers(shape))
    if not band.is_whole:
        inside = draft.add("Mul", inside, _everywhere(band.inside()))
    own = draft.add("Mul", _convolved(draft, inside, band.at_period().T), _everywhere(band.of_residue()))
    made = _embedded(draft, own, plan, lead)
    return _turned(draft, made, len(lead))


def _embedded(draft: Draft, value: ir.Value, plan: _Plan, lead: Sequence[int]) -> ir.Value:
    """The product with the embeddings: of queries [.., D, N] as [G, K P, 1, N], of [G, K P, 1, N] as [.., D, N].

    G are the heads of all batches; where they have embeddings of their own, each convolves its own group of channels.
    """
    rows, forward = plan.band.rows(plan.embeddings), plan.queries is not None
    if math.prod(rows.shape[:-2]) > 1:
        rows = np.broadcast_to(rows, (*lead, *rows.shape[-2:]))
    matrices = rows.reshape(-1, *rows.shape[-2:])
    if forward:
        matrices = matrices.swapaxes(-1, -2)  # each [channels in, channels out]
    count, groups, positions = math.prod(lead), len(matrices), plan.band.positions
    given, made = matrices.shape[1:]
    value = draft.add("Reshape", value, whole_numbers((count // groups, groups * given, 1, positions)))
    value = _convolved(draft, value, *matrices)
    shape = (count, made, 1, positions) if forward else (*lead, made, positions)
    return draft.add("Reshape", value, whole_numbers(shape))


def _convolved(draft: Draft, value: ir.Value, *matrices: Array) -> ir.Value:
    """[G, C, 1, N] times a constant [C, M], as a convolution; of several each takes a group of the channels."""
    weights = np.concatenate([matrix.T for matrix in matrices])[..., None, None]
    return draft.add("Conv", value, constant(weights), kernel_shape=[1, 1], group=len(matrices))


def _turned(draft: Draft, value: ir.Value | None, leading: int) -> ir.Value:
    """The last two axes in the other order, behind so many `leading` ones."""
    return draft.add("Transpose", value, perm=[*range(leading), leading + 1, leading])


def _everywhere(matrix: Array) -> ir.Value:
    """A constant [N, C] for each of N positions, for [G, C, 1, N]."""
    return constant(matrix.T[None, :, None, :])


def _distances(positions: int) -> NDArray[np.int64]:
    """[N, N]: the place N - 1 + j - i of the distance from row i to column j."""
    position = np.arange(positions)
    return (positions - 1 + position[None] - position[:, None]).astype(np.int64)


def _logits_gathered(draft: Draft, shift: Shift) -> ir.Value:
    places = np.broadcast_to(_distances(shift.positions), (*shift.given[:-1], shift.positions))
    axis = len(shift.given) - 1
    return draft.add("GatherElements", shift.source, constant(places, ir.DataType.INT64), axis=axis)


def _values_gathered(draft: Draft, plan: _Plan, weights: ir.Value) -> ir.Value:
    shape = (*plan.shift.made[:-1], plan.shift.positions, 1)
    places = constant(_distances(plan.shift.positions), ir.DataType.INT64)
    rows = draft.add("Gather", constant(plan.embeddings), places, axis=plan.embeddings.ndim - 2)
    terms = draft.add("Mul", draft.add("Reshape", weights, whole_numbers(shape)), rows)
    axes = [len(shape) - 2]
    if opset_of(plan.last) >= _SUM_AXES_ARE_INPUTS:
        return draft.add("ReduceSum", terms, whole_numbers(axes), keepdims=0)
    return draft.add("ReduceSum", terms, axes=axes, keepdims=0)
