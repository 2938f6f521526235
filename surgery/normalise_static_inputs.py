"""Pin the shapes of a graph's inputs.

Before: inputs with symbolic dimensions. After: the same graph whose inputs have the given static shapes. Shapes stated
inside the graph are dropped, for they may name the old symbolic sizes; shape inference finds them again.
The toolkit has no dynamic shapes (reference, Piper decoder).

Precondition: the shapes are for exactly the graph's inputs.

Exact: a graph computes the same for an input of that shape whether the shape was stated before or not.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from surgery.declaration import Declaration, Exact, Pass, Refused, Rewritten

EVERY_INPUT = "a shape for every input, and for nothing else"

DECLARATION = Declaration(
    name="normalise_static_inputs",
    summary="give every input the compiled window's static shape",
    exactness=Exact("stating a shape computes nothing"),
    preconditions=(EVERY_INPUT,),
)


def normalise_static_inputs(shapes: Mapping[str, tuple[int, ...]]) -> Pass:
    """The pass that pins the inputs named in `shapes`; every input of the graph must be named.

    Hits are the inputs that had another shape.
    """

    def rewrite(model: ir.Model) -> Rewritten:
        names = [value.name for value in model.graph.inputs]
        if set(names) != set(shapes):
            got = f"the graph has the inputs {names}"
            return Rewritten(model, 0, (Refused("the graph", EVERY_INPUT, f"shapes for {sorted(shapes)}", got),))
        changed = [value for value in model.graph.inputs if value.shape != shapes[str(value.name)]]
        if not changed:
            return Rewritten(model, 0)
        model = model.clone()
        outputs = set(model.graph.outputs)
        for node in model.graph:
            for value in node.outputs:
                value.shape = _numbers_of(value.shape) if value in outputs else None
        for value in model.graph.inputs:
            assert value.name is not None
            value.shape = ir.Shape(shapes[value.name])
        return Rewritten(model, hits=len(changed))

    return Pass(DECLARATION, rewrite)


def _numbers_of(shape: ir.Shape | None) -> ir.Shape | None:
    """An output must state its rank to be valid ONNX; its symbolic sizes are left open."""
    return None if shape is None else ir.Shape([size if isinstance(size, int) else None for size in shape])
