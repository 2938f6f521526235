"""Inputs that the toolkit needs as constants, and what they depend on in a graph where they are none.

Measured with rknn-toolkit2 2.3.2 for rk3588, with inputs fed from a graph input; of a kind of operators, one. What
decides a shape ends in "need to be constant! It will cause the graph to be a dynamic graph"; a Squeeze drops its axes,
and the engine's output has another shape. A varying bias, slope, statistic or LSTM weight ends in a traceback, SIGSEGV,
SIGABRT or never (a ConvTranspose's bias). Conv, ConvTranspose and Gemm with varying weights, a Pad with a varying value
and normalisations with a varying scale build, and are right in the simulator.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import onnx_ir as ir

from gates.graphs import node_label
from gates.sentences import listed

DECIDES_A_SHAPE: Mapping[str, tuple[int, ...]] = {
    "ConstantOfShape": (0,),
    "CumSum": (1,),
    "Expand": (1,),
    "OneHot": (1,),
    "Pad": (1, 3),
    "Range": (0, 1, 2),
    "ReduceL2": (1,),
    "ReduceMax": (1,),
    "ReduceMean": (1,),
    "ReduceMin": (1,),
    "ReduceSum": (1,),
    "Reshape": (1,),
    "Resize": (2, 3),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "Squeeze": (1,),
    "Tile": (1,),
    "TopK": (1,),
    "Unsqueeze": (1,),
    "Upsample": (1,),
}
"""Positions of the inputs that decide a shape, or an axis."""

TAKEN_AS_A_WEIGHT: Mapping[str, tuple[int, ...]] = {
    "BatchNormalization": (1, 2, 3, 4),
    "Conv": (2,),
    "ConvTranspose": (2,),
    "DequantizeLinear": (1, 2),
    "GRU": (1, 2, 3),
    "LSTM": (1, 2, 3),
    "PRelu": (1,),
    "QuantizeLinear": (1, 2),
}
"""Positions of the inputs that the toolkit takes for weights without asking."""

_FIXED = "an engine's shapes are fixed: export with sizes that do not depend on the data, or cut the graph before it"
_WEIGHT = "the toolkit breaks where it is no constant: export with a constant, or compute it with a Mul or Add behind"


@dataclass(frozen=True)
class VaryingInput:
    """Why a node cannot be compiled: the input that is no constant, and its remedy; whether it decides a shape."""

    which: str
    remedy: str
    decides_a_shape: bool


def varying_input(node: ir.Node, constant: Collection[ir.Value]) -> VaryingInput | None:
    """The first input of `node`, of ONNX's own domain, that is not `constant` and has to be."""
    for table, what, remedy in (
        (DECIDES_A_SHAPE, "decides a shape and", _FIXED),
        (TAKEN_AS_A_WEIGHT, "is taken for a weight and", _WEIGHT),
    ):
        for position in table.get(node.op_type, ()):
            value = node.inputs[position] if position < len(node.inputs) else None
            if value is not None and value not in constant:
                which = f"input '{value.name}' {what} {_origin(value, constant)}"
                return VaryingInput(which, remedy, decides_a_shape=table is DECIDES_A_SHAPE)
    return None


def _origin(value: ir.Value, constant: Collection[ir.Value]) -> str:
    """Where `value` comes from: the graph inputs that it depends on, or else the nodes that make it of constants."""
    if value.producer() is None:
        return "is an input of the graph"
    inputs: set[str] = set()
    makers: set[str] = set()
    seen: set[ir.Value] = set()
    todo = [value]
    while todo:
        one = todo.pop()
        if one in seen or one in constant:
            continue
        seen.add(one)
        node = one.producer()
        read = [] if node is None else [inner for inner in node.inputs if inner is not None]
        if node is None:
            inputs.add(f"'{one.name}'")
        elif all(inner in constant for inner in read):
            makers.add(f"{node.op_type}, {node_label(node)}")
        todo.extend(read)
    if not inputs:
        return f"comes from {listed(sorted(makers))}"
    return f"depends on the input{'s' if len(inputs) > 1 else ''} {listed(sorted(inputs))}"
