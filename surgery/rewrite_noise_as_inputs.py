"""Make inputs of the noise that a graph draws itself.

Before: n = RandomNormal(shape), RandomUniform(shape), RandomNormalLike(x) or RandomUniformLike(x). After: n is an input
of that shape, and the interface says how a runtime draws it: the node's mean and scale, or low and high. The toolkit
folds the first two to one draw, which the engine holds for ever, and has no kernel for the others (gates/operators.py).

The input is float32; where the noise was of another type, or was an output as well, a Cast or an Identity makes n of an
input of another name. A name that is too long for an input becomes another. A seed is dropped: a runtime seeds its own
generator.

Preconditions: a normal or uniform distribution, in the main graph, of floats, of known sizes that fit into memory.
Bernoulli and Multinomial draw by probabilities that the graph computes, so that nothing can be drawn before it runs.

Exact: it computes with the draw it is given. Double noise arrives rounded to float32 (at 150 dB).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from contracts.contract import Noise
from contracts.onnx_versions import LONGEST_NAME
from surgery.declaration import AddedInput, Declaration, Exact, Interface, Pass, Refused, Rewritten
from surgery.inferred import inferred, static_shape
from surgery.interface import LARGEST_TENSOR, fresh_name, is_reasonable
from surgery.matching import Matched, is_one_of
from surgery.naming import node_label

PLAIN_DRAW = "noise that can be drawn before the graph runs"
MAIN_GRAPH = "noise drawn in the main graph"
FLOATS = "noise of floats"
KNOWN_SIZES = "noise of known sizes"
REASONABLE = "noise that fits into memory"

_SEED = {"seed": "a runtime draws anew for every run"}
_NORMAL, _UNIFORM = frozenset({"mean", "scale", "dtype"}), frozenset({"low", "high", "dtype"})

DRAWN = (
    Matched("RandomNormal", used=_NORMAL | {"shape"}, irrelevant=_SEED),
    Matched("RandomNormalLike", used=_NORMAL, irrelevant=_SEED),
    Matched("RandomUniform", used=_UNIFORM | {"shape"}, irrelevant=_SEED),
    Matched("RandomUniformLike", used=_UNIFORM, irrelevant=_SEED),
)
"""What becomes an input."""

_REFUSED = ("Bernoulli", "Multinomial")

_FLOAT_TYPES = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.DOUBLE)

DECLARATION = Declaration(
    name="rewrite_noise_as_inputs",
    summary="noise that the graph draws becomes an input of the engine",
    exactness=Exact("it computes with the draw that it is given"),
    after=frozenset({"decompose_functions", "fold_constants", "normalise_static_inputs"}),
    matches=DRAWN,
    preconditions=(PLAIN_DRAW, MAIN_GRAPH, FLOATS, KNOWN_SIZES, REASONABLE),
)


@dataclass(frozen=True)
class _Draw:
    """One node that draws, by the name of its tensor."""

    tensor: str
    shape: tuple[int, ...]
    dtype: ir.DataType
    distribution: str
    a: float
    b: float


def rewrite_noise_as_inputs() -> Pass:
    """The pass; its hits are the nodes that drew."""
    return Pass(DECLARATION, _rewrite)


def _rewrite(model: ir.Model) -> Rewritten:
    nodes = [node for node in model.graph.all_nodes() if is_one_of(node, DRAWN) or node.op_type in _REFUSED]
    if not nodes:
        return Rewritten(model, 0)
    known = inferred(model)
    plans = [_plan(model.graph, node, known) for node in nodes]
    refused = tuple(plan for plan in plans if isinstance(plan, Refused))
    if refused:
        return Rewritten(model, 0, refused)
    model = model.clone()
    added = [_become_input(model.graph, plan) for plan in plans if isinstance(plan, _Draw)]
    return Rewritten(model, hits=len(added), interface=Interface(added=tuple(added)))


def _plan(graph: ir.Graph, node: ir.Node, known: dict[str, ir.Value]) -> _Draw | Refused:
    label = node_label(node)
    if node.op_type in _REFUSED:
        limit = "RandomNormal or RandomUniform"
        return Refused(label, PLAIN_DRAW, limit, f"{node.op_type} draws by what the graph computes")
    if node.graph is not graph:
        return Refused(label, MAIN_GRAPH, "the main graph", f"{node.op_type} stands in a graph inside it")
    tensor = str(node.outputs[0].name)
    value = known.get(tensor, node.outputs[0])
    dtype = _dtype(node, value, known)
    if dtype not in _FLOAT_TYPES:
        return Refused(
            label, FLOATS, "a float type", f"{node.op_type} draws {dtype.name if dtype else 'no known type'}"
        )
    shape = _shape(node, value, known)
    if shape is None:
        return Refused(label, KNOWN_SIZES, "whole numbers", _unknown_sizes(graph, node, known))
    if not is_reasonable(shape):
        got = f"{node.op_type} draws {list(shape)}"
        return Refused(label, REASONABLE, f"1 to {LARGEST_TENSOR} values", got)
    a, b = ("mean", "scale") if "Normal" in node.op_type else ("low", "high")
    distribution = "normal" if "Normal" in node.op_type else "uniform"
    return _Draw(tensor, shape, dtype, distribution, _number(node, a, 0.0), _number(node, b, 1.0))


def _unknown_sizes(graph: ir.Graph, node: ir.Node, known: dict[str, ir.Value]) -> str:
    """What to do about them: they follow from an input of open shape, or from the first node that makes such sizes."""
    read, todo = {node}, [node]
    while todo:
        makers = {value.producer() for value in todo.pop().inputs if value is not None} - {None}
        todo += [maker for maker in makers if maker is not None and maker not in read]
        read.update(todo)

    def is_open(values: Sequence[ir.Value | None]) -> bool:
        return any(value and static_shape(known.get(str(value.name), value)) is None for value in values)

    before = (made for made in graph if made in read and made is not node)
    origin = next((made for made in before if is_open(made.outputs) and not is_open(made.inputs)), None)
    if origin is None:
        return f"the sizes of what {node.op_type} draws are not known: give its input a fixed shape"
    return (
        f"the sizes of what {node.op_type} draws follow from those of {origin.op_type}, {node_label(origin)}, which no "
        "input fixes: cut the graph before that, and keep what follows outside the engine"
    )


def _dtype(node: ir.Node, value: ir.Value, known: dict[str, ir.Value]) -> ir.DataType | None:
    """Of the draw: as stated, as of the tensor it is like, or float32 (ONNX operator specification)."""
    stated = node.attributes.get("dtype")
    if stated is not None:
        return ir.DataType(stated.as_int())
    if not node.op_type.endswith("Like"):
        return ir.DataType.FLOAT
    like = node.inputs[0]
    return value.dtype if like is None else known.get(str(like.name), like).dtype


def _shape(node: ir.Node, value: ir.Value, known: dict[str, ir.Value]) -> tuple[int, ...] | None:
    stated = node.attributes.get("shape")
    if stated is not None:
        return tuple(stated.as_ints())
    like = node.inputs[0] if node.inputs else None
    return static_shape(value if like is None else known.get(str(like.name), like))


def _number(node: ir.Node, name: str, default: float) -> float:
    attribute = node.attributes.get(name)
    return default if attribute is None else attribute.as_float()


def _become_input(graph: ir.Graph, draw: _Draw) -> AddedInput:
    value = next(output for node in graph for output in node.outputs if output.name == draw.tensor)
    node = value.producer()
    assert node is not None
    made = ir.Value(shape=ir.Shape(draw.shape), type=ir.TensorType(ir.DataType.FLOAT))
    if draw.dtype == ir.DataType.FLOAT and not value.is_graph_output():
        value.replace_all_uses_with(made)
        made.name = draw.tensor if len(draw.tensor) <= LONGEST_NAME else _input_name(graph, draw)
        graph.remove(node, safe=True)
    else:
        made.name = _input_name(graph, draw)
        same = draw.dtype == ir.DataType.FLOAT
        copy = ir.node("Identity" if same else "Cast", [made], {} if same else {"to": draw.dtype}, name=made.name)
        ir.convenience.replace_nodes_and_values(graph, node, [node], [copy], [value], copy.outputs)
    graph.inputs.append(made)
    return AddedInput(made.name, draw.tensor, Noise(made.name, draw.distribution, draw.a, draw.b))


def _input_name(graph: ir.Graph, draw: _Draw) -> str:
    """Another name than the tensor's, in which its end tells most: exporters write a tensor's path before it."""
    return fresh_name(graph, f"{draw.tensor[-_KEPT_CHARACTERS:]}_{DECLARATION.name}")


_KEPT_CHARACTERS = 80
"""Enough to tell tensors apart, and with what is put behind it less than the longest name."""
