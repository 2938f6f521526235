"""The numbers of a value that no caller can change."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
from numpy.typing import NDArray

from surgery.constant_nodes import stated


def weight_of(value: ir.Value | None) -> NDArray[Any] | None:
    """What `value` holds, a weight or made by a Constant node; None for any other, an input with a default too."""
    if value is None or value.is_graph_input():
        return None
    if value.const_value is not None:
        return value.const_value.numpy()
    node = value.producer()
    tensors = None if node is None else stated(node)
    return None if tensors is None else tensors[0].numpy()
