"""Keep the toolkit from making one layer of a swish whose parts something else reads too.

Before:  s = Sigmoid(x), Mul(x, s), Log(s)                After:  Mul(x, Sigmoid(x)), s = Sigmoid(x), Log(s)
Before:  s = Sigmoid(Mul(x, k)), Mul(x, s), Log(s)        After:  s = Sigmoid(Mul(k, x)), Mul(x, s), Log(s)

The toolkit makes an exSwish of x * Sigmoid(x) (`replace_exswish`) or of x * Sigmoid(x * k), k a constant
(`replace_exswish2`), and takes what stands inside away, whoever else reads it: the build dies of a tensor that nobody
makes ("KeyError: 's'", fold_constant). With a Sigmoid of its own, a swish is one layer as before. A second x * k is
merged with the first again; but the rule does not know k * x. Either way there are as many layers as operators, or
fewer. Parts that are an output of the graph the toolkit leaves alone (measured, rknn-toolkit2 2.3.2, rk3588).

Exact: the same numbers, one of them computed twice; a product has no order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from surgery.declaration import Declaration, Exact, Pass, Rewritten
from surgery.matching import Matched, is_one_of
from surgery.splice import Draft, splice
from surgery.weights import weight_of

SIGMOID, MUL = Matched("Sigmoid"), Matched("Mul")

DECLARATION = Declaration(
    name="rewrite_shared_gates",
    summary="a swish, x * Sigmoid(x), whose Sigmoid something else reads too gets a form of its own",
    exactness=Exact("the same number computed twice; a product has no order"),
    matches=(SIGMOID, MUL),
)


@dataclass(frozen=True)
class _Plan:
    """Swishes that get a Sigmoid of their own, and scales of a gate's input whose factors change places."""

    parted: Sequence[tuple[ir.Node, ir.Node]] = ()
    turned: Sequence[ir.Node] = ()


def rewrite_shared_gates() -> Pass:
    """The pass; its hits are the Sigmoids that are added and the products that are turned round."""
    return Pass(DECLARATION, _rewrite)


def _rewrite(model: ir.Model) -> Rewritten:
    if not any(_plans(model)):
        return Rewritten(model, 0)
    copy = model.clone()
    plans = list(_plans(copy))
    for plan in plans:
        for swish, gate in plan.parted:
            draft = Draft()
            own = draft.add("Sigmoid", gate.inputs[0])
            gated = (own if value is gate.outputs[0] else value for value in swish.inputs)
            splice(swish, draft.nodes, [draft.add("Mul", *gated)], DECLARATION.name)
        for scale in plan.turned:
            x, k = scale.inputs
            scale.replace_input_with(0, k)
            scale.replace_input_with(1, x)
    return Rewritten(copy, hits=sum(len(plan.parted) + len(plan.turned) for plan in plans))


def _plans(model: ir.Model) -> Iterator[_Plan]:
    """What there is to do, gate by gate; a scale that several gates read is turned for the first of them."""
    turned: set[ir.Node] = set()
    for gate in model.graph:
        if is_one_of(gate, (SIGMOID,)) and not gate.outputs[0].is_graph_output():
            plan = _plan(gate)
            fresh = [scale for scale in plan.turned if scale not in turned]
            turned.update(fresh)
            if plan.parted or fresh:
                yield _Plan(plan.parted, fresh)


def _plan(gate: ir.Node) -> _Plan:
    readers = _readers(gate.outputs[0])
    swishes = [reader for reader in readers if _multiplies(reader, gate.inputs[0])]
    parted = swishes if len(swishes) < len(readers) else swishes[1:]
    scale = _scale_of(gate)
    if scale is None or not any(_multiplies(reader, scale.inputs[0]) for reader in readers):
        return _Plan([(swish, gate) for swish in parted])
    shared = len(readers) > 1 or len(_readers(scale.outputs[0])) > 1
    return _Plan([(swish, gate) for swish in parted], [scale] if shared else [])


def _scale_of(gate: ir.Node) -> ir.Node | None:
    """The product with a constant that `gate` reads, in the order that the toolkit's rule knows."""
    given = gate.inputs[0]
    made = None if given is None or given.is_graph_output() else given.producer()
    return made if made is not None and is_one_of(made, (MUL,)) and weight_of(made.inputs[1]) is not None else None


def _readers(value: ir.Value) -> list[ir.Node]:
    return list(dict.fromkeys(use.node for use in value.uses()))


def _multiplies(node: ir.Node, x: ir.Value | None) -> bool:
    return is_one_of(node, (MUL,)) and any(value is x for value in node.inputs)
