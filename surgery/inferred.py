"""Types and shapes of a graph's values, as far as ONNX's inference finds them."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import onnx_ir as ir
from onnx import defs
from onnx_ir.passes.common import ShapeInferencePass

from surgery.matching import ONNX_DOMAINS
from surgery.scopes import graphs_of

_LOGGER = logging.getLogger("onnx_ir.passes.common.shape_inference")


def infer_types(model: ir.Model) -> None:
    """Note the types and shapes of `model` on its values.

    Not strict: a node that inference fails on (MeanVarianceNormalization of opset 18 is one) leaves the others theirs.
    Where it gives up altogether, on a node that is no valid ONNX, nothing is noted and nothing printed.
    Sequences and optional values keep what the file says of them: onnx-ir would note them as tensors.
    """
    stated = [(value, value.type, value.shape) for value in _no_tensors(model)]
    heard = _LOGGER.disabled
    _LOGGER.disabled = True  # it would print a traceback
    try:
        ShapeInferencePass(check_type=False, strict_mode=False, data_prop=True)(model)
    finally:
        _LOGGER.disabled = heard
    for value, kind, shape in stated:
        value.type, value.shape = kind, shape


def inferred(model: ir.Model) -> dict[str, ir.Value]:
    """Every named value of the main graph of a copy of `model`, with its type and shape; `model` is left as it is."""
    copy = model.clone()
    infer_types(copy)
    values = [*copy.graph.inputs, *copy.graph.initializers.values(), *(v for node in copy.graph for v in node.outputs)]
    return {value.name: value for value in values if value.name}


Stated = dict[ir.Value, tuple[ir.Shape | None, ir.TypeProtocol | None]]


def stated_types(model: ir.Model) -> Stated:
    """The shape and type of each value as the graph has them, for `state_again`.

    Inference contradicts onnxruntime on some nodes (a ConvTranspose of auto_pad SAME), and who reads the graph next
    would believe it.
    """
    nodes = model.graph.all_nodes()
    values = [
        *model.graph.inputs,
        *model.graph.initializers.values(),
        *(made for node in nodes for made in node.outputs),
    ]
    return {value: (value.shape, value.type) for value in values}


def state_again(stated: Stated) -> None:
    """Give every value the shape and type back that it had."""
    for value, (shape, kind) in stated.items():
        value.shape, value.type = shape, kind


def static_shape(value: ir.Value | None) -> tuple[int, ...] | None:
    """The sizes of `value`; None where one is not known, or there is no value."""
    if value is None or value.shape is None or not value.shape.is_static():
        return None
    return tuple(value.shape.numpy())


def _no_tensors(model: ir.Model) -> set[ir.Value]:
    """The values that nodes make and that are sequences or optional values, by their operators' definitions."""
    found = {value for value in model.graph.inputs if not isinstance(value.type, (ir.TensorType, type(None)))}
    opset = max(model.opset_imports.get(domain, 1) for domain in ONNX_DOMAINS)
    _add_no_tensors(model.graph, opset, found)
    return found


def _add_no_tensors(graph: ir.Graph, opset: int, found: set[ir.Value]) -> None:
    for node in graph:
        for inner in graphs_of(node):
            _add_no_tensors(inner, opset, found)
            returned = inner.outputs[-len(node.outputs) :]  # all of a branch's; a Loop's body begins with its condition
            found.update(made for made, value in zip(node.outputs, returned, strict=False) if value in found)
        if node.domain in ONNX_DOMAINS and defs.has(node.op_type, opset, ""):
            found.update(_made_by(node, defs.get_schema(node.op_type, opset, ""), found))


def _made_by(node: ir.Node, schema: defs.OpSchema, found: set[ir.Value]) -> Iterator[ir.Value]:
    """The outputs that can be no tensors, or that are of one type with an input that is none."""
    read = zip(schema.inputs, node.inputs, strict=False)  # a sequence is read by its own slot, never by a variadic one
    of_found = {formal.type_str for formal, value in read if value in found}
    for formal, value in zip(schema.outputs, node.outputs, strict=False):
        if formal.type_str in of_found or not any(kind.startswith("tensor(") for kind in formal.types):
            yield value
