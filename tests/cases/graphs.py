"""Small graphs as exporters make them, each with one thing that the toolkit breaks on, or is silently wrong about."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.gates.small_graphs import constant, tensor

SEED = 7


def weight(name: str, *shape: int, scale: float = 0.1, seed: int = SEED) -> onnx.TensorProto:
    """Seeded normal weights."""
    values = np.random.default_rng(seed).standard_normal(shape) * scale
    return numpy_helper.from_array(values.astype(np.float32), name)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    initializers: Sequence[onnx.TensorProto] = (),
    opset: int = 17,
) -> onnx.ModelProto:
    """A model that onnx's checker takes."""
    graph = helper.make_graph(nodes, "case", inputs, outputs, initializers)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(made)
    return made


def conv(source: str, name: str, made: str, weights: str = "w") -> onnx.NodeProto:
    """A Conv1d of kernel 3 that keeps the length."""
    return helper.make_node("Conv", [source, weights], [made], name, kernel_shape=[3], pads=[1, 1])


def strided(stride: int, kernel: int, pad: int, length: int = 1800) -> onnx.ModelProto:
    """A Conv1d that goes down to a coarser frame rate, as in front of a vocoder's source."""
    out = (length + 2 * pad - kernel) // stride + 1
    node = helper.make_node(
        "Conv", ["x", "w"], ["y"], "source_downs.0", strides=[stride], kernel_shape=[kernel], pads=[pad, pad]
    )
    return model([node], [tensor("x", [1, 18, length])], [tensor("y", [1, 64, out])], [weight("w", 64, 18, kernel)])


def clip(inputs: Sequence[str], *bounds: onnx.TensorProto) -> onnx.ModelProto:
    """Clip behind an exponential, with some of its bounds."""
    nodes = [conv("x", "c", "c"), helper.make_node("Exp", ["c"], ["e"], "e")]
    nodes.append(helper.make_node("Clip", inputs, ["y"], "clip"))
    return model(nodes, [tensor("x", [1, 16, 64])], [tensor("y", [1, 16, 64])], [weight("w", 16, 16, 3), *bounds])


def branches(condition: onnx.TensorProto | None) -> onnx.ModelProto:
    """An If whose branches read the outer graph; `condition` None makes it an input."""
    scaled = helper.make_node("Mul", ["c0", "k"], ["t"], "then_mul")
    then = helper.make_graph([scaled], "then", [], [tensor("t", SHAPE)])
    kept = helper.make_node("Identity", ["c0"], ["f"], "else_id")
    other = helper.make_graph([kept], "else", [], [tensor("f", SHAPE)])
    nodes = [
        conv("x", "c0", "c0"),
        helper.make_node("If", ["cond"], ["i"], "if0", then_branch=then, else_branch=other),
        helper.make_node("Tanh", ["i"], ["y"], "tanh"),
    ]
    inputs, weights = [tensor("x", SHAPE)], [weight("w", 8, 8, 3), constant("k", 0.5)]
    if condition is None:
        inputs.append(tensor("cond", [], TensorProto.BOOL))
    else:
        weights.append(condition)
    return model(nodes, inputs, [tensor("y", SHAPE)], weights)


SHAPE = [1, 8, 32]


def symbolic() -> onnx.ModelProto:
    """Token ids of open sizes through an embedding and a convolution."""
    nodes = [
        helper.make_node("Gather", ["emb", "tokens"], ["g"], "embed"),
        helper.make_node("Transpose", ["g"], ["t"], "tr", perm=[0, 2, 1]),
        conv("t", "conv", "y"),
    ]
    weights = [weight("emb", 50, 16), weight("w", 16, 16, 3)]
    return model(nodes, [tensor("tokens", ["N", "T"], TensorProto.INT64)], [tensor("y", ["N", 16, "T"])], weights)


def noise(op: str = "RandomNormalLike", **attributes: Any) -> onnx.ModelProto:
    """Noise of the input's shape, scaled and added, as VITS draws it."""
    nodes = [
        helper.make_node(op, ["x"], ["n"], "rnl", **attributes),
        helper.make_node("Mul", ["n", "s"], ["ns"], "scale"),
        helper.make_node("Add", ["x", "ns"], ["a"], "add"),
        conv("a", "conv", "y"),
    ]
    weights = [constant("s", 0.667), weight("w", 16, 16, 3)]
    return model(nodes, [tensor("x", [1, 16, 64])], [tensor("y", [1, 16, 64])], weights)


def layer_norm(outputs: Sequence[str] = ("y",), **attributes: Any) -> onnx.ModelProto:
    """LayerNormalization with some of its attributes written out."""
    node = helper.make_node("LayerNormalization", ["x", "g", "b"], list(outputs), "ln", **attributes)
    weights = [weight("g", 192, scale=1.0), weight("b", 192)]
    return model([node], [tensor("x", [1, 64, 192])], [tensor("y", [1, 64, 192])], weights)


def conv_transpose_same() -> onnx.ModelProto:
    """Upsampling with implicit pads."""
    node = helper.make_node(
        "ConvTranspose", ["x", "w"], ["y"], "up", kernel_shape=[4], strides=[2], auto_pad="SAME_UPPER"
    )
    return model([node], [tensor("x", [1, 16, 64])], [tensor("y", [1, 8, 128])], [weight("w", 16, 8, 4)])


def scalar_input() -> onnx.ModelProto:
    """A speed of rank 0."""
    nodes = [helper.make_node("Div", ["x", "speed"], ["d"], "div"), conv("d", "conv", "y")]
    inputs = [tensor("x", [1, 16, 64]), tensor("speed", [])]
    return model(nodes, inputs, [tensor("y", [1, 16, 64])], [weight("w", 16, 16, 3)])


def atan() -> onnx.ModelProto:
    """An operator without a kernel on the board."""
    nodes = [conv("x", "c", "c"), helper.make_node("Atan", ["c"], ["y"], "at")]
    return model(nodes, [tensor("x", [1, 16, 64])], [tensor("y", [1, 16, 64])], [weight("w", 16, 16, 3)])


def plain() -> onnx.ModelProto:
    """One convolution."""
    weights = [weight("w", 64, 64, 3)]
    return model([conv("x", "conv", "y")], [tensor("x", [1, 64, 64])], [tensor("y", [1, 64, 64])], weights)


def external(path: Path, location: str) -> None:
    """`plain` in the file `path`, its weights in `location`, as the ONNX states it, beside it."""
    made = plain()
    stored = made.graph.initializer[0]
    data = numpy_helper.to_array(stored).tobytes()
    (path.parent / location).write_bytes(data)
    stored.ClearField("raw_data")
    stored.data_location = TensorProto.EXTERNAL
    for key, text in (("location", location), ("offset", "0"), ("length", str(len(data)))):
        stored.external_data.add(key=key, value=text)
    path.write_bytes(made.SerializeToString())
