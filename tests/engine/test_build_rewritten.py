"""The real toolkit on what passes make of operators, opsets and types that it does not take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from surgery.declaration import Pass
from surgery.decompose_int32_casts import decompose_int32_casts
from surgery.decompose_missing_kernels import decompose_missing_kernels
from surgery.fold_constants import fold_constants
from surgery.fold_empty_parts import fold_empty_parts
from surgery.normalise_defaults import normalise_defaults
from surgery.normalise_double import normalise_double
from surgery.normalise_float32 import normalise_float32
from surgery.normalise_header import normalise_header
from surgery.normalise_integer_inputs import normalise_integer_inputs
from surgery.normalise_opset import normalise_opset
from surgery.rewrite_shared_gates import rewrite_shared_gates
from tests.engine.toolkit_runs import built
from tests.gates.small_graphs import constant, proto, tensor
from tests.onnx_runs import Array, run, snr_db

THRESHOLD_DB = 40.0
"""The simulator's threshold (cases.md)."""

RNG = np.random.default_rng(6)


def composed() -> onnx.ModelProto:
    """Ten operators without a kernel, one of which (GroupNormalization) the toolkit breaks on."""
    nodes = [
        helper.make_node("GroupNormalization", ["x", "s", "b"], ["n"], "group", num_groups=2),
        helper.make_node("Mish", ["n"], ["m"], "mish"),
        helper.make_node("Softsign", ["n"], ["o"], "soft"),
        helper.make_node("Min", ["m", "o"], ["l"], "least"),
        helper.make_node("Mean", ["l", "n"], ["a"], "mean"),
        helper.make_node("Selu", ["a"], ["e"], "selu"),
        helper.make_node("Trilu", ["e"], ["t"], "triangle", upper=0),
        helper.make_node("LpPool", ["t"], ["p"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("ReduceL1", ["p", "axes"], ["r"], "size"),
        helper.make_node("ReduceLogSumExp", ["p", "axes"], ["q"], "log"),
        helper.make_node("Add", ["r", "q"], ["y"], "sum"),
    ]
    weights = [constant("s", [0.5, 2]), constant("b", [-1, 1]), constant("axes", [1], np.int64)]
    return proto(nodes, [tensor("x", [1, 4, 8, 8])], [tensor("y", [1, 1, 4, 4])], weights, opset=18)


def transformer() -> onnx.ModelProto:
    """A block of opset 23: RMSNormalization, RotaryEmbedding, causal Attention, Gelu."""
    width, heads, steps = 32, 4, 16
    shapes = {"heads": [1, steps, heads, 8], "rows": [1, steps, width]}
    nodes = [
        helper.make_node("RMSNormalization", ["x", "scale"], ["n"], "norm"),
        *(helper.make_node("MatMul", ["n", f"w{part}"], [part], f"to_{part}") for part in "qkv"),
        helper.make_node("Reshape", ["q", "heads"], ["q4"], "heads_of_q"),
        helper.make_node("Transpose", ["q4"], ["qt"], "heads_first", perm=[0, 2, 1, 3]),
        helper.make_node("RotaryEmbedding", ["qt", "cos", "sin", "places"], ["qr"], "turn"),
        helper.make_node("Transpose", ["qr"], ["qb"], "steps_first", perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["qb", "rows"], ["q3"], "rows_of_q"),
        helper.make_node(
            "Attention", ["q3", "k", "v"], ["a"], "attend", q_num_heads=heads, kv_num_heads=heads, is_causal=1
        ),
        helper.make_node("Gelu", ["a"], ["y"], "bend"),
    ]
    angles = np.outer(np.arange(steps), 1.0 / 10.0 ** np.arange(4))
    weights = [
        constant("scale", np.linspace(0.5, 1.5, width)),
        *(constant(f"w{part}", RNG.standard_normal((width, width)) * 0.3) for part in "qkv"),
        *(constant(name, shape, np.int64) for name, shape in shapes.items()),
        constant("cos", np.cos(angles)),
        constant("sin", np.sin(angles)),
        constant("places", [range(steps)], np.int64),
    ]
    rows = [1, steps, width]
    return proto(nodes, [tensor("x", rows)], [tensor("y", rows)], weights, opset=23, ir_version=11)


def of_types() -> onnx.ModelProto:
    """A double and a uint8 input, weights of halves, a cast to int32."""
    nodes = [
        helper.make_node("Cast", ["x"], ["h"], "down", to=TensorProto.FLOAT16),
        helper.make_node("MatMul", ["h", "w"], ["m"], "product"),
        helper.make_node("Cast", ["n"], ["f"], "count", to=TensorProto.FLOAT16),
        helper.make_node("Mul", ["m", "f"], ["s"], "scale"),
        helper.make_node("Cast", ["s"], ["i"], "cut", to=TensorProto.INT32),
        helper.make_node("Cast", ["i"], ["whole"], "back", to=TensorProto.FLOAT16),
        helper.make_node("Add", ["whole", "s"], ["y"], "sum"),
    ]
    half = onnx.numpy_helper.from_array(RNG.standard_normal((16, 8)).astype(np.float16), "w")
    inputs = [tensor("x", [1, 4, 16], TensorProto.DOUBLE), tensor("n", [1, 4, 1], TensorProto.UINT8)]
    return proto(nodes, inputs, [tensor("y", [1, 4, 8], TensorProto.FLOAT16)], [half])


def gated() -> onnx.ModelProto:
    """Swishes of one gate, which a sum reads too, and one of a scaled gate."""
    nodes = [
        helper.make_node("Sigmoid", ["x"], ["s"], "gate"),
        helper.make_node("Mul", ["x", "s"], ["a"], "swish"),
        helper.make_node("Mul", ["a", "s"], ["b"], "gated"),
        helper.make_node("Mul", ["s", "x"], ["c"], "swish_again"),
        helper.make_node("Mul", ["x", "k"], ["kx"], "scale"),
        helper.make_node("Sigmoid", ["kx"], ["t"], "scaled_gate"),
        helper.make_node("Mul", ["x", "t"], ["d"], "scaled_swish"),
        helper.make_node("Sum", ["s", "b", "c", "d", "t", "kx"], ["y"], "sum"),
    ]
    return proto(nodes, [tensor("x", [1, 32, 24])], [tensor("y", [1, 32, 24])], [constant("k", 1.702)])


def both_directions() -> onnx.ModelProto:
    """A bidirectional LSTM as torch's new exporter writes it: a layout of 0, and both directions joined behind."""
    lstm = helper.make_node("LSTM", ["x", "w", "r"], ["h"], "lstm", hidden_size=8, direction="bidirectional", layout=0)
    nodes = [
        lstm,
        helper.make_node("Transpose", ["h"], ["t"], "turn", perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["t", "shape"], ["y"], "join"),
    ]
    weights = [
        constant("w", RNG.standard_normal((2, 32, 16)) * 0.3),
        constant("r", RNG.standard_normal((2, 32, 8)) * 0.3),
        constant("shape", [12, 1, 16], np.int64),
    ]
    return proto(nodes, [tensor("x", [12, 1, 16])], [tensor("y", [12, 1, 16])], weights)


NEW = (normalise_opset(), fold_constants(), fold_empty_parts(), normalise_header())
TYPES = (normalise_double(), normalise_float32(), normalise_integer_inputs(), decompose_int32_casts())


@pytest.mark.parametrize(
    ("build", "passes"),
    [
        (composed, (decompose_missing_kernels(),)),
        (transformer, NEW),
        (of_types, TYPES),
        (gated, (rewrite_shared_gates(),)),
        (both_directions, (normalise_defaults(),)),
    ],
    ids=["composed", "transformer", "of_types", "gated", "both_directions"],
)
def test_simulator_equals_onnxruntime_when_passes_rewrote_what_the_toolkit_does_not_take(
    build: Callable[[], onnx.ModelProto], passes: Sequence[Pass], converter_python: Path, tmp_path: Path
) -> None:
    original = build()
    feed, given = _feeds(original)
    rewritten = ir.from_proto(original)
    for step in passes:
        done = step.rewrite(rewritten)
        assert (done.hits > 0, done.refused) == (True, ())
        for change in done.interface.inputs:
            given[change.name] = given[change.name].astype(change.dtype)
        rewritten = done.model
    simulated = built(rewritten, given, tmp_path, converter_python).simulated[0]
    for name, array in run(original, feed).items():
        assert snr_db(array, simulated[name]) >= THRESHOLD_DB


def _feeds(made: onnx.ModelProto) -> tuple[dict[str, Array], dict[str, Array]]:
    """White noise, or numbers up to 7 where the type is of integers; once for the original, once to be recast."""
    feed: dict[str, Array] = {}
    for value in made.graph.input:
        shape = [size.dim_value for size in value.type.tensor_type.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        noise = RNG.integers(1, 8, shape) if dtype.kind == "u" else RNG.standard_normal(shape)
        feed[value.name] = noise.astype(dtype)
    return feed, dict(feed)
