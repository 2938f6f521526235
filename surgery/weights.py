"""Constants that no caller can change: weights, and what a Constant node states."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from surgery.matching import ONNX_DOMAINS


def tensor_of(value: ir.Value | None) -> ir.TensorProtocol | None:
    """What `value` holds, a weight or made by a Constant node; None for any other, an input with a default too."""
    if value is None or value.is_graph_input():
        return None
    if value.const_value is not None:
        return value.const_value
    node = value.producer()
    tensors = None if node is None else stated(node)
    return None if tensors is None else tensors[0]


def weight_of(value: ir.Value | None) -> NDArray[Any] | None:
    """`tensor_of(value)` as an array."""
    tensor = tensor_of(value)
    return None if tensor is None else tensor.numpy()


def stated(node: ir.Node) -> list[ir.TensorProtocol] | None:
    """The value of a Constant node; None for any other, and for a sparse one."""
    if node.op_type != "Constant" or node.domain not in ONNX_DOMAINS or len(node.attributes) != 1:
        return None
    ((name, attribute),) = node.attributes.items()
    if name == "value":
        return [attribute.as_tensor()]
    if name in ("value_string", "value_strings"):
        texts = [attribute.value] if name == "value_string" else list(attribute.value)
        encoded = [text.encode() if isinstance(text, str) else bytes(text) for text in texts]
        return [ir.StringTensor(encoded, shape=ir.Shape([] if name == "value_string" else [len(encoded)]))]
    kind = _KINDS.get(name)
    return None if kind is None else [ir.tensor(np.array(attribute.value, kind))]


_KINDS = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64}
"""The types of the attributes of Constant (ONNX operator specification)."""
