"""What several gates need of a graph: names for sentences, and shapes."""

from __future__ import annotations

import re

import onnx
import onnx_ir as ir
from onnx_ir.passes.common import ShapeInferencePass

from contracts.errors import Refusal


def node_label(node: ir.Node) -> str:
    """How a sentence names `node`: by its name, or by its first output where it has none."""
    if node.name:
        return f"node '{node.name}'"
    return f"the unnamed node that makes '{node.outputs[0].name}'" if node.outputs else "an unnamed node"


NO_SHAPES = (
    "the graph is no valid ONNX, so its shapes cannot be inferred: a tensor is used before it is made, or two have one "
    "name"
)


def with_shapes(model: ir.Model) -> ir.Model:
    """A copy of `model` (sharing its weights) with every shape and type that ONNX shape inference finds.

    Where inference fails at a node it goes on, and that node's outputs stay without a shape.

    Raises:
        Refusal: the graph is no valid ONNX: two tensors of one name, nodes out of order, a tensor that nothing makes.
    """
    try:
        copy = model.clone()
        ShapeInferencePass(check_type=False, strict_mode=False, data_prop=True)(copy)
    except (RuntimeError, ValueError) as error:  # what onnx-ir raises, its SerdeError included
        raise Refusal(NO_SHAPES) from error
    return copy


_FAULT = re.compile(r"\(op_type:[^,]*, node name: (?P<node>.*?)\): \[\w+\] (?P<what>.*)")
_TYPE_NUMBER = re.compile(r"\((\d+)\)")
_VALUES_READ_BYTES = 1024
"""Of a weight whose values may say a shape; larger ones stay out of what is inferred (a protobuf ends at 2 GiB)."""


def shape_fault(model: ir.Model) -> tuple[str, str] | None:
    """The first node that ONNX shape inference stops at, by name, and why; None where it stops at none."""
    copy = model.clone()
    for name, value in list(copy.graph.initializers.items()):
        if value.const_value is not None and value.const_value.nbytes > _VALUES_READ_BYTES:
            del copy.graph.initializers[name]
            value.const_value = None
            copy.graph.inputs.append(value)
    try:
        onnx.shape_inference.infer_shapes(ir.to_proto(copy), strict_mode=True, data_prop=True)
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError) as error:
        match = _FAULT.search(str(error))
        if match is None:
            return None
        what = match["what"].rstrip(".")
        return match["node"], _TYPE_NUMBER.sub(_type_name, what) if "elem type" in what else what
    return None


def _type_name(number: re.Match[str]) -> str:
    try:
        return ir.DataType(int(number[1])).name.lower()
    except ValueError:
        return number[0]
