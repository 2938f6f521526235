"""Kokoro's ONNX exports, small: each module as torch's exporter and onnxruntime's optimiser leave it.

The modules are not joined (each reads an input of its own, the generator's seam apart): what is written says where
weights lie and what nodes are called, as `kokoro-v1.0.int8.onnx` has it, and speaks nothing.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from models.kokoro.config import KokoroConfig
from tests.kokoro_writer.checkpoint import SMALL, Weights

FRAMES = 6

_RANKS = {"LSTM": 4, "Gemm": 2}
"""Axes of what an operator gives, where it is not three."""

_TORCH_TO_ONNX_GATES = (0, 3, 1, 2)
"""Of torch's input, forget, cell, output: input, output, forget, cell."""

Array = NDArray[np.float32]


def folded(weights: Weights, name: str) -> Array:
    """The weight of a convolution under weight norm."""
    v = weights[f"{name}.weight_v"]
    norm = np.sqrt((v.astype(np.float64) ** 2).sum(axis=(1, 2), keepdims=True))
    return np.asarray(
        weights[f"{name}.weight_g"] * np.divide(v, norm, out=np.zeros(v.shape), where=norm > 0), np.float32
    )


def graph_path(name: str) -> str:
    """Where the module of that name lies in the int8 file."""
    if name == "decoder.module.asr_res.0":
        return "/decoder/decoder/asr_res/asr_res.0"
    top, _, rest = name.partition(".module")
    path = re.sub(r"\.(?!\d)", "/", rest)
    path = re.sub(r"/cnn\.(\d)\.(\d)", r"/cnn.\1/cnn.\1.\2", path)
    if top == "decoder":
        return "/decoder/decoder" + path
    apart = top == "predictor" and re.match(r"/(F0|N|shared)\b|/(F0|N)_proj", path)
    return f"/encoder{path}" if apart else f"/encoder/{top}{path}"


def float_export(weights: Weights, config: KokoroConfig = SMALL) -> onnx.ModelProto:
    """The float export."""
    writer = _Writer(weights, config)
    writer.write()
    return writer.model()


def int8_export(weights: Weights, config: KokoroConfig = SMALL) -> onnx.ModelProto:
    """The float export as onnxruntime's dynamic quantisation leaves it."""
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "float.onnx", Path(folder) / "int8.onnx"
        onnx.save(float_export(weights, config), given)
        quantize_dynamic(given, made, per_channel=False, weight_type=QuantType.QUInt8)
        return onnx.load(made)


class _Writer:
    def __init__(self, weights: Weights, config: KokoroConfig) -> None:
        self._weights, self._config = weights, config
        self._nodes: list[onnx.NodeProto] = []
        self._inputs: dict[str, onnx.ValueInfoProto] = {}
        self._initializers: dict[str, onnx.TensorProto] = {}
        self._outputs: list[onnx.ValueInfoProto] = []

    def write(self) -> None:
        layer = "bert.module.encoder.albert_layer_groups.0.albert_layers.0"
        for name in self._weights:
            module, _, rest = name.rpartition(".")
            if rest == "weight_v":
                self._convolution(module, folded(self._weights, module))
            elif rest == "weight" and self._weights[name].ndim == 3:
                self._convolution(module, self._weights[name])
            elif rest == "weight_ih_l0":
                self._lstm(module)
            elif rest == "gamma":
                self._layer_norm(module, "gamma", "beta")
            elif rest == "weight" and module == f"{layer}.full_layer_layer_norm":
                self._skip_layer_norm(module)
            elif rest == "weight" and self._weights[name].ndim == 1:
                self._layer_norm(module, "weight", "bias")
            elif rest == "weight" and module.endswith((".embedding", "_embeddings")):
                self._embedding(module)
            elif rest == "weight" and module.endswith(".fc"):
                self._gemm(module)
            elif rest == "weight":
                self._linear(module)
            elif name.endswith(".alpha1.0"):
                self._snakes(name.removesuffix(".alpha1.0"))
        for call in range(1, self._config.plbert.num_hidden_layers):
            self._linear(f"{layer}.attention.query", f"_{call}")

    def model(self) -> onnx.ModelProto:
        graph = helper.make_graph(
            self._nodes, "kokoro", list(self._inputs.values()), self._outputs, list(self._initializers.values())
        )
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)

    def _constant(self, array: Array, name: str) -> str:
        self._initializers[name] = numpy_helper.from_array(np.ascontiguousarray(array), name)
        return name

    def _input(self, name: str, *shape: int, of: int = TensorProto.FLOAT) -> str:
        self._inputs[name] = helper.make_tensor_value_info(name, of, shape)
        return name

    def _node(self, path: str, operator: str, inputs: Sequence[str], **more: object) -> str:
        """A node at `path`; its output, one of the graph's."""
        made = f"{path}/{operator}_output_0"
        self._add(helper.make_node(operator, inputs, [made], f"{path}/{operator}", **more))  # type: ignore[arg-type]
        return made

    def _add(self, node: onnx.NodeProto) -> None:
        """A node whose output the graph gives, so that nothing takes it out."""
        self._nodes.append(node)
        made = node.output[0]
        axes = [f"{made}.{axis}" for axis in range(_RANKS.get(node.op_type, 3))]
        self._outputs.append(helper.make_tensor_value_info(made, TensorProto.FLOAT, axes))

    def _embedding(self, module: str) -> None:
        table = self._constant(self._weights[f"{module}.weight"], f"{module}.table")
        self._node(graph_path(module), "Gather", [table, self._input("tokens", 1, FRAMES, of=TensorProto.INT64)])

    def _gemm(self, module: str) -> None:
        weight = self._weights[f"{module}.weight"]
        inputs = [self._input("style", 1, weight.shape[1]), self._constant(weight, f"{module}.w")]
        bias = self._constant(self._weights[f"{module}.bias"], f"{module}.b")
        self._node(graph_path(module), "Gemm", [*inputs, bias], transB=1)

    def _linear(self, module: str, call: str = "") -> None:
        path, weight = graph_path(module) + call, self._weights[f"{module}.weight"].T
        inputs = [self._input(f"{path}/x", 1, FRAMES, weight.shape[0]), self._constant(weight, f"{module}.w")]
        product = self._node(path, "MatMul", inputs)
        bias = self._constant(self._weights[f"{module}.bias"], f"{module}.b")
        if module.endswith(".ffn"):
            self._add(
                helper.make_node("FastGelu", [product, bias], [f"{path}/gelu"], "FastGelu", domain="com.microsoft")
            )
        else:
            self._node(path, "Add", [bias, product])

    def _layer_norm(self, module: str, gain: str, shift: str) -> None:
        width = self._weights[f"{module}.{gain}"].size
        inputs = [self._constant(self._weights[f"{module}.{rest}"], f"{module}.{rest}") for rest in (gain, shift)]
        path = graph_path(module)
        self._node(path, "LayerNormalization", [self._input(f"{path}/x", 1, FRAMES, width), *inputs])

    def _skip_layer_norm(self, module: str) -> None:
        """As onnxruntime fuses it: the node's name tells nothing, its output's does."""
        path, width = graph_path(module), self._weights[f"{module}.weight"].size
        given = [self._input(f"{path}/{which}", 1, FRAMES, width) for which in "xy"]
        inputs = [self._constant(self._weights[f"{module}.{rest}"], f"{module}.{rest}") for rest in ("weight", "bias")]
        self._add(
            helper.make_node(
                "SkipLayerNormalization",
                [*given, *inputs],
                [f"{path}/LayerNormalization_output_0"],
                "SkipLayerNormalization",
                domain="com.microsoft",
            )
        )

    def _convolution(self, module: str, weight: Array) -> None:
        path, part = graph_path(module), module.removeprefix("decoder.module.generator.")
        inputs = [self._constant(weight, f"{module}.w")]
        if f"{module}.bias" in self._weights:
            inputs.append(self._constant(self._weights[f"{module}.bias"], f"{module}.b"))
        if part.startswith("ups."):
            stage = int(part[4:])
            given = self._input(f"{path}/x", 1, weight.shape[0], FRAMES)
            given = self._node(f"{path}/before", "LeakyRelu", [given], alpha=0.1)
            self._node(path, "ConvTranspose", [given, *inputs], strides=[self._config.istftnet.upsample_rates[stage]])
        elif part.endswith(".pool"):
            given = self._input(f"{path}/x", 1, weight.shape[0], FRAMES)
            self._node(path, "ConvTranspose", [given, *inputs], strides=[2], group=weight.shape[0])
        else:
            given = self._input(f"{path}/x", 1, weight.shape[1], 64)
            self._node(path, "Conv", [given, *inputs], dilations=[self._dilation(part)])

    def _dilation(self, part: str) -> int:
        found = re.fullmatch(r"resblocks\.(\d+)\.convs1\.(\d)", part)
        if found is None:
            return 1
        dilations = self._config.istftnet.resblock_dilation_sizes
        return dilations[int(found[1]) % len(dilations)][int(found[2])]

    def _lstm(self, module: str) -> None:
        path = graph_path(module)
        parts = {
            rest: np.stack([_onnx_gates(self._weights[f"{module}.{rest}_l0{way}"]) for way in ("", "_reverse")])
            for rest in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        }
        biases = np.concatenate([parts["bias_ih"], parts["bias_hh"]], axis=1)
        arrays = {"W": parts["weight_ih"], "R": parts["weight_hh"], "B": biases}
        constants = [self._constant(array, f"{module}.{which}") for which, array in arrays.items()]
        given = self._input(f"{path}/x", FRAMES, 1, parts["weight_ih"].shape[2])
        rows = parts["weight_hh"].shape[2]
        self._node(path, "LSTM", [given, *constants], hidden_size=rows, direction="bidirectional")

    def _snakes(self, block: str) -> None:
        path, width = graph_path(block), self._weights[f"{block}.alpha1.0"].size
        for place, (step, half) in enumerate((step, half) for step in range(3) for half in (1, 2)):
            # The last steps first: places do not tell which is which.
            step, call = 2 - step, "" if place == 0 else f"_{place}"
            alpha = self._constant(self._weights[f"{block}.alpha{half}.{step}"], f"{block}.a{half}.{step}")
            given = self._input(f"{path}/x", 1, width, FRAMES)
            normed = f"{path}/adain{half}.{step}/Add_3_output_0"
            product, wave = f"{path}/Mul{call}_output_0", f"{path}/Sin{call}_output_0"
            self._add(helper.make_node("Add", [given, given], [normed], f"{path}/adain{half}.{step}/Add_3"))
            self._add(helper.make_node("Mul", [alpha, normed], [product], f"{path}/Mul{call}"))
            self._add(helper.make_node("Sin", [product], [wave], f"{path}/Sin{call}"))


def _onnx_gates(array: Array) -> Array:
    gates = array.reshape(4, -1, *array.shape[1:])
    return np.ascontiguousarray(gates[list(_TORCH_TO_ONNX_GATES)].reshape(array.shape))
