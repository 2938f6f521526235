"""Operators that ONNX itself defines by others: the bodies of its function operators, made into nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx
import onnx_ir as ir
from onnx import defs

from surgery.graph import input_at

Body = tuple[list[ir.Node], list[ir.Value], int]
"""Nodes in order, what stands for each named output of the operator, and the opset that they are of."""


def body_of(node: ir.Node, opset: int) -> Body | None:
    """What ONNX says `node`, an operator of its own domain, consists of, reading the inputs of `node`.

    The nodes are in no graph yet. The types of the inputs, where they are known, choose among bodies.

    Returns:
        None where ONNX defines the operator by no other, or not for these types and attributes.
    """
    schema = defs.get_schema(node.op_type, opset, "")
    found = _function(schema, node, opset)
    if found is None:
        return None
    proto, version = found
    produced = {name for made in proto.node for name in made.output} | set(proto.input)
    wanted = [name for name, value in zip(proto.output, node.outputs, strict=False) if value.name]
    if any(name not in produced for name in wanted):
        return None
    del proto.output[:]
    proto.output.extend(wanted)
    proto.ClearField("value_info")
    function = ir.serde.deserialize_function(proto)
    given = {**_defaults(schema), **node.attributes}
    for made in function.graph.all_nodes():
        _fill_in(made, given)
    for position, value in enumerate(function.inputs):
        actual = input_at(node, position)
        if actual is not None:
            value.replace_all_uses_with(actual)
        else:
            for reader, place in list(value.uses()):
                reader.replace_input_with(place, None)
    outputs = list(function.outputs)
    function.outputs.clear()
    nodes = list(function)
    function.remove(nodes)
    return nodes, outputs, version


def is_defined(op: str, opset: int) -> bool:
    """Whether ONNX defines `op` of `opset` by other operators, for some types and attributes."""
    schema: Any = defs.get_schema(op, opset, "")
    versions = [*schema.function_opset_versions, *schema.context_dependent_function_opset_versions]
    return any(version <= opset for version in versions)


def _function(schema: Any, node: ir.Node, opset: int) -> tuple[onnx.FunctionProto, int] | None:
    # onnx's stub of OpSchema lacks what it says of functions, hence Any.
    proto = onnx.FunctionProto()
    plain = [version for version in schema.function_opset_versions if version <= opset]
    if schema.has_function and plain:
        proto.ParseFromString(schema.get_function_with_opset_version(max(plain)))
        return proto, max(plain)
    by_context = [version for version in schema.context_dependent_function_opset_versions if version <= opset]
    if schema.has_context_dependent_function and by_context:
        types = [_type_of(value).SerializeToString() for value in node.inputs]
        asked = ir.to_proto(node).SerializeToString()
        data = schema.get_context_dependent_function_with_opset_version(max(by_context), asked, types)
        proto.ParseFromString(data)
        return (proto, max(by_context)) if proto.node else None
    return None


def _type_of(value: ir.Value | None) -> onnx.TypeProto:
    if value is None or value.type is None:
        return onnx.TypeProto()
    kind: onnx.TypeProto = ir.to_proto(value.type)
    if value.shape is not None:
        ir.serde.serialize_shape_into(kind, value.shape)
    return kind


def _defaults(schema: defs.OpSchema) -> dict[str, ir.Attr]:
    filled = {name: made.default_value for name, made in schema.attributes.items() if made.default_value.name}
    return {name: ir.serde.deserialize_attribute(value) for name, value in filled.items()}


def _fill_in(node: ir.Node, given: Mapping[str, ir.Attr]) -> None:
    """Put the attributes that `node` takes from the operator around it."""
    for name, attribute in list(node.attributes.items()):
        if attribute.is_ref():
            actual = given.get(attribute.ref_attr_name or "")
            if actual is None:
                del node.attributes[name]
            else:
                node.attributes[name] = ir.Attr(name, actual.type, actual.value)
