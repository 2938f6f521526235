"""Inputs and outputs of three axes as the compiler has them: of four.

Before: x [N, C, T], read by a convolution; y [N, M, T]
After:  x [N, C, 1, T], and a Reshape to [N, C, T] before its readers; y [N, M, 1, T], a Reshape of what it was

The memory of an array is the same in both, so that whoever runs the engine hands over the bytes as before. The compiler
has every tensor of three axes as [N, C, 1, T], and the Reshapes go: otherwise it puts a layer Reshape of its own at the
input or output, and that on the CPU where T is no multiple of 8 (rk3588), or for any T (rk3566). Two convolutions
[1, 22, 7681], modelled ms without and with the pass: rk3588 3.89, 0.33; rk3566 4.08, 0.49; rk3576 0.55, 0.46 (no CPU
layer either way); [1, 64, 1200]: 0.217, 0.157; 1.89, 0.33; 0.249, 0.189 (measured, 2.3.2).

On rk3562 it depends: an output of channels that are no multiple of 8 leaves by a conversion as large as the compiler's
own layout of it, channels beside steps (22 channels of 7681 steps: 5880 KB instead of 330, 1.52 ms instead of 0.55);
32 channels of 7680 steps: 0.56 instead of 0.75. So it is not counted as paying there.

Left alone: inputs and outputs that are no floats, or of sizes that are not known; an input that an output is, and one
that no node reads; and an input of few channels and many steps (`ARGB_CHANNELS`).

A stage names it, as its contract tells the shapes; a foreign graph keeps those that its owner gave it.

Exact: the same numbers in another shape.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from contracts.targets import EVERY_TARGET
from surgery.declaration import Declaration, Exact, Interface, Pass, Recast, Rewritten
from surgery.graph_constants import add_constant
from surgery.inferred import inferred, static_shape
from surgery.interface import fresh_name, insert_behind, numpy_dtype, put_before_output

DECLARATION = Declaration(
    name="rewrite_interface_axes",
    summary="inputs and outputs [N, C, T] as [N, C, 1, T], which needs no Reshape on the CPU",
    exactness=Exact("the same numbers in another shape"),
    after=frozenset({"normalise_static_inputs", "trim_decoder"}),
    pays_on=EVERY_TARGET - {"rk3562"},
)

_FLOATS = frozenset({ir.DataType.FLOAT, ir.DataType.FLOAT16})

_AXES = 3

ARGB_CHANNELS = 4
"""An input of so many channels or fewer, of four axes, is an image to the compilers for rk3562 and rk3576, and that
they fail on where it is long and a convolution reads it: `failed to tile argb mode layer!` (measured, 2.3.2: of 1 and 3
channels on both, of 4 on rk3562; 5 build). Of three axes such an input builds on all targets, its Reshape on the NPU,
and a mask costs 0.04 ms less so."""

ARGB_STEPS = 3900
"""Most steps of such an input that were built, on both; 4096 were not."""


def rewrite_interface_axes() -> Pass:
    """The pass; its hits are the inputs and outputs."""
    return Pass(DECLARATION, _rewrite)


def _rewrite(model: ir.Model) -> Rewritten:
    known = inferred(model)
    inputs = [str(value.name) for value in model.graph.inputs if _is_wanted_input(value)]
    outputs = {
        str(value.name): shape
        for value in dict.fromkeys(model.graph.outputs)
        if value.producer() is not None
        and _is_wanted(stated := known.get(str(value.name), value), value)
        and (shape := static_shape(stated)) is not None
    }
    if not inputs and not outputs:
        return Rewritten(model, 0)
    model = model.clone()
    read = [_widen_input(model.graph, value) for value in list(model.graph.inputs) if value.name in inputs]
    made = [
        _widen_output(model.graph, value, outputs[str(value.name)])
        for value in list(dict.fromkeys(model.graph.outputs))
        if value.name in outputs and value.producer() is not None
    ]
    return Rewritten(model, len(read) + len(made), interface=Interface(inputs=tuple(read), outputs=tuple(made)))


def _is_wanted(stated: ir.Value, value: ir.Value) -> bool:
    shape = static_shape(stated)
    return shape is not None and len(shape) == _AXES and stated.dtype in _FLOATS and not value.is_initializer()


def _is_wanted_input(value: ir.Value) -> bool:
    if not _is_wanted(value, value) or not _is_read(value):
        return False
    _, channels, steps = static_shape(value) or ()
    return channels > ARGB_CHANNELS or steps <= ARGB_STEPS


def _is_read(value: ir.Value) -> bool:
    return not value.is_graph_output() and any(True for _ in value.uses())


def _widen_input(graph: ir.Graph, value: ir.Value) -> Recast:
    batch, channels, steps = narrow = static_shape(value) or ()
    name = fresh_name(graph, f"{value.name}_{DECLARATION.name}")
    readers = [(use.node, use.idx) for use in value.uses()]
    node = ir.node("Reshape", [value, _sizes(graph, f"{name}_sizes", narrow)], name=name)
    flat = node.outputs[0]
    flat.name, flat.type, flat.shape = name, value.type, ir.Shape(narrow)
    for reader, position in readers:
        reader.replace_input_with(position, flat)
    insert_behind(graph, node, value)
    wide = (batch, channels, 1, steps)
    value.shape = ir.Shape(wide)
    return Recast(str(value.name), wide, numpy_dtype(value))


def _widen_output(graph: ir.Graph, output: ir.Value, narrow: tuple[int, ...]) -> Recast:
    batch, channels, steps = narrow
    wide = (batch, channels, 1, steps)
    name = fresh_name(graph, f"{output.name}_{DECLARATION.name}")
    node = ir.node("Reshape", [None, _sizes(graph, f"{name}_sizes", wide)], name=name)
    output.shape = ir.Shape(narrow)
    made = put_before_output(graph, output, node, name)
    made.shape = ir.Shape(wide)
    return Recast(str(made.name), wide, numpy_dtype(made))


def _sizes(graph: ir.Graph, name: str, sizes: tuple[int, ...]) -> ir.Value:
    return add_constant(graph, name, np.array(sizes, np.int64))
