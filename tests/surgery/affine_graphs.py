"""Graphs with affine steps behind a convolution, which lies between others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx import NodeProto, helper, numpy_helper

from tests.gates.small_graphs import constant, model, tensor

C = 6
SIZES = (1, C, 20)
RNG = np.random.default_rng(2)
VECTOR = {name: RNG.uniform(0.5, 2.0, (1, C, 1)).astype(np.float32) for name in ("s", "t", "u", "v")}
CONSTANTS: dict[str, Any] = {**VECTOR, "k": 1.5, "k1": [0.7], "column": VECTOR["s"][0], "zero": 0.0, "one": 1.0}


def node(op: str, inputs: str, output: str, **attributes: Any) -> NodeProto:
    return helper.make_node(op, inputs.split(), [output], f"to_{output}", **attributes)


def affine_graph(
    *nodes: NodeProto,
    sizes: Sequence[int | str] = SIZES,
    outputs: Sequence[str] = ("y",),
    opset: int = 17,
    dtype: Any = np.float32,
    read_once: bool = False,
    **constants: Any,
) -> ir.Model:
    """h = Conv(x), read by an output too unless `read_once`; the nodes, which read h and constants, make `outputs`."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    channels, axes = sizes[1], len(sizes) - 2
    assert isinstance(channels, int)
    weight = np.random.default_rng(3).standard_normal((channels, channels, *[1] * axes)) / 2
    before = [helper.make_node("Conv", ["x", "w"], ["h"], "before")]
    given = {**CONSTANTS, **constants, "w": weight}
    read = {name for one in (*before, *nodes) for name in one.input}
    made = [*outputs, *([] if read_once else ["h"])]
    return model(
        [*before, *nodes],
        [tensor("x", sizes, kind)],
        [tensor(name, sizes, kind) for name in made],
        [constant(name, values, dtype) for name, values in given.items() if name in read],
        opset=opset,
    )


def nested(captured: str) -> tuple[NodeProto, list[Any]]:
    """An If whose branches give `captured` from outside, and its condition."""
    inner = helper.make_graph(
        [helper.make_node("Identity", [captured], ["inner"])], "branch", [], [tensor("inner", SIZES)]
    )
    condition = numpy_helper.from_array(np.array(True), "condition")
    return helper.make_node("If", ["condition"], ["y2"], "if", then_branch=inner, else_branch=inner), [condition]
