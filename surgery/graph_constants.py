"""Constants that a pass adds to a graph."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
from numpy.typing import NDArray


def add_constant(graph: ir.Graph, name: str, values: NDArray[Any], dtype: ir.DataType | None = None) -> ir.Value:
    """A new initializer of `graph`, called `name` or, where that is taken, `name` and underscores.

    Args:
        graph: takes it.
        name: wanted.
        values: its values.
        dtype: where numpy's own does not say it (bfloat16).
    """
    while name in graph.initializers:
        name += "_"
    tensor = ir.tensor(values, dtype=dtype, name=name)
    made = ir.Value(name=name, shape=ir.Shape(values.shape), type=ir.TensorType(tensor.dtype), const_value=tensor)
    graph.register_initializer(made)
    return made
