"""Fold constants and static shapes with onnxslim.

Before: Shape, ConstantOfShape, Gather and arithmetic on sizes around the real operators. After: the real operators.
Exact by intent; onnxslim miscompiles one known idiom (toolkit-facts, "Simplifiers lie too"), so that parity against the
unfolded graph is owed every time. Right on the Piper and Inflect decoder slices.

Precondition: the inputs are static.
"""

from __future__ import annotations

import contextlib
import io

import onnx_ir as ir
import onnxslim

from surgery.declaration import Declaration, Exact, Pass, Rewritten

DECLARATION = Declaration(
    name="fold_with_onnxslim",
    summary="fold constants and static shapes (onnxslim)",
    exactness=Exact("constant folding; parity is owed, onnxslim is wrong on torch's F.pad idiom (toolkit-facts)"),
    after=frozenset({"normalise_static_inputs", "mask_decoder"}),
)


def fold_with_onnxslim() -> Pass:
    """The pass; its hits are the nodes that went away."""

    def rewrite(model: ir.Model) -> Rewritten:
        before = model.graph.num_nodes()
        # onnxslim looks for external data in the working directory.
        whole = ir.external_data.load_to_model(model.clone())
        # It prints its own table of what it did.
        with contextlib.redirect_stdout(io.StringIO()):
            slim = onnxslim.slim(ir.to_proto(whole))
        folded = ir.from_proto(slim)
        return Rewritten(folded, hits=before - folded.graph.num_nodes())

    return Pass(DECLARATION, rewrite)
