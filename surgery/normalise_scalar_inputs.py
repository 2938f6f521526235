"""Give every input of rank 0 the shape [1].

Before: `speed` of shape []. After: `speed` of shape [1], and Squeeze(speed), of shape [], where it was read.
The toolkit dies of an input of rank 0 ("'numpy.float32' object is not iterable"; an int64 one that indexes a Gather:
IndexError in the simulator). It takes a tensor of rank 0 inside the graph, and merges this Squeeze away: the layer
table is the one without it, whoever reads it (Div, Mul, Unsqueeze, Reshape, Expand, Where, Equal, Cast, a Gather's
index, a Pad's value; measured, rknn-toolkit2 2.3.2, rk3588: 65 to 70 dB in the simulator).

An If or a Loop reads the [1] itself: both take one value of either shape, and their refusal names the input.
An input that is an output as well is left to `normalise_passed_outputs`.

Exact: the same number in another shape.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from surgery.declaration import Declaration, Exact, Interface, Pass, Recast, Rewritten
from surgery.inferred import static_shape
from surgery.interface import fresh_name, insert_behind, numpy_dtype

DECLARATION = Declaration(
    name="normalise_scalar_inputs",
    summary="an input of rank 0 has the shape [1]",
    exactness=Exact("the same number in another shape"),
    after=frozenset({"normalise_initializers", "normalise_integer_inputs", "rewrite_noise_as_inputs"}),
)


_TAKES_ONE_VALUE = frozenset({"If", "Loop"})
"""What takes one value of shape [1] for one of rank 0 (onnxruntime; If: ONNX operator specification)."""


def normalise_scalar_inputs() -> Pass:
    """The pass; its hits are the inputs."""
    return Pass(DECLARATION, _rewrite)


def _rewrite(model: ir.Model) -> Rewritten:
    if not any(_scalars(model.graph)):
        return Rewritten(model, 0)
    model = model.clone()
    scalars = list(_scalars(model.graph))
    for value in scalars:
        _lift(model.graph, value)
    recast = tuple(Recast(str(value.name), (1,), numpy_dtype(value)) for value in scalars)
    return Rewritten(model, hits=len(scalars), interface=Interface(inputs=recast))


def _scalars(graph: ir.Graph) -> Iterator[ir.Value]:
    for value in graph.inputs:
        if static_shape(value) == () and not value.is_initializer() and not value.is_graph_output():
            yield value


def _lift(graph: ir.Graph, value: ir.Value) -> None:
    """Make the input `value` [1]; its readers, in nested graphs as well, read the squeezed one."""
    value.shape = ir.Shape([1])
    readers = [(use.node, use.idx) for use in value.uses() if use.node.op_type not in _TAKES_ONE_VALUE]
    if not readers:
        return
    name = fresh_name(graph, f"{value.name}_{DECLARATION.name}")
    node = ir.node("Squeeze", [value], name=name)  # all axes of size 1: the one form of every opset
    scalar = node.outputs[0]
    scalar.name, scalar.type, scalar.shape = name, value.type, ir.Shape([])
    for reader, position in readers:
        reader.replace_input_with(position, scalar)
    insert_behind(graph, node, value)
