"""Bring a graph's operators to opsets that the toolkit and the passes read: 13 to 19.

Before: `Gelu` of opset 20, `Clip` with its bounds as attributes of opset 9, the domain spelled "ai.onnx".
After: the same computation in operators of opset 13 where it was below, of 19 where it was above, domain "".

The toolkit refuses opset 20 by name. It takes 7 to 12 right (measured, rknn-toolkit2 2.3.2, rk3588: 51 graphs of those
opsets, 64 dB or better, as with 13), but passes behind this one need not know how those opsets wrote an operator.
A node of the domain "ai.onnx" is a TypeError in its step `correct ops`.

An operator that stands in both opsets with one meaning is left as it is. One that changed is written as the wanted
opset writes it; one that is new since 19 is replaced by ONNX's own function body (`onnx.defs`), again and again.

Preconditions: the opset is one that ONNX has, from 7 on, the same for both spellings of the domain; every operator has
an equal in the wanted opset.

Exact: each rewrite is what ONNX's changelog or its function body says the operator means.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir
from onnx import defs

from contracts.onnx_versions import HIGHEST_OPSET
from surgery.declaration import Declaration, Exact, Pass, Refused, Rewritten
from surgery.inferred import infer_types, state_again, stated_types
from surgery.matching import ONNX_DOMAINS
from surgery.naming import node_label
from surgery.opset_lower import LOWERED, WRONG_BODIES, is_new, relabelled, same_meaning
from surgery.opset_raise import raised
from surgery.schema_functions import body_of, is_defined
from surgery.splice import Draft, splice

LOWEST_READ = 7
"""onnxruntime, and with it the proof, begins there; Add of opset 6 with `broadcast` stops the toolkit (measured)."""

LOWEST_MADE = 13
"""From here on what opsets 7 to 12 wrote as attributes are inputs, and Softmax works on one axis."""

ONE_OPSET = "one opset of ONNX's own operators"
KNOWN_OPSET = "an opset that can be converted"
AN_EQUAL = f"an equal in opset {HIGHEST_OPSET} or below"

DECLARATION = Declaration(
    name="normalise_opset",
    summary="bring operators to an opset of 13 to 19, new ones by ONNX's own definition of them",
    exactness=Exact("each operator is written as ONNX's changelog or its function body says it in the other opset"),
    after=frozenset({"decompose_functions", "fold_dequantised_weights"}),
    preconditions=(ONE_OPSET, KNOWN_OPSET, AN_EQUAL),
)


def normalise_opset() -> Pass:
    """The pass; its hits are nodes, and one for the opset's number or spelling where no node is touched."""

    def rewrite(model: ir.Model) -> Rewritten:
        stated = {model.opset_imports[domain] for domain in ONNX_DOMAINS if domain in model.opset_imports}
        refused = _unreadable(stated)
        if refused is not None:
            return Rewritten(model, 0, (refused,))
        if not stated or (LOWEST_MADE <= min(stated) <= HIGHEST_OPSET and "ai.onnx" not in model.opset_imports):
            return Rewritten(model, 0)
        clone = model.clone()
        (opset,) = stated
        clone.opset_imports.pop("ai.onnx", None)  # nodes of that spelling are of the domain "" in onnx_ir
        clone.opset_imports[""] = opset
        types = stated_types(clone)
        if not LOWEST_MADE <= opset <= HIGHEST_OPSET:
            infer_types(clone)
        results = list(_convert(clone, opset))
        state_again(types)
        clone.opset_imports[""] = min(max(opset, LOWEST_MADE), HIGHEST_OPSET)
        reasons = tuple(result for result in results if isinstance(result, Refused))
        if reasons:
            return Rewritten(model, 0, reasons)
        return Rewritten(clone, hits=max(1, len(results)))

    return Pass(DECLARATION, rewrite)


def _unreadable(stated: set[int]) -> Refused | None:
    if len(stated) > 1:
        limit = "one number for the domains '' and 'ai.onnx'"
        return Refused("the graph", ONE_OPSET, limit, f"it says {sorted(stated)}")
    newest = defs.onnx_opset_version()
    if stated and not LOWEST_READ <= min(stated) <= newest:
        return Refused("the graph", KNOWN_OPSET, f"{LOWEST_READ} to {newest}", f"it is of opset {min(stated)}")
    return None


def _convert(model: ir.Model, opset: int) -> Iterator[Refused | str]:
    """Convert every node; yields the label of each that was rewritten, or why it cannot be."""
    todo = [(node, opset) for node in model.graph.all_nodes() if node.domain == ""]
    while todo:
        node, version = todo.pop()
        if LOWEST_MADE <= version <= HIGHEST_OPSET:
            continue
        if not defs.has(node.op_type, version, ""):
            yield _without_equal(node, version, f"ONNX has no such operator in opset {version}")
            continue
        try:
            outcome = _raise(node, version) if version < LOWEST_MADE else _lower(node, version, todo)
        except Exception as error:  # noqa: BLE001 - a node that lacks what its operator must have fails anyhow
            outcome = f"it is not valid ({type(error).__name__}: {error})"
        if isinstance(outcome, str):
            yield _without_equal(node, version, outcome)
        elif outcome:
            yield node_label(node)


def _raise(node: ir.Node, opset: int) -> str | bool:
    step = raised(node, opset)
    if step is None:
        return False
    draft = Draft()
    outputs = step(node, draft)
    if isinstance(outputs, str):
        return outputs
    splice(node, draft.nodes, outputs, DECLARATION.name)
    return True


def _lower(node: ir.Node, opset: int, todo: list[tuple[ir.Node, int]]) -> str | bool:
    if is_new(node.op_type):
        if node.op_type in WRONG_BODIES:
            return WRONG_BODIES[node.op_type]
        body = body_of(node, opset)
        if body is None and is_defined(node.op_type, opset):
            return "ONNX's definition of it by others asks for types and shapes that are not known"
        if body is None:
            return f"it is new since opset {HIGHEST_OPSET} and ONNX defines it by no other"
        nodes, outputs, version = body
        splice(node, nodes, outputs, DECLARATION.name)
        todo.extend((made, version) for made in nodes)
        return True
    if same_meaning(node, opset):
        return False
    draft = Draft()
    drafted = LOWERED[node.op_type](node, draft) if node.op_type in LOWERED else None
    if drafted is None:
        return relabelled(node) or False
    if isinstance(drafted, str):
        return drafted
    splice(node, draft.nodes, drafted, DECLARATION.name)
    return True


def _without_equal(node: ir.Node, opset: int, why: str) -> Refused:
    return Refused(node_label(node), AN_EQUAL, f"another form of {node.op_type} (opset {opset})", why)
