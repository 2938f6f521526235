"""Structural gate: operators that cannot run on the board, or that have no place in a fixed graph.

The lists are measured: for each operator of opset 19 a graph of one convolution and that operator was built with
rknn-toolkit2 2.3.2 for rk3588, and read for what the compiler says of it; for rk3562, rk3566 and rk3576 the missing
kernels are the same. Operators that the vendor lists as unsupported but that build without complaint (Reciprocal and
CumSum are rewritten, GatherND is placed on the CPU) are not here: see `vendor_limits`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from contracts.verdicts import Verdict, at_most
from gates.broken_forms import broken_form
from gates.constant_inputs import varying_input
from gates.graphs import node_label
from gates.sentences import listed

GATE = "structure.operators"

_NO_KERNEL = "no NPU or CPU kernel on the board: write it with other operators, or keep it outside the engine"
"""Logged as `No lowering found for: NODE, node type = OP`; build returns 0 and the simulator is right all the same."""

_RANDOM = "draws random numbers: make the noise an input of the graph"
"""RandomNormal and RandomUniform are folded: the engine holds one draw for ever. The others have no kernel."""

_CONTROL_FLOW = "control flow is not compiled: choose the branch or unroll it"
"""If: KeyError 'cond'. Loop: "will cause the graph to be a dynamic graph". Scan: its body is dropped with an E line."""

_COMPUTED_SHAPE = "computes a shape or a length that was not folded: fix the inputs' shapes, and leave no pass out"
"""Where their inputs are not folded: the build ends in a traceback or "need to be constant"."""

_DATA_DEPENDENT = (
    "the size or scale of its output depends on the data, and an engine's shapes are fixed: cut the graph before it, "
    "and keep it outside the engine"
)
"""Refused by the toolkit as "a dynamic graph"."""

_BREAKS = "the toolkit breaks on it"
"""A traceback out of load or build, or the compiler process aborts (BitShift)."""

_REASONS: Mapping[str, tuple[str, ...]] = {
    _NO_KERNEL: (
        "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseAnd", "BitwiseNot", "CastLike", "Ceil", "Celu",
        "CenterCropPad", "Col2Im", "Cosh", "DFT", "Det", "EyeLike", "GlobalLpPool", "GridSample", "IsInf",
        "IsNaN", "LpPool", "Mean", "MeanVarianceNormalization", "Min", "Mish", "Or", "RNN", "ReduceL1", "ReduceLogSum",
        "ReduceLogSumExp", "ReduceProd", "ReduceSumSquare", "STFT", "Scatter", "ScatterElements", "Selu", "Shrink",
        "Sign", "Sinh", "Softsign", "Tan", "Trilu", "Xor",
    ),
    _RANDOM: (
        "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
    ),
    _CONTROL_FLOW: ("If", "Loop", "Scan"),
    _COMPUTED_SHAPE: ("ConstantOfShape", "Range", "Shape", "Size"),
    _DATA_DEPENDENT: ("Compress", "DynamicQuantizeLinear", "NonMaxSuppression", "NonZero", "Unique"),
    _BREAKS: (
        "BitShift", "BitwiseOr", "BitwiseXor", "DeformConv", "GroupNormalization", "SequenceAt", "SequenceConstruct",
        "SplitToSequence",
    ),
}  # fmt: skip

REFUSED: Mapping[str, str] = {op: reason for reason, ops in _REASONS.items() for op in ops}
"""Every refused operator of the default domain, with the reason for the person at the command line."""


FOLDED_BY_TOOLKIT = frozenset({_NO_KERNEL, _DATA_DEPENDENT})
"""Reasons that do not hold where all inputs are constant: the toolkit folds the node (measured: Trilu, Ceil, Min)."""


_OF_A_SIZE = frozenset({_COMPUTED_SHAPE, _DATA_DEPENDENT})
"""Reasons by which what stands behind the node has no known size."""


@dataclass(frozen=True)
class _Reason:
    """Why a node is refused, and what of that is its own; whether what stands behind it has no known size for that."""

    sentence: str
    is_of_a_size: bool = False
    own: str = ""


def operators(model: ir.Model) -> Verdict:
    """Verdict that every node is one the board can run; offenders are named with operator, node and reason.

    Nodes of one reason are listed together. A node whose size follows from another's that is named is not named.
    Looks into subgraphs too. A node of another domain than ONNX's own, and a local function, fail as well, and so does
    an input that decides a shape and is not constant.
    """
    functions = [f"function '{function.name}' (must be inlined)" for function in model.functions.values()]
    constant = {value for graph in model.graphs() for value in graph.initializers.values()} - set(model.graph.inputs)
    unsized: set[ir.Value] = set()  # what is behind a tensor whose size depends on the data: its Shapes are no news
    offenders: dict[str, list[tuple[ir.Node, str]]] = {}
    checked = 0
    for node in model.graph.all_nodes():
        checked += 1
        folds = all(value in constant for value in node.inputs if value is not None)
        reason = _reason(node, constant, folds)
        behind = any(value in unsized for value in node.inputs)
        if reason is not None and not (behind and reason.is_of_a_size):
            offenders.setdefault(reason.sentence, []).append((node, reason.own))
        elif folds:
            constant.update(node.outputs)
        if behind or (reason is not None and reason.is_of_a_size):
            unsized.update(node.outputs)
    texts = [*functions, *(_text(reason, found) for reason, found in offenders.items())]
    count = len(functions) + sum(map(len, offenders.values()))
    detail = listed(texts) if texts else f"{checked} nodes, each with an operator that the board can run"
    return at_most(GATE, count, 0, "nodes", detail)


def _text(reason: str, found: Sequence[tuple[ir.Node, str]]) -> str:
    """The nodes that were `found`, each with what is its own of the `reason`, which is told once."""
    own = {text for _, text in found}
    if len(own) == 1:
        return f"{listed(_op(node) for node, _ in found)} ({'; '.join(filter(None, [*own, reason]))})"
    return f"{listed((f'{_op(node)}, {text}' for node, text in found), between='; ')} ({reason})"


def _op(node: ir.Node) -> str:
    return f"op {node.op_type}, {node_label(node)}"


def _reason(node: ir.Node, constant: Collection[ir.Value], folds: bool) -> _Reason | None:
    """Why `node` is refused, if it is; `folds` where all its inputs are constant."""
    if node.domain not in ("", "ai.onnx"):
        return _Reason(f"domain {node.domain}: {_NO_KERNEL}")
    listed_reason = REFUSED.get(node.op_type)
    if listed_reason == _CONTROL_FLOW:
        return _Reason(_CONTROL_FLOW, own=_driven_by(node))
    reason = None if listed_reason is None else _Reason(listed_reason, listed_reason in _OF_A_SIZE)
    if listed_reason is None or (folds and listed_reason in FOLDED_BY_TOOLKIT) or listed_reason == _COMPUTED_SHAPE:
        varying = varying_input(node, constant)
        if varying is not None:
            return _Reason(varying.remedy, varying.decides_a_shape, varying.which)
        broken = None if folds else broken_form(node)
        if broken is not None:
            return _Reason(broken)
        return reason if listed_reason == _COMPUTED_SHAPE else None
    return reason


def _driven_by(node: ir.Node) -> str:
    """What decides which way the control flow `node` takes, or how often it runs."""
    names = [None if value is None else value.name for value in node.inputs]
    if node.op_type == "If":
        return f"input '{names[0]}'" if names else "no input"
    if node.op_type == "Loop":
        count, goes_on = (*names, None, None)[:2]
        steps = f"trip count '{count}'" if count else "no trip count"
        return f"{steps}, condition '{goes_on}'" if goes_on else f"{steps}, no condition"
    scanned = [f"'{name}'" for name in names[-node.attributes.get_int("num_scan_inputs", 1) :]]
    return f"scans {listed(scanned)}"
