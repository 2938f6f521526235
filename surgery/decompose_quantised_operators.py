"""Write quantised operators as float operators between QuantizeLinear and DequantizeLinear.

Before: QLinearConv, QLinearMatMul, and onnxruntime's QLinearAdd, QGemm and their like; DynamicQuantizeLSTM,
DynamicQuantizeMatMul, MatMulNBits, whose weights alone are integers.
After: y = QuantizeLinear(op(DequantizeLinear(x)), scale, zero_point) with float weights, which `decompose_quantised`
makes float throughout; LSTM and MatMul with float weights. QLinearAdd and the like have no kernel on the board, and
QLinearConv ends the build (2.3.2, "correct ops": TypeError).

Preconditions: an operator with a float form; and constant scales, zero points and weights, channels in their usual
place, one scale for an activation.

Bounded: an integer operator rounds its result where the float one rounds it too, or to a neighbour; an operator with
dynamic quantisation rounds its input. Sources: `surgery.quantised.EIGHT_BITS`.
"""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import common

from surgery.declaration import Declaration, Pass, Refused, Rewritten
from surgery.matching import ONNX_DOMAINS, Matched
from surgery.naming import node_label
from surgery.quantised import EIGHT_BITS
from surgery.quantised_forms import FORMS, WITHOUT_FORM, Form
from surgery.splice import Draft, splice

HAS_FORM = "a quantised operator that has a float form"
CONSTANT = "a quantised operator with constant weights and scales in their usual place"

_FLOAT_MODEL = "the model as it was before quantisation"

DECLARATION = Declaration(
    name="decompose_quantised_operators",
    summary="QLinearConv, QGemm, DynamicQuantizeLSTM and their like become float operators",
    exactness=EIGHT_BITS,
    after=frozenset({"fold_constants", "fold_dequantised_weights"}),
    matches=(
        Matched(
            "QLinearConv",
            irrelevant=dict.fromkeys(
                ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"), "Conv takes it over as it is"
            ),
        ),
        Matched("QLinearMatMul"),
    ),
    preconditions=(HAS_FORM, CONSTANT),
)


def decompose_quantised_operators() -> Pass:
    """The pass; its hits are the operators."""

    def rewrite(given: ir.Model) -> Rewritten:
        if not any(_form(node) or _is_without(node) for node in given.graph):
            return Rewritten(given, 0)
        model = given.clone()
        refused = [
            Refused(node_label(node), HAS_FORM, _FLOAT_MODEL, f"{node.op_type} has none")
            for node in model.graph
            if _is_without(node)
        ]
        hits = 0
        for node in [node for node in model.graph if _form(node)]:
            found = _rewrite(node)
            hits += found is None
            refused += [] if found is None else [Refused(node_label(node), CONSTANT, _FLOAT_MODEL, found)]
        if refused:
            return Rewritten(given, 0, tuple(refused))
        common.RemoveUnusedNodesPass()(model)
        return Rewritten(model, hits)

    return Pass(DECLARATION, rewrite)


def _form(node: ir.Node) -> Form | None:
    return FORMS.get(("" if node.domain in ONNX_DOMAINS else node.domain, node.op_type))


def _is_without(node: ir.Node) -> bool:
    return node.domain == "com.microsoft" and (node.op_type in WITHOUT_FORM or node.op_type.startswith("QOrdered"))


def _rewrite(node: ir.Node) -> str | None:
    """Put the float form in the place of `node`; or say what stands in the way."""
    form, draft = _form(node), Draft()
    assert form is not None
    try:
        result = form(node, draft)
    except ValueError:  # of numpy: a weight and its scales do not broadcast
        return "its weights, scales and zero points do not fit each other"
    if isinstance(result, str):
        return result
    made = result.producer()
    assert made is not None
    named = [value for value in node.outputs if value.name]
    results = [result] if len(named) == 1 else [made.outputs[node.outputs.index(value)] for value in named]
    splice(node, draft.nodes, results, DECLARATION.name)
    return None
