"""Compose operators that have no kernel on the board of operators that have one.

Before: `Min`, `Softsign`, `Trilu`, `ReduceL1`, `GroupNormalization`, ... (the toolkit builds most of them, its
simulator is right, and the board cannot run the engine; on GroupNormalization the toolkit breaks).
After: their definitions in other operators: -Max(-a, -b), x / (1 + |x|), a constant triangle that chooses, ReduceSum of
|x|, an InstanceNormalization over the groups. Each is in the docstring of its builder in `surgery.missing_kernels` and
`surgery.missing_reductions`, and was built and simulated (rknn-toolkit2 2.3.2, rk3588).

A node is left alone, for the gate of operators to refuse, where its composition does not hold: a LpPool with dilations
or rounded up, a Celu of alpha 0 or below, a Trilu of unknown size. The same goes for operators that are no composition
of those at hand (Atan, Acos, Det, RNN, ...). A node of constants alone is folded by the toolkit; what a composition
makes of a constant, -b of Min(a, b), is folded here.

Exact: definitions of ONNX's operator specification.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from surgery.declaration import Declaration, Exact, Pass, Rewritten
from surgery.fold_constants import folded
from surgery.inferred import infer_types
from surgery.matching import Matched, is_one_of, opset_of
from surgery.missing_kernels import ELEMENTWISE, Builder
from surgery.missing_reductions import REDUCTIONS
from surgery.splice import Draft, splice

BUILDERS: Mapping[str, Builder] = {**ELEMENTWISE, **REDUCTIONS}

_REDUCED = frozenset({"axes", "keepdims", "noop_with_empty_axes"})
_FLOAT8 = "says how float8 saturates; there is none in a float32 graph"

MATCHES = (
    *(Matched(op) for op in sorted(ELEMENTWISE.keys() - {"CastLike", "Celu", "Selu", "Shrink", "Trilu"})),
    Matched("CastLike", irrelevant={"saturate": _FLOAT8}),
    Matched("Celu", used=frozenset({"alpha"})),
    Matched("Selu", used=frozenset({"alpha", "gamma"})),
    Matched("Shrink", used=frozenset({"bias", "lambd"})),
    Matched("Trilu", used=frozenset({"upper"})),
    Matched("GlobalLpPool", used=frozenset({"p"})),
    Matched("GroupNormalization", used=frozenset({"epsilon", "num_groups"})),
    Matched(
        "LpPool",
        used=frozenset({"auto_pad", "ceil_mode", "dilations", "kernel_shape", "p", "pads", "strides"}),
    ),
    Matched("MeanVarianceNormalization", used=frozenset({"axes"})),
    *(Matched(op, used=_REDUCED) for op in ("ReduceL1", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare")),
)

DECLARATION = Declaration(
    name="decompose_missing_kernels",
    summary="write operators without a kernel on the board by ones that have one",
    exactness=Exact("definitions of ONNX's operator specification"),
    after=frozenset(
        {"fold_constants", "normalise_double", "normalise_float32", "normalise_opset", "rewrite_safe_softmax"}
    ),
    matches=MATCHES,
)


def decompose_missing_kernels() -> Pass:
    """The pass; its hits are nodes."""

    def rewrite(model: ir.Model) -> Rewritten:
        if not any(_has_no_kernel(node) for node in model.graph):
            return Rewritten(model, 0)
        clone = model.clone()
        hits = 0
        # Shapes stop at a GroupNormalization, which inference knows nothing of; they go on behind what it is made of.
        while made := _round(clone):
            hits += made
        return Rewritten(folded(clone), hits) if hits else Rewritten(model, 0)

    return Pass(DECLARATION, rewrite)


def _has_no_kernel(node: ir.Node) -> bool:
    return is_one_of(node, MATCHES) and not all(value is None or value.is_initializer() for value in node.inputs)


def _round(model: ir.Model) -> int:
    """Compose what can be with the shapes known now; returns how many nodes."""
    infer_types(model)
    return sum(_composed(node, opset_of(model)) for node in model.graph if _has_no_kernel(node))


def _composed(node: ir.Node, opset: int) -> bool:
    draft = Draft()
    made = BUILDERS[node.op_type](node, draft, opset)
    if made is None:
        return False
    splice(node, draft.nodes, [made], DECLARATION.name)
    return True
