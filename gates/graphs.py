"""What several gates need of a graph: names for sentences, and shapes."""

from __future__ import annotations

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
