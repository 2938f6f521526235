"""What is wrong with an ONNX file before its graph is made of it.

Its nested graphs and functions are looked into as well. The depth of nesting is bounded by protobuf (100 messages).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto

from converters.onnx_tensors import shown, tensor_fault
from converters.onnx_texts import unreadable_text

LARGEST_NODES = 1_000_000
"""Of a graph once its functions are put in the place of their calls: those known here have a few thousand, and forty
functions that each call the next twice come to 10^12."""

DEFAULT_DOMAIN_ALIAS = "ai.onnx"
"""Another name of the default domain (onnx.proto), whose own is empty."""

EXTERNAL_KEYS = ("location", "offset", "length")
"""What says where external data is."""

_Call = tuple[str, str, str]


def normalise_proto(model: ModelProto) -> None:
    """Write in `model` what has two spellings in one, and drop what says nothing about its values.

    That is the default domain; a size that is not known (onnxruntime takes a negative one for that, and some exporters
    write -1); and what other tools keep beside the place of external data (onnxruntime: its `prepacked` weights).
    """
    imports = [*model.opset_import, *(entry for function in model.functions for entry in function.opset_import)]
    for entry in imports:
        if entry.domain == DEFAULT_DOMAIN_ALIAS:
            entry.domain = ""
    for node in _nodes(model):
        if node.domain == DEFAULT_DOMAIN_ALIAS:
            node.domain = ""
    for graph in _graphs(model):
        for value in (*graph.input, *graph.output, *graph.value_info):
            if value.type.HasField("tensor_type"):
                for size in value.type.tensor_type.shape.dim:
                    if size.dim_value < 0:
                        size.ClearField("dim_value")
    for tensor in _tensors(model):
        for index in reversed(range(len(tensor.external_data))):
            if tensor.external_data[index].key not in EXTERNAL_KEYS:
                del tensor.external_data[index]


def sparse_tensor(model: ModelProto) -> str | None:
    """The name of a tensor that `model` keeps in its sparse form; None where there is none."""
    for graph in _graphs(model):
        for sparse in graph.sparse_initializer:
            return shown(sparse.values.name)
    for attribute in _attributes(model):
        if attribute.HasField("sparse_tensor") or attribute.sparse_tensors:
            return shown(attribute.name)
    return None


def proto_fault(model: ModelProto) -> str | None:
    """A clause that says what is wrong with `model`; None where nothing is."""
    if (unreadable := unreadable_text(model)) is not None:
        return f"the name {unreadable[:100]!r} is no text"
    return _header_fault(model) or _value_fault(model) or _node_fault(model) or _function_fault(model)


def _header_fault(model: ModelProto) -> str | None:
    if not model.ir_version > 0:
        return "it states no IR version"
    versions = [entry.version for entry in model.opset_import if entry.domain in ("", DEFAULT_DOMAIN_ALIAS)]
    if len(versions) > 1:
        return f"it states {len(versions)} opsets ({', '.join(map(str, versions))})"
    if versions and versions[0] < 1:
        return f"it states the opset {versions[0]}"
    return None


def _value_fault(model: ModelProto) -> str | None:
    graph = model.graph
    for kind, values in (("input", graph.input), ("output", graph.output)):
        if (name := _twice(value.name for value in values)) is not None:
            return f"it has two {kind}s named {shown(name)}"
    if not graph.output:
        return "it has no outputs"
    for value in graph.input:
        if value.type.WhichOneof("value") is None:
            return f"the input {shown(value.name)} has no type"
        if value.type.HasField("tensor_type") and value.type.tensor_type.elem_type not in _ELEMENT_TYPES:
            return f"the input {shown(value.name)} has elements of the type {value.type.tensor_type.elem_type}"
    return next((fault for tensor in _tensors(model) if (fault := tensor_fault(tensor))), None)


_ELEMENT_TYPES = frozenset(number for number in TensorProto.DataType.values() if number != TensorProto.UNDEFINED)


def _twice(names: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _node_fault(model: ModelProto) -> str | None:
    nameless = next((node for node in _nodes(model) if not node.op_type), None)
    return None if nameless is None else f"the node {shown(nameless.name)} states no operator"


def _function_fault(model: ModelProto) -> str | None:
    """Whether functions call each other in a circle, or too often."""
    functions = {(f.domain, f.name, f.overload): f for f in model.functions}
    if not functions:
        return None
    calls = {key: [_call(node) for node in _nodes_in(function.node)] for key, function in functions.items()}
    try:
        order = list(
            TopologicalSorter({key: [c for c in calls[key] if c in functions] for key in calls}).static_order()
        )
    except CycleError as error:
        return f"the function {shown(error.args[1][0][1])} calls itself"
    sizes: dict[_Call, int] = {}
    for key in order:
        sizes[key] = _expanded(calls[key], sizes)
    count = _expanded((_call(node) for node in _nodes_in(model.graph.node)), sizes)
    if count > LARGEST_NODES:
        return f"its functions, put in the place of their calls, come to more than {LARGEST_NODES} nodes"
    return None


def _expanded(calls: Iterable[_Call], sizes: Mapping[_Call, int]) -> int:
    return sum(sizes.get(call, 1) for call in calls)


def _call(node: NodeProto) -> _Call:
    return node.domain, node.op_type, node.overload


def _graphs(model: ModelProto) -> Iterator[GraphProto]:
    """Every graph in `model`, the outermost first."""
    yield model.graph
    for attribute in _attributes(model):
        yield from _inner(attribute)


def _tensors(model: ModelProto) -> Iterator[TensorProto]:
    for graph in _graphs(model):
        yield from graph.initializer
    for attribute in _attributes(model):
        if attribute.HasField("t"):
            yield attribute.t
        yield from attribute.tensors


def _attributes(model: ModelProto) -> Iterator[AttributeProto]:
    for node in _nodes(model):
        yield from node.attribute
    for function in model.functions:
        yield from function.attribute_proto


def _nodes(model: ModelProto) -> Iterator[NodeProto]:
    yield from _nodes_in(model.graph.node)
    for function in model.functions:
        yield from _nodes_in(function.node)


def _nodes_in(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """`nodes` and those of the graphs inside them."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in _inner(attribute):
                yield from _nodes_in(graph.node)


def _inner(attribute: AttributeProto) -> Iterator[GraphProto]:
    if attribute.HasField("g"):
        yield attribute.g
    yield from attribute.graphs
