"""Constants that a pass adds."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from surgery.graph_constants import add_constant
from tests.surgery.convolutions import one_node


def test_added_constant_has_its_values_and_type_and_a_name_of_its_own() -> None:
    made = one_node("Conv", [1, 2, 6], [3, 2, 4])
    value = add_constant(made.graph, "w", np.array([1, 2], np.int64))
    other = add_constant(made.graph, "fresh", np.array([0.5], np.float32))
    assert (value.name, other.name) == ("w_", "fresh")
    assert (value.dtype, value.shape) == (ir.DataType.INT64, ir.Shape([2]))
    assert made.graph.initializers["w_"] is value
