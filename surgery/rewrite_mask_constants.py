"""Bring masks in front of a softmax into fp16's range.

A mask is a number far below every score, added to it or put in its place, so that the softmax makes 0 of it. Exporters
write -1e9, -1e10, the lowest float or minus infinity; fp16 ends at 65504.

Before: y = Softmax(s + m), m of 0 and -1e9; or Softmax(Where(c, s, -inf)); or Softmax(s + (1 - mask) * -1e9).
After: the same with -1e4: with t the row's largest score, exp(-1e4 + s - t) and exp(-1e9 + s - t) are both 0 in fp32.
A constant that is a number elsewhere keeps its value there. Where the graph asks which values are masked (x == -inf,
IsInf), it asks whether x < -5e3.

A constant is a mask where it is at least 32752 in size and every way from it leads through sums, products with a mask
of zeros and ones, Where and changes of shape into a softmax, an exponential, a sigmoid, ArgMax or a comparison. Other
constants are left alone; the range gate names those that leave fp16.

Precondition: no IsNaN, nor a comparison of a value with itself, reads which rows minus infinity left nothing of: a
softmax is NaN there, and after -1e4 it is not. `rewrite_safe_softmax` asks the rows' largest score instead.

Exact where scores are small against 1e4 and no row is wholly masked (after -1e9 such a row is uniform, after -inf it is
NaN, after -1e4 it is the softmax of its scores); parity on the feed judges. The -1e4 is the toolkit's own too (log of
2.3.2: values past 3e38 are "corrected to -10000"; -1e9 is not, and becomes minus infinity).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from onnx_ir.convenience import replace_nodes_and_values
from onnx_ir.passes import common

from surgery.declaration import Declaration, Exact, Pass, Refused, Rewritten
from surgery.graph_constants import add_constant
from surgery.mask_paths import COMPARISONS, ENDS, NORMALISING, PASSING, Paths, Use, paths_of
from surgery.mask_values import FAR, FLOATS, HUGE, MASK
from surgery.naming import node_label
from surgery.weights import tensor_of

UNSEEN_NAN = "no question which rows of a softmax are NaN"

_INFINITE = float(np.finfo(np.float32).max) / 2
"""From here on a mask, or the sum of two, is minus infinity in float32, and a row of it NaN."""

DECLARATION = Declaration(
    name="rewrite_mask_constants",
    summary="masks past fp16 (-1e9, -inf) in front of a softmax become -1e4",
    exactness=Exact("e^-1e4 is 0 in fp32 as e^-1e9 is, where a row has a score that is not masked"),
    after=frozenset({"rewrite_safe_softmax"}),
    matches=(*PASSING, *ENDS, *COMPARISONS, *NORMALISING),
    preconditions=(UNSEEN_NAN,),
)


@dataclass(frozen=True)
class _Mask:
    """A constant to be limited where `uses` read it, the comparisons that ask for its old value, and what asks for the
    NaN that only the old value makes."""

    value: ir.Value
    uses: tuple[Use, ...]
    asked: tuple[ir.Node, ...]
    rows: tuple[ir.Node, ...]


def rewrite_mask_constants() -> Pass:
    """The pass; its hits are the constants."""

    def rewrite(model: ir.Model) -> Rewritten:
        masks = _plan(model.graph)
        refused = tuple(_refused(mask, node) for mask in masks for node in mask.rows)
        if refused or not masks:
            return Rewritten(model, 0, refused)
        model = model.clone()
        masks = _plan(model.graph)
        for mask in masks:
            limited = _limited(model.graph, mask.value)
            for use in mask.uses:
                use.node.replace_input_with(use.index, limited)
        for node in dict.fromkeys(node for mask in masks for node in mask.asked):
            _ask_anew(model.graph, node)
        common.RemoveUnusedNodesPass()(model)
        return Rewritten(model, hits=len(masks))

    return Pass(DECLARATION, rewrite)


def _plan(graph: ir.Graph) -> list[_Mask]:
    constants = [value for value in graph.initializers.values() if not value.is_graph_input()]
    constants += [node.outputs[0] for node in graph if node.op_type == "Constant"]
    return [mask for value in constants if (mask := _mask_of(value)) is not None]


def _mask_of(value: ir.Value) -> _Mask | None:
    """What to rewrite of a constant; None where it is no mask. Its values are read last: most constants are weights."""
    tensor = tensor_of(value)
    if tensor is None or tensor.dtype not in FLOATS or not _followed(value, trusting=True):
        return None
    values = tensor.numpy().astype(np.float64)
    if np.isnan(values).any() or not (np.abs(values) >= HUGE).any():
        return None
    ways = _followed(value, trusting=bool((values < HUGE).all()))
    asked = [node for _, paths in ways for node in paths.asked]
    rows = dict.fromkeys(node for _, paths in ways for node in paths.rows if (np.abs(values) >= _INFINITE).any())
    return _Mask(value, tuple(use for use, _ in ways), tuple(asked), tuple(rows)) if ways else None


def _refused(mask: _Mask, node: ir.Node) -> Refused:
    got = f"{node.op_type} reads which rows are NaN under the mask '{mask.value.name}'"
    return Refused(node_label(node), UNSEEN_NAN, "what rewrite_safe_softmax makes of it", got)


def _followed(value: ir.Value, trusting: bool) -> list[tuple[Use, Paths]]:
    """The uses of `value` in which it masks, each with what lies behind it."""
    uses = [Use(node, index, trusting=trusting) for node, index in value.uses()]
    return [(use, paths) for use in uses if (paths := paths_of(use)) is not None]


def _limited(graph: ir.Graph, value: ir.Value) -> ir.Value:
    """A new constant like `value` in which what is huge is -1e4 or 1e4."""
    tensor = tensor_of(value)
    assert tensor is not None
    old = tensor.numpy()
    new = np.where(np.abs(old.astype(np.float64)) >= HUGE, np.copysign(MASK, old.astype(np.float64)), old)
    return add_constant(graph, f"{value.name}_{DECLARATION.name}", new.astype(old.dtype), tensor.dtype)


def _ask_anew(graph: ir.Graph, node: ir.Node) -> None:
    """Put x < -5e3 in the place of a node that asks which values of x are the old mask."""
    asked = next(value for value in node.inputs if value is not None and tensor_of(value) is None)
    dtype = asked.dtype or ir.DataType.FLOAT
    name = f"{node.name or node.outputs[0].name}_{DECLARATION.name}"
    limit = add_constant(graph, f"{name}_limit", np.array(-FAR, dtype.numpy()), dtype)
    less = ir.node("Less", [asked, limit], name=name)
    replace_nodes_and_values(graph, node, [node], [less], node.outputs, less.outputs)
