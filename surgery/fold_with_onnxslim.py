"""Fold constants and static shapes with onnxslim.

Before: Shape, ConstantOfShape, Gather and arithmetic on sizes around the real operators. After: the real operators.
Exact by intent; onnxslim miscompiles one known idiom (toolkit-facts, "Simplifiers lie too"), so that parity against the
unfolded graph is owed every time. Right on the Piper and Inflect decoder slices.

Precondition: the inputs are static.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir
import onnxslim

from surgery.declaration import Declaration, Exact, Pass, Refused, Rewritten

STATIC_INPUTS = "static inputs"

DECLARATION = Declaration(
    name="fold_with_onnxslim",
    summary="fold constants and static shapes (onnxslim)",
    exactness=Exact("constant folding; parity is owed, onnxslim is wrong on torch's F.pad idiom (toolkit-facts)"),
    after=frozenset({"normalise_static_inputs", "mask_decoder", "trim_decoder"}),
    preconditions=(STATIC_INPUTS,),
)


def fold_with_onnxslim() -> Pass:
    """The pass; its hits are the nodes that went away."""

    def rewrite(model: ir.Model) -> Rewritten:
        refused = tuple(_open_inputs(model.graph))
        if refused:
            return Rewritten(model.clone(), 0, refused)
        before = model.graph.num_nodes()
        # onnxslim looks for external data in the working directory.
        whole = ir.external_data.load_to_model(model.clone())
        # With no output file named, it prints no table of what it did.
        folded = ir.from_proto(onnxslim.slim(ir.to_proto(whole)))
        return Rewritten(folded, hits=before - folded.graph.num_nodes())

    return Pass(DECLARATION, rewrite)


def _open_inputs(graph: ir.Graph) -> Iterator[Refused]:
    for value in graph.inputs:
        sizes = None if value.shape is None else list(value.shape)
        if sizes is None or not all(isinstance(size, int) for size in sizes):
            got = "no shape" if sizes is None else f"[{', '.join(str(size) for size in sizes)}]"
            yield Refused(f"input '{value.name}'", STATIC_INPUTS, "whole numbers", got)
