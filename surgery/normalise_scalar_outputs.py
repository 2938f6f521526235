"""Give every output of rank 0 the shape [1].

Before: `y` of shape []. After: `y` of shape [1], a Reshape of what it was. The engine gives [1] for it in any case
(measured, rknn-toolkit2 2.3.2, rk3588: ReduceMean and ArgMax over all axes; 76 dB, and equal), so that the graph says
what the engine does. The layer table is the one without the Reshape.

An output that no node makes is left to `normalise_passed_outputs`.

Exact: the same number in another shape.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from surgery.declaration import Declaration, Exact, Interface, Pass, Recast, Rewritten
from surgery.inferred import inferred, static_shape
from surgery.interface import fresh_name, numpy_dtype, put_before_output

DECLARATION = Declaration(
    name="normalise_scalar_outputs",
    summary="an output of rank 0 has the shape [1]",
    exactness=Exact("the same number in another shape"),
    after=frozenset({"normalise_scalar_inputs", "normalise_passed_outputs"}),
)


def normalise_scalar_outputs() -> Pass:
    """The pass; its hits are the outputs."""
    return Pass(DECLARATION, _rewrite)


def _rewrite(model: ir.Model) -> Rewritten:
    scalars = _scalars(model)
    if not scalars:
        return Rewritten(model, 0)
    model = model.clone()
    graph = model.graph
    one = ir.Value(name=fresh_name(graph, f"one_{DECLARATION.name}"), const_value=ir.tensor(np.array([1], np.int64)))
    graph.register_initializer(one)
    recast = []
    for output in [value for value in dict.fromkeys(graph.outputs) if value.name in scalars]:
        name = fresh_name(graph, f"{output.name}_{DECLARATION.name}")
        output.shape, output.type = ir.Shape([]), scalars[str(output.name)].type
        made = put_before_output(graph, output, ir.node("Reshape", [None, one], name=name), name)
        made.shape = ir.Shape([1])
        recast.append(Recast(str(made.name), (1,), numpy_dtype(made)))
    return Rewritten(model, hits=len(recast), interface=Interface(outputs=tuple(recast)))


def _scalars(model: ir.Model) -> dict[str, ir.Value]:
    """The outputs of rank 0 that a node makes, by name."""
    made = [value for value in model.graph.outputs if value.producer() is not None]
    known = inferred(model) if any(value.shape is None or value.dtype is None for value in made) else {}
    outputs = {str(value.name): known.get(str(value.name), value) for value in made}
    return {name: value for name, value in outputs.items() if static_shape(value) == ()}
