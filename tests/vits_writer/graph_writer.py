"""Writes nodes and seeded weights one after the other, named as torch's exporter names them."""

from __future__ import annotations

import zlib
from collections import Counter
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

INT64_END = np.iinfo(np.int64).max
"""A Slice to the end, as the exporter writes it; its negative, reversed to the beginning."""

ALLOWZERO_OPSET = 14
"""From here on Reshape has the attribute `allowzero`, and the exporters write it."""

SLOPE = 0.1
"""HiFi-GAN's, of its LeakyRelus."""

SPREAD = 0.1
"""Standard deviation of biases: large enough for what lies behind an utterance's end to be heard."""


class GraphWriter:
    """Collects a graph; every method that writes a node returns the name of its output."""

    def __init__(self, seed: int, *, opset: int = 15, dynamo: bool = False) -> None:
        self._seed = seed
        self._counts: Counter[str] = Counter()
        self._computed: dict[tuple[str, tuple[str, ...], str], str] = {}
        self.opset = opset
        self.dynamo = dynamo
        self._nodes: list[onnx.NodeProto] = []
        self._weights: dict[str, NDArray[Any]] = {}

    def node(self, op: str, name: str, *inputs: str, **attributes: Any) -> str:
        """The node `name` of one output, `NAME_output_0`."""
        return self.nodes_of(op, name, *inputs, outputs=1, **attributes)[0]

    def nodes_of(self, op: str, name: str, *inputs: str, outputs: int, **attributes: Any) -> list[str]:
        """The node `name` of several outputs."""
        names = [f"{name}_output_{i}" for i in range(outputs)]
        self._nodes.append(helper.make_node(op, list(inputs), names, name=name, **attributes))
        return names

    def op(self, scope: str, op: str, *inputs: str, **attributes: Any) -> str:
        """A node of one output in the module `scope`, numbered there by operator: `/enc_p/Mul`, `/enc_p/Mul_1`.

        What was computed before is not computed again, in whatever module: exporters drop common subexpressions.
        """
        if self.opset < ALLOWZERO_OPSET:
            attributes.pop("allowzero", None)
        key = (op, inputs, str(sorted(attributes.items())))
        if key not in self._computed:
            self._computed[key] = self.node(op, self._numbered(scope, op), *inputs, **attributes)
        return self._computed[key]

    def weight(self, name: str, *shape: int, spread: float, mean: float = 0.0) -> str:
        """Normal weights of `shape`, with the deviation `spread`; drawn by name, whatever else there is."""
        rng = np.random.default_rng([self._seed, zlib.crc32(name.encode())])
        drawn = rng.standard_normal(shape) * spread
        return self.constant(name, (drawn + mean if mean else drawn).astype(np.float32))

    def constant(self, name: str, array: NDArray[Any]) -> str:
        """The initializer `name`."""
        self._weights[name] = array
        return name

    def integers(self, *values: int) -> str:
        """A constant int64 [n]; equal ones are one initializer, as exporters write them."""
        return self.constant("/Constant_" + "_".join(map(str, values)), np.array(values, np.int64))

    def scalar(self, value: int) -> str:
        """A constant int64 of rank 0."""
        return self.constant(f"/Constant_scalar_{value}", np.array(value, np.int64))

    def real(self, value: float) -> str:
        """A constant float of rank 0."""
        return self.constant(f"/Constant_real_{value}", np.array(value, np.float32))

    def conv(
        self,
        name: str,
        x: str,
        c_in: int,
        c_out: int,
        kernel: int = 1,
        dilation: int = 1,
        *,
        bias: bool = True,
        group: int = 1,
        padded: bool = True,
    ) -> str:
        """A Conv that keeps the length (unless not `padded`) and about the power of `x`."""
        taps = c_in // group
        weights = [self.weight(_weight(name, "weight"), c_out, taps, kernel, spread=(taps * kernel) ** -0.5)]
        if bias:
            weights.append(self.weight(_weight(name, "bias"), c_out, spread=SPREAD))
        pad = dilation * (kernel - 1) // 2 if padded else 0
        sizes = {"dilations": [dilation], "group": group, "kernel_shape": [kernel], "pads": [pad, pad], "strides": [1]}
        return self.node("Conv", f"{name}/Conv", x, *weights, **sizes)

    def conv_transpose(self, name: str, x: str, c_in: int, c_out: int, stride: int) -> str:
        """A ConvTranspose to `stride` times the length; two taps of its kernel reach each output."""
        kernel = 2 * stride + stride % 2
        pad = (kernel - stride) // 2
        weights = [
            self.weight(_weight(name, "weight"), c_in, c_out, kernel, spread=(2 * c_in) ** -0.5),
            self.weight(_weight(name, "bias"), c_out, spread=SPREAD),
        ]
        sizes = {"dilations": [1], "group": 1, "kernel_shape": [kernel], "pads": [pad, pad], "strides": [stride]}
        return self.node("ConvTranspose", f"{name}/ConvTranspose", x, *weights, **sizes)

    def leaky_relu(self, name: str, x: str, slope: float = SLOPE) -> str:
        """LeakyRelu, by default with HiFi-GAN's slope."""
        return self.node("LeakyRelu", f"{name}/LeakyRelu", x, alpha=slope)

    def slice(self, name: str, x: str, start: int | str, end: int | str, step: int = 1, axis: int = 1) -> str:
        """A Slice along one axis; bounds are numbers, or the names of int64 [1]."""
        bounds = [self.integers(bound) if isinstance(bound, int) else bound for bound in (start, end)]
        return self.node("Slice", name, x, *bounds, self.integers(axis), self.integers(step))

    def flip(self, name: str, x: str) -> str:
        """The channels in reverse order."""
        return self.slice(name, x, -1, -INT64_END - 1 if self.dynamo else -INT64_END, -1)

    def halves(self, name: str, x: str, half: int) -> list[str]:
        """The first and the last `half` channels; two of one channel are split by sizes in either dialect."""
        if self.dynamo and half > 1:
            return self.nodes_of("Split", f"{name}/Split", x, outputs=2, axis=1, num_outputs=2)
        return self.nodes_of("Split", f"{name}/Split", x, self.integers(half, half), outputs=2, axis=1)

    def zeros_like(self, name: str, x: str, number: str = "") -> str:
        """Zeros of `x`'s shape; `number` ends the names."""
        if self.dynamo:
            shape = self.node("Shape", f"{name}/Shape{number}", x, start=0)
            return self.node("Expand", f"{name}/Expand{number}", self.real(0.0), shape)
        shape = self.node("Shape", f"{name}/Shape{number}", x)
        return self.node("ConstantOfShape", f"{name}/ConstantOfShape{number}", shape)

    def normal_like(self, name: str, x: str) -> str:
        """Standard normal noise of `x`'s shape."""
        kind = {"mean": 0.0, "scale": 1.0} if self.dynamo else {"dtype": TensorProto.FLOAT}
        return self.node("RandomNormalLike", f"{name}/RandomNormalLike", x, **kind)

    def sequence_mask(self, name: str, count: str, lengths: str) -> str:
        """Float [batch, 1, count]: 1 where a position is below `lengths` [batch]."""
        row = self.node("Range", f"{name}/Range", self.scalar(0), count, self.scalar(1))
        row = self.node("Unsqueeze", f"{name}/Unsqueeze", row, self.integers(0))
        column = self.node("Unsqueeze", f"{name}/Unsqueeze_1", lengths, self.integers(1))
        below = self.node("Less", f"{name}/Less", row, column)
        below = self.node("Unsqueeze", f"{name}/Unsqueeze_2", below, self.integers(1))
        return self.node("Cast", f"{name}/Cast", below, to=TensorProto.FLOAT)

    def size(self, name: str, x: str, axis: int) -> str:
        """The size of `x` along `axis`, an int64 of rank 0."""
        shape = self.node("Shape", f"{name}/Shape", x)
        return self.node("Gather", f"{name}/Gather", shape, self.scalar(axis), axis=0)

    def name_last(self, output: str) -> str:
        """Names the output of the last node written."""
        self._nodes[-1].output[0] = output
        return output

    def graph(
        self, name: str, inputs: list[onnx.ValueInfoProto], outputs: list[onnx.ValueInfoProto]
    ) -> onnx.GraphProto:
        """The graph so far."""
        weights = [numpy_helper.from_array(array, key) for key, array in self._weights.items()]
        return helper.make_graph(self._nodes, name, inputs, outputs, weights)

    def _numbered(self, scope: str, op: str) -> str:
        name = f"{scope}/{op}"
        self._counts[name] += 1
        return name if self._counts[name] == 1 else f"{name}_{self._counts[name] - 1}"


def _weight(name: str, kind: str) -> str:
    """`/dec/conv_pre` has the weight `dec.conv_pre.weight`."""
    return f"{name.strip('/').replace('/', '.')}.{kind}"
