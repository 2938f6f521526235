"""Float graphs, and what onnxruntime's quantisers make of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import helper
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)

from tests.gates.small_graphs import constant, proto, tensor
from tests.onnx_runs import Array

LAYERS = 3


def noise(*shape: int, scale: float = 1.0, seed: int = 0) -> Array:
    """White noise, float32."""
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def perceptron() -> onnx.ModelProto:
    """MatMul, Add and Relu, three times; the last without Relu."""
    nodes, weights, read = [], [], "x"
    for i in range(LAYERS):
        last = i == LAYERS - 1
        weights += [
            constant(f"w{i}", noise(16, 16, scale=0.25, seed=i)),
            constant(f"b{i}", noise(16, scale=0.1, seed=i)),
        ]
        nodes += [
            helper.make_node("MatMul", [read, f"w{i}"], [f"m{i}"], f"matmul{i}"),
            helper.make_node("Add", [f"m{i}", f"b{i}"], ["y" if last else f"a{i}"], f"add{i}"),
        ]
        if not last:
            nodes.append(helper.make_node("Relu", [f"a{i}"], [f"r{i}"], f"relu{i}"))
        read = f"r{i}"
    return proto(nodes, [tensor("x", [1, 10, 16])], [tensor("y", [1, 10, 16])], weights)


def convolutions() -> onnx.ModelProto:
    """Conv and LeakyRelu, three times."""
    nodes, weights, read = [], [], "x"
    for i in range(LAYERS):
        made = "y" if i == LAYERS - 1 else f"r{i}"
        weights += [
            constant(f"w{i}", noise(8, 8, 3, scale=0.2, seed=i)),
            constant(f"b{i}", noise(8, scale=0.1, seed=i)),
        ]
        nodes += [
            helper.make_node("Conv", [read, f"w{i}", f"b{i}"], [f"c{i}"], f"conv{i}", pads=[1, 1]),
            helper.make_node("LeakyRelu", [f"c{i}"], [made], f"leaky{i}", alpha=0.1),
        ]
        read = f"r{i}"
    return proto(nodes, [tensor("x", [1, 8, 20])], [tensor("y", [1, 8, 20])], weights)


def gemm() -> onnx.ModelProto:
    """One Gemm with its second factor transposed."""
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["y"], "gemm", transB=1)]
    weights = [constant("w", noise(12, 16, scale=0.25)), constant("b", noise(12))]
    return proto(nodes, [tensor("x", [4, 16])], [tensor("y", [4, 12])], weights)


def lstm() -> onnx.ModelProto:
    """An LSTM in both directions."""
    nodes = [helper.make_node("LSTM", ["x", "w", "r", "b"], ["y"], "lstm", hidden_size=8, direction="bidirectional")]
    weights = [
        constant("w", noise(2, 32, 6, scale=0.4)),
        constant("r", noise(2, 32, 8, scale=0.4)),
        constant("b", noise(2, 64, scale=0.1)),
    ]
    return proto(nodes, [tensor("x", [7, 1, 6])], [tensor("y", [7, 2, 1, 8])], weights)


def embedding() -> onnx.ModelProto:
    """Rows of a table, chosen by the input, as one factor of a MatMul: the quantisers leave them integers up to it."""
    nodes = [
        helper.make_node("Cast", ["x"], ["ids"], "ids", to=onnx.TensorProto.INT64),
        helper.make_node("Gather", ["table", "ids"], ["rows"], "rows"),
        helper.make_node("MatMul", ["rows", "w"], ["y"], "matmul"),
    ]
    weights = [constant("table", noise(40, 16)), constant("w", noise(16, 12, scale=0.25))]
    return proto(nodes, [tensor("x", [10])], [tensor("y", [10, 12])], weights)


FLOAT = {"perceptron": perceptron, "convolutions": convolutions, "gemm": gemm, "lstm": lstm, "embedding": embedding}


def feed(model: onnx.ModelProto, seed: int = 9) -> dict[str, Array]:
    """White noise for `x`."""
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    return {"x": noise(*shape, seed=seed)}


def dynamically(model: onnx.ModelProto, folder: Path, **options: Any) -> ir.Model:
    """`model` with 8-bit weights and activations quantised as they come."""
    onnx.save(model, folder / "float.onnx")
    quantize_dynamic(folder / "float.onnx", folder / "quantised.onnx", **options)
    return ir.load(folder / "quantised.onnx")


def statically(model: onnx.ModelProto, folder: Path, form: str, kind: str, per_channel: bool) -> ir.Model:
    """`model` quantised after a calibration on white noise; `form` "QDQ" or "QOperator", `kind` of activations."""
    onnx.save(model, folder / "float.onnx")
    quantize_static(
        folder / "float.onnx",
        folder / "quantised.onnx",
        _Noise(model),
        quant_format=getattr(QuantFormat, form),
        per_channel=per_channel,
        activation_type=getattr(QuantType, kind),
        weight_type=QuantType.QInt8,
    )
    return ir.load(folder / "quantised.onnx")


class _Noise(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self, model: onnx.ModelProto) -> None:
        self._feeds = iter([feed(model, seed) for seed in range(3)])

    def get_next(self) -> dict[str, Array] | None:
        return next(self._feeds, None)
