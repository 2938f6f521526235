"""Make every output something that the engine computes, once.

Before: outputs y, y, and y2 = Identity(y). After: outputs y, and y2 = LeakyRelu(alpha=1)(y). The toolkit drops nodes
that change nothing, and with them every output but one of those that hold the same values: the simulator then returns
fewer arrays than the graph has outputs. It drops Identity, Dropout, Mul by 1, Add of 0, a Cast to the same type,
Reshape, Expand, Slice and Pad that keep the shape, Transpose there and back; it keeps LeakyRelu with alpha 1, also
two of them on one tensor (measured, rknn-toolkit2 2.3.2, rk3588, ranks 1 to 5: the outputs agree to the last bit). An
output that is an input behind an Identity is right as it is (72 dB), also several of them.

Preconditions: an output depends on an input (the toolkit drops constants), is no input itself (an engine cannot have
both under one name), and where it repeats another it holds floats, for LeakyRelu takes nothing else.

Exact: LeakyRelu with alpha 1 is x, or 1 * x.
"""

from __future__ import annotations

import onnx_ir as ir

from surgery.declaration import Declaration, Exact, Pass, Refused, Rewritten
from surgery.graph import varying_values
from surgery.inferred import inferred
from surgery.interface import fresh_name, put_before_output
from surgery.passing import passed_value

COMPUTED = "an output that depends on an input"
NO_INPUT = "an output that is no input"
FLOATS = "floats in an output that repeats another"

DECLARATION = Declaration(
    name="normalise_passed_outputs",
    summary="outputs that hold the same values are computed each for itself",
    exactness=Exact("LeakyRelu with alpha 1 is x, or 1 * x"),
    after=frozenset(
        {
            "decompose_quantised",
            "decompose_sequences",
            "fold_empty_parts",
            "normalise_clip_bounds",
            "normalise_double",
            "normalise_dropout",
            "normalise_float32",
            "normalise_scalar_inputs",
            "normalise_unused_inputs",
            "rewrite_noise_as_inputs",
        }
    ),
    preconditions=(COMPUTED, NO_INPUT, FLOATS),
)

_FLOAT_TYPES = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.DOUBLE)
"""What LeakyRelu takes in every opset."""


def normalise_passed_outputs() -> Pass:
    """The pass; its hits are the outputs that are listed once less, or computed once more."""
    return Pass(DECLARATION, _rewrite)


def _rewrite(model: ir.Model) -> Rewritten:
    outputs = list(dict.fromkeys(model.graph.outputs))
    listed_again = len(model.graph.outputs) - len(outputs)
    refused = _not_computed(model.graph, outputs)
    if not refused and len(outputs) > 1:
        known = inferred(model)
        repeated = _repeated(outputs, known)
        refused = [_no_floats(value, first) for value, first in repeated.items() if not _is_float(value, known)]
    else:
        repeated = {}
    if refused or not (listed_again or repeated):
        return Rewritten(model, 0, tuple(refused))
    names = [str(value.name) for value in repeated]
    model = model.clone()
    once = list(dict.fromkeys(model.graph.outputs))
    model.graph.outputs.clear()
    model.graph.outputs.extend(once)
    for value in [value for value in once if value.name in names]:
        name = fresh_name(model.graph, f"{value.name}_{DECLARATION.name}")
        copy = ir.node("LeakyRelu", [None], {"alpha": 1.0}, name=name)
        put_before_output(model.graph, value, copy, name).shape = value.shape
    return Rewritten(model, hits=listed_again + len(repeated))


def _not_computed(graph: ir.Graph, outputs: list[ir.Value]) -> list[Refused]:
    varying = varying_values(graph)
    refused = []
    for value in outputs:
        where = f"output '{value.name}'"
        if value.is_graph_input() and not value.is_initializer():
            got = "it is the input of that name: leave it out of the outputs"
            refused.append(Refused(where, NO_INPUT, "a node that makes it", got))
        elif value not in varying:
            got = "it is a constant of the graph: leave it out of the outputs"
            refused.append(Refused(where, COMPUTED, "a way from an input to it", got))
    return refused


def _repeated(outputs: list[ir.Value], known: dict[str, ir.Value]) -> dict[ir.Value, ir.Value]:
    """The outputs that hold what another does, each with the one that it repeats; what is an input needs no copy."""
    groups: dict[ir.Value, list[ir.Value]] = {}
    for value in outputs:
        groups.setdefault(passed_value(value, known), []).append(value)
    repeated = {}
    for source, group in groups.items():
        if not source.is_graph_input():
            first = source if source in group else group[0]
            repeated.update({value: first for value in group if value is not first})
    return repeated


def _is_float(value: ir.Value, known: dict[str, ir.Value]) -> bool:
    return known.get(str(value.name), value).dtype in _FLOAT_TYPES


def _no_floats(value: ir.Value, first: ir.Value) -> Refused:
    got = f"it repeats the output '{first.name}' and holds {value.dtype.name if value.dtype else 'no known type'}"
    return Refused(f"output '{value.name}'", FLOATS, "a float type", f"{got}: leave one of the two out")
