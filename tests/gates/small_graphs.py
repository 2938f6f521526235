"""Builds the small graphs that the gates' tests look at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper


def tensor(name: str, shape: Sequence[int | str], dtype: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    """An input or output."""
    return helper.make_tensor_value_info(name, dtype, list(shape))


def constant(name: str, values: Any, dtype: Any = np.float32) -> onnx.TensorProto:
    """An initializer."""
    return numpy_helper.from_array(np.asarray(values, dtype), name)


def proto(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    constants: Sequence[onnx.TensorProto] = (),
    opset: int = 17,
    ir_version: int = 8,
) -> onnx.ModelProto:
    """A model of these nodes."""
    graph = helper.make_graph(nodes, "small", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version)


def model(*arguments: Any, **options: Any) -> ir.Model:
    """As `proto`, in the form that the gates take."""
    return ir.from_proto(proto(*arguments, **options))


def chain(*operators: str, shape: Sequence[int | str] = (1, 4), **options: Any) -> ir.Model:
    """One-input operators in a row from `x` to `y`; node and tensor `i` are called `n{i}` and `t{i}`."""
    names = ["x", *(f"t{i}" for i in range(len(operators) - 1)), "y"]
    nodes = [helper.make_node(op, [names[i]], [names[i + 1]], f"n{i}") for i, op in enumerate(operators)]
    return model(nodes, [tensor("x", shape)], [tensor("y", shape)], **options)


def scale_proto(factor: float, size: int = 4) -> onnx.ModelProto:
    """y = factor * x."""
    nodes = [helper.make_node("Mul", ["x", "k"], ["y"], "scale")]
    return proto(nodes, [tensor("x", [1, size])], [tensor("y", [1, size])], [constant("k", [factor])])


def row(*values: float) -> NDArray[np.float32]:
    """A [1, n] array."""
    return np.array([values], np.float32)
