"""Fold what does not depend on the data: constants, static shapes, and every If whose condition is one of them.

Before: Constant nodes, Shape, Gather and arithmetic on sizes, If(Equal(size, 1)), Identity around the real operators.
After: the real operators and their weights. One walk in topological order: types and shapes are inferred node by node,
with the constants found so far, so that a chain of any length folds at once. Dead nodes and unused weights go as well,
and a shape that the file states wrongly of a tensor is set right.

Precondition: no tensor, computed or folded, is larger than a graph file can be.

Left as it is, because a compiler decides about it: a random operator, a constant that is larger than the limits of
`surgery.constant_limits`, the bodies of Loop and Scan, both branches of an If whose condition depends on the data.

Exact: the same operators on the same constants, once instead of at every run. On a Piper encoder (883 nodes, 389 left)
no bit changes. Measured beside it: onnxslim 0.1.98 swaps the pads of torch's F.pad (toolkit-facts); onnxscript 0.7
leaves that idiom standing, for it keeps ConstantOfShape, and makes a Tile of 4 GB before it asks for its size;
onnxruntime 1.23's offline optimisation is at 128 dB on the encoder, and surgery runs without onnxruntime.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from surgery.constant_branches import inline_branch, taken_branch
from surgery.constant_limits import Budget, computed, largest_output
from surgery.declaration import Declaration, Exact, Pass, Refused, Rewritten
from surgery.matching import ONNX_DOMAINS, Matched, opset_of
from surgery.naming import node_label
from surgery.node_types import Types, output_types, stated_type, static_sizes
from surgery.scopes import Names, drop_unused, drop_unused_weights, fresh_value_name, named, names_of, replace_value
from surgery.weights import stated

LARGEST_TENSOR_BYTES = 2**31
"""Largest tensor of a graph: what a protobuf holds at most, and half of what 32 bits address."""

A_SIZE = "tensors that can be held"

DECLARATION = Declaration(
    name="fold_constants",
    summary="fold constants and static shapes, and take the branch of every If whose condition is constant",
    exactness=Exact("the same operators on the same constants, computed once instead of at every run"),
    after=frozenset({"decompose_functions", "normalise_opset", "normalise_static_inputs"}),
    matches=(
        Matched(
            "Constant",
            used=frozenset(
                {"value", "value_float", "value_floats", "value_int", "value_ints", "value_string", "value_strings"}
            ),
            required={"sparse_value": "absent"},
        ),
        Matched("Identity"),
        Matched("If", used=frozenset({"then_branch", "else_branch"})),
    ),
    preconditions=(A_SIZE,),
)


def fold_constants() -> Pass:
    """The pass; its hits are the nodes that were folded, inlined or dropped, unused weights, and shapes set right."""

    def rewrite(model: ir.Model) -> Rewritten:
        clone = model.clone()
        hits, refused = _fold(clone.graph)
        if refused or not hits:
            return Rewritten(model, 0, refused)
        return Rewritten(clone, hits)

    return Pass(DECLARATION, rewrite)


def folded(model: ir.Model) -> ir.Model:
    """`model` with all folded that a pass behind `fold_constants` has made constant, or only another name."""
    return fold_constants().rewrite(model).model


def _fold(graph: ir.Graph) -> tuple[int, tuple[Refused, ...]]:
    """Fold `graph` in place: how often, and which tensors are out of bounds."""
    opset = opset_of(graph)
    types: Types = {value: known for value in graph.inputs if (known := stated_type(value)) is not None}
    names, budget, hits = names_of(graph), Budget(), 0
    refused: list[Refused] = []
    for node in graph:  # onnx-ir's list of nodes stands it when nodes go and come during the walk
        branches = taken_branch(node)
        if branches is not None:
            inline_branch(node, *branches, names, DECLARATION.name)
            hits += 1
            continue
        replacements: Sequence[ir.Value | ir.TensorProtocol] | None = _renamed(node) or stated(node)
        if replacements is None:
            types |= output_types(node, types, opset)
            hits += sum(_corrected(value, types) for value in node.outputs)
            place = _too_large(node, types)
            if place is not None:
                refused.append(place)
                continue
            arrays, budget = computed(node, types, opset, budget)
            replacements = None if arrays is None else [ir.tensor(array) for array in arrays]
        if replacements is not None:
            _put(node, replacements, names)
            hits += 1
    return hits + drop_unused(graph), tuple(refused)


def _renamed(node: ir.Node) -> list[ir.Value] | None:
    """What an Identity gives another name to; None where that is the name of a graph output, which stays."""
    if node.op_type != "Identity" or node.domain not in ONNX_DOMAINS or node.outputs[0].is_graph_output():
        return None
    return [value for value in node.inputs if value is not None] or None


def _corrected(value: ir.Value, types: Types) -> bool:
    """Whether the file stated a shape of `value` other than follows from the inputs; it is right then."""
    sizes = static_sizes(types.get(value))
    if sizes is None or value.shape is None:
        return False
    wrong = len(sizes) != len(value.shape) or any(
        isinstance(said, int) and said != size for said, size in zip(value.shape, sizes, strict=True)
    )
    if wrong:
        value.shape = ir.Shape(sizes)
    return wrong


def _too_large(node: ir.Node, types: Types) -> Refused | None:
    """Says so where an output of `node` cannot be held."""
    size, shape = largest_output(node, types)
    if size <= LARGEST_TENSOR_BYTES:
        return None
    much = "without end" if math.isinf(size) else f"of {size / 2**30:.1f} GiB, shape {shape}"
    limit = f"at most {LARGEST_TENSOR_BYTES // 2**30} GiB each"
    return Refused(node_label(node), A_SIZE, limit, f"{node.op_type} makes one {much}")


def _put(node: ir.Node, replacements: Sequence[ir.Value | ir.TensorProtocol], names: Names) -> None:
    """Replace `node` by weights, or by other values, for its outputs; weights that nothing reads any more go."""
    graph = node.graph
    assert isinstance(graph, ir.Graph)
    made = [value for value in node.outputs if value.name]
    identities = []
    for value, replacement in zip(made, replacements, strict=True):
        new = replacement if isinstance(replacement, ir.Value) else _weight(value, replacement, names)
        identities.append(replace_value(value, new, names, DECLARATION.name))
        if new is not replacement and new.uses():
            graph.register_initializer(new)
    graph.insert_after(node, [identity for identity in identities if identity is not None])
    read = {value: None for value in node.inputs if value is not None and value.is_initializer()}
    graph.remove(node, safe=True)
    drop_unused_weights(graph, list(read))


def _weight(value: ir.Value, tensor: ir.TensorProtocol, names: Names) -> ir.Value:
    """A weight in the place of `value`, under its name unless the graph puts that out."""
    name = value.name or ""
    if value.is_graph_output():
        name = fresh_value_name(f"{name}/{DECLARATION.name}", names)
    shape = ir.Shape(tensor.shape.numpy())
    return ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=shape, const_value=named(tensor, name))
