"""Keep the toolkit from making one tensor of two that a product, or an attention, reads.

Before:  MatMul(x, Transpose(x))                          After:  MatMul(LeakyRelu(x), Transpose(x))
Before:  MatMul(Softmax(MatMul(q, Transpose(x))), x)      After:  MatMul(Softmax(MatMul(q, Transpose(x))), LeakyRelu(x))

with alpha = 1. On the NPU a MatMul wants one side transposed, and an attention its keys and values in one layout; where
both sides come of one tensor, that makes both the same (`remove_parallel_transpose`, `remove_parallel_reshape`,
`reduce_tp_in_mesh_backward`, `bypass_two_transpose`), and the compiler dies of it: SIGSEGV in SubgraphManager, whatever
the rank, the batch and what makes x (measured, rknn-toolkit2 2.3.2, rk3588: 24 graphs). MatMul(x, x) builds. A product
or sum with a constant that changes nothing is taken away again; a LeakyRelu stays, and the engines are right (62 to
73 dB). Two of one tensor are merged: where an attention's queries have one already, its values get two in a row. What
is read by two products that are no attention builds.

Exact: LeakyRelu is x from 0 on, and alpha * x below.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import onnx_ir as ir

from surgery.declaration import Declaration, Exact, Pass, Rewritten
from surgery.matching import Matched, is_one_of
from surgery.splice import Draft, splice

_ANY = "the numbers are the same in any layout"
LAYOUTS = (
    Matched("Flatten", irrelevant={"axis": _ANY}),
    Matched("Identity"),
    Matched("Reshape", irrelevant={"allowzero": _ANY}),
    Matched("Squeeze", irrelevant={"axes": _ANY}),
    Matched("Transpose", irrelevant={"perm": _ANY}),
    Matched("Unsqueeze", irrelevant={"axes": _ANY}),
)
"""What only lays a tensor out anew."""

_SCALED = "the product's two sides are what matters"
MATMUL = Matched("MatMul")
GEMM = Matched("Gemm", used=frozenset({"transA", "transB"}), irrelevant={"alpha": _SCALED, "beta": _SCALED})
PRODUCTS = (MATMUL, GEMM)
SOFTMAX = Matched("Softmax", irrelevant={"axis": "whatever it sums over, it is an attention"})
SCALES = (*LAYOUTS, Matched("Add"), Matched("Div"), Matched("Mul"), Matched("Sub"), Matched("Where"))
"""What may stand between the scores of an attention and their Softmax: a scale, a mask."""

DECLARATION = Declaration(
    name="rewrite_self_products",
    summary="a tensor times its own transpose, or read as keys and values, gets a LeakyRelu of slope 1",
    exactness=Exact("LeakyRelu with alpha = 1 is its input"),
    after=frozenset({"decompose_functions", "decompose_missing_kernels", "fold_constants"}),
    matches=(*PRODUCTS, SOFTMAX, *SCALES),
)


@dataclass(frozen=True)
class _Plan:
    """The node whose input at `position` gets a tensor of its own, behind so many LeakyRelus."""

    node: ir.Node
    position: int
    many: int = 1


def rewrite_self_products() -> Pass:
    """The pass; its hits are the inputs that get a tensor of their own."""
    return Pass(DECLARATION, _rewrite)


def _rewrite(model: ir.Model) -> Rewritten:
    if not any(_plans(model)):
        return Rewritten(model, 0)
    copy = model.clone()
    plans = list(_plans(copy))
    for plan in plans:
        _part(plan)
    return Rewritten(copy, hits=len(plans))


def _plans(model: ir.Model) -> Iterator[_Plan]:
    for node in model.graph:
        if is_one_of(node, PRODUCTS) and None not in node.inputs[:2]:
            if _is_of_one(node):
                yield _Plan(node, 0)
            scores = _scores_of_values(node)
            if scores is not None:
                yield _Plan(node, 1, many=1 + _is_of_one(scores))


def _is_of_one(product: ir.Node) -> bool:
    left, right = product.inputs[:2]
    turned = product.attributes.get_int("transA", 0) != product.attributes.get_int("transB", 0)
    return (left is not right or turned) and _shared(left, right)


def _scores_of_values(product: ir.Node) -> ir.Node | None:
    """Where `product` is the second of an attention and its values are the keys or queries too: the first."""
    root = _root(product.inputs[0])
    softmax = None if root is None else root.producer()
    if softmax is None or not is_one_of(product, (MATMUL,)) or not is_one_of(softmax, (SOFTMAX,)):
        return None
    waiting, seen = list(softmax.inputs), set[ir.Value]()
    while waiting:
        value = waiting.pop()
        node = None if value is None else value.producer()
        if value is None or node is None or value in seen:
            continue
        seen.add(value)
        if is_one_of(node, (MATMUL,)):
            if any(_shared(side, product.inputs[1]) for side in node.inputs):
                return node
        elif is_one_of(node, SCALES):
            waiting.extend(node.inputs)
    return None


def _shared(one: ir.Value | None, other: ir.Value | None) -> bool:
    root = _root(one)
    return root is _root(other) and root is not None and not root.is_initializer()


def _root(value: ir.Value | None) -> ir.Value | None:
    """What `value` is a layout of."""
    while value is not None and (node := value.producer()) is not None and is_one_of(node, LAYOUTS):
        value = node.inputs[0]
    return value


def _part(plan: _Plan) -> None:
    draft = Draft()
    inputs = list(plan.node.inputs)
    for _ in range(plan.many):
        inputs[plan.position] = draft.add("LeakyRelu", inputs[plan.position], alpha=1.0)
    product = draft.add(plan.node.op_type, *inputs, copied=plan.node.attributes)
    splice(plan.node, draft.nodes, [product], DECLARATION.name)
