"""Make float32 of other float types, for the passes that do so for half floats and for doubles.

Only what depends on an input is touched. What is constant, a size worked out in double precision for one, keeps its
type until something varying reads it: there it becomes float32, rounded once at its end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import numpy as np
import onnx_ir as ir

from surgery.declaration import Interface, Recast, Refused, Rewritten
from surgery.inferred import infer_types
from surgery.scopes import graphs_of
from surgery.typed_values import (
    TYPE_ATTRIBUTES,
    constants_of,
    data_type,
    inner_inputs,
    is_fed,
    stated_types,
    varying_nodes,
)

IN_RANGE = "weights within float32's range"
KNOWN_SHAPE = "a known shape for an input or output that becomes float32"


def make_float32(model: ir.Model, types: Collection[ir.DataType], made_by: str) -> Rewritten:
    """`model` with everything of `types` that depends on an input in float32 instead.

    Casts between float types that are left without effect go. Hits are values, weights among them.
    """
    if not any(kind in types for kind in stated_types(model)):
        return Rewritten(model, 0)
    clone = model.clone()
    infer_types(clone)
    nodes = varying_nodes(clone)
    given = [value for value in clone.graph.inputs if is_fed(value, clone.graph) and value.dtype in types]
    made = [value for value in clone.graph.outputs if value.producer() in nodes and value.dtype in types]
    refused = [*_out_of_range(nodes, types), *_shapeless([*given, *made])]
    if refused:
        return Rewritten(model, 0, tuple(refused))
    before = {value: value.dtype for node in nodes for value in (*node.inputs, *node.outputs) if value is not None}
    hits = len({*given}) + _retype_constants(clone.graph, nodes, types, made_by)
    for value in [*given, *inner_inputs(clone.graph, types)]:
        value.type = ir.TensorType(ir.DataType.FLOAT)
    for node in nodes:
        hits += _retype(node, types)
    for node in nodes:
        if node.op_type == "Cast" and _changed(node, before):
            _bypass(node)
    if not hits:
        return Rewritten(model, 0)
    interface = Interface(inputs=tuple(map(_recast, given)), outputs=tuple(map(_recast, made)))
    return Rewritten(clone, hits, interface=interface)


def _changed(node: ir.Node, before: Mapping[ir.Value, ir.DataType | None]) -> bool:
    """Whether the Cast `node` read or made another type before."""
    return any(value is not None and value.dtype is not before.get(value) for value in (*node.inputs, *node.outputs))


def _out_of_range(nodes: dict[ir.Node, None], types: Collection[ir.DataType]) -> Iterator[Refused]:
    for value in constants_of(nodes, types):
        if value.const_value is not None:
            largest = _largest(value.const_value)
            if largest > _FLOAT32_MAX:
                got = f"it holds {largest:.4g}"
                yield Refused(f"weight '{value.name}'", IN_RANGE, f"at most {_FLOAT32_MAX:.4g}", got)


_FLOAT32_MAX = float(np.finfo(np.float32).max)


def _largest(tensor: ir.TensorProtocol) -> float:
    """The largest finite magnitude."""
    if tensor.dtype is not ir.DataType.DOUBLE:
        return 0.0
    array = tensor.numpy()
    return float(np.max(np.abs(array), where=np.isfinite(array), initial=0.0))


def _shapeless(values: list[ir.Value]) -> Iterator[Refused]:
    for value in values:
        if value.shape is None or not value.shape.is_static():
            shape = "no shape" if value.shape is None else f"[{', '.join(map(str, value.shape))}]"
            side = "input" if value.is_graph_input() else "output"
            yield Refused(f"{side} '{value.name}'", KNOWN_SHAPE, "whole numbers", shape)


def _recast(value: ir.Value) -> Recast:
    assert value.name is not None
    assert value.shape is not None
    return Recast(value.name, tuple(value.shape.numpy()), "float32")


def _retype_constants(main: ir.Graph, nodes: dict[ir.Node, None], types: Collection[ir.DataType], made_by: str) -> int:
    """Make float32 of the constants that varying nodes read; returns how many."""
    constants = constants_of(nodes, types)
    for value in constants:
        readers = [(node, place) for node, place in value.uses() if node in nodes]
        given_away = value.is_graph_output() and value.graph is main
        if value.is_initializer() and len(readers) == len(value.uses()) and not given_away:
            assert value.const_value is not None
            value.const_value = ir.tensor(value.const_value.numpy().astype(np.float32), name=value.name)
            value.type = ir.TensorType(ir.DataType.FLOAT)
            continue
        twin = _cast_behind(value, made_by)
        for node, place in readers:
            node.replace_input_with(place, twin)
        for node in nodes:
            for graph in graphs_of(node):
                for place, output in enumerate(graph.outputs):
                    if output is value:
                        graph.outputs[place] = twin
    return len(constants)


def _cast_behind(value: ir.Value, made_by: str) -> ir.Value:
    """A Cast of the constant `value`, put where it is made, or first where it is a weight."""
    cast = ir.node("Cast", [value], {"to": int(ir.DataType.FLOAT)}, name=f"{value.name}/{made_by}")
    twin = cast.outputs[0]
    twin.name, twin.type, twin.shape = f"{value.name}.{made_by}", ir.TensorType(ir.DataType.FLOAT), value.shape
    producer = value.producer()
    if producer is not None:
        producer.append(cast)
    else:
        graph = value.graph
        assert isinstance(graph, ir.Graph)
        graph.insert_before(graph[0], cast)
    return twin


def _retype(node: ir.Node, types: Collection[ir.DataType]) -> int:
    """Let `node` name and make float32; returns how many values it makes of another type than before."""
    for name in TYPE_ATTRIBUTES:
        attribute = node.attributes.get(name)
        if attribute is None or attribute.type != ir.AttributeType.INT:
            continue
        if data_type(attribute.as_int()) in types:
            node.attributes[name] = ir.AttrInt64(name, int(ir.DataType.FLOAT))
    for name, attribute in list(node.attributes.items()):
        if attribute.type == ir.AttributeType.TENSOR and attribute.as_tensor().dtype in types:
            tensor = attribute.as_tensor()
            node.attributes[name] = ir.AttrTensor(name, ir.tensor(tensor.numpy().astype(np.float32)))
    changed = [value for value in node.outputs if value.dtype in types]
    for value in changed:
        value.type = ir.TensorType(ir.DataType.FLOAT)
    return len(changed)


def _bypass(node: ir.Node) -> None:
    """Take out the Cast `node` where it goes from float32 to float32 now."""
    given, made = node.inputs[0], node.outputs[0]
    if given is None or not given.dtype is made.dtype is ir.DataType.FLOAT:
        return
    if made.is_graph_output():
        node.op_type = "Identity"
        node.attributes.clear()
        return
    made.replace_all_uses_with(given)
    assert node.graph is not None
    node.graph.remove(node, safe=True)
