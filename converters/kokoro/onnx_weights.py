"""Weights of a Kokoro ONNX in the layout of the official checkpoint.

A graph holds folded weights: a convolution's W where the checkpoint has weight norm's g and v. v = W and g = |W| along
all axes but the first give W again; where quantisation made a row zero, v = 1 and g = 0, since 0 / 0 is no number.
ONNX keeps the gates of an LSTM as input, output, forget, cell and both biases in one tensor; torch keeps input, forget,
cell, output, and one tensor a direction. Products hold their weights transposed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from contracts.errors import Refusal
from converters.kokoro.graph_modules import GraphModules
from converters.kokoro.layout import Kind, Module, modules
from models.kokoro.config import KokoroConfig
from surgery.graph import input_at
from surgery.weights import tensor_of

Weights = dict[str, NDArray[np.float32]]

_TORCH_GATES = (0, 2, 3, 1)
"""Where torch's gates (input, forget, cell, output) lie among ONNX's (input, output, forget, cell)."""

_FACTORS = {
    "Conv": (1,),
    "ConvTranspose": (1,),
    "Gather": (0,),
    "Gemm": (0, 1),
    "LSTM": (1, 2),
    "MatMul": (0, 1),
}
"""Inputs of operators that are weights where they are constant."""

_WITHOUT_WEIGHTS = ("decoder.module.generator.istft", "decoder.module.generator.stft")
"""Transforms that some exports write as convolutions."""


@dataclass(frozen=True)
class Recovered:
    """What a graph gave.

    Attributes:
        weights: by official name.
        zero_rows: filters that are zero, by the convolution's name.
    """

    weights: Weights
    zero_rows: dict[str, int]


def recover(graph: ir.Graph, places: GraphModules, config: KokoroConfig) -> Recovered:
    """The weights of `graph`, a float one, by official name.

    Args:
        graph: the graph.
        places: its modules.
        config: its sizes; they say which modules there are.

    Raises:
        Refusal: a module's node or weight is not there, is not float32, or the graph has weights besides.
    """
    reader = _Reader(places)
    weights: Weights = {}
    for module in modules(config):
        weights.update({f"{module.name}.{rest}": array for rest, array in reader.read(module).items()})
    reader.check_nothing_left(graph)
    return Recovered(weights, _zero_rows(weights))


class _Reader:
    """Reads modules, and remembers which weights were taken."""

    def __init__(self, places: GraphModules) -> None:
        self._places = places
        self._taken: set[ir.Value] = set()
        self._forms: Mapping[Kind, Callable[[Module], Weights]] = {
            Kind.EMBEDDING: self._embedding,
            Kind.LINEAR: self._linear,
            Kind.CONVOLUTION: self._convolution,
            Kind.NORMED_CONVOLUTION: self._normed,
            Kind.LSTM: self._lstm,
            Kind.LAYER_NORM: self._layer_norm,
            Kind.SNAKE: self._snake,
        }

    def read(self, module: Module) -> Weights:
        """The module's tensors by the rest of their names."""
        return self._forms[module.kind](module)

    def check_nothing_left(self, graph: ir.Graph) -> None:
        """Refuse weights that no module took: the graph computes more than Kokoro does."""
        apart = tuple(self._places.path(name) for name in _WITHOUT_WEIGHTS)
        for node in graph:
            self._check_norm(node)
            outside = not any(str(value.name).startswith(apart) for value in node.outputs)
            for place in _FACTORS.get(node.op_type, ()) if outside else ():
                found = self._places.constant(input_at(node, place))
                if found is not None and found not in self._taken and _is_matrix(found):
                    raise Refusal(
                        f"{self._places.source}: is no Kokoro as its weights are looked for: the node {node.name} has "
                        "a weight that Kokoro does not have; give the official .pth with its config.json."
                    )

    def _check_norm(self, node: ir.Node) -> None:
        """An instance norm of the reference scales by one and shifts by zero, where its exporter writes that out."""
        for place, neutral in ((1, 1), (2, 0)) if node.op_type == "InstanceNormalization" else ():
            tensor = tensor_of(self._places.constant(input_at(node, place)))
            if tensor is None or not np.all(tensor.numpy() == neutral):
                raise Refusal(
                    f"{self._places.source}: the instance norm {node.name} does not scale by one and shift by zero: "
                    "norms that were trained so are not supported."
                )

    def _take(self, value: ir.Value, what: str) -> NDArray[np.float32]:
        tensor = tensor_of(value)
        assert tensor is not None
        if tensor.dtype != ir.DataType.FLOAT:
            raise Refusal(
                f"{self._places.source}: the weight {what} is {tensor.dtype.name.lower()}, float32 is needed; give the "
                "float32 (or the int8) export of the model."
            )
        self._taken.add(value)
        return np.asarray(tensor.numpy(), np.float32)

    def _weight(self, node: ir.Node, place: int, what: str) -> NDArray[np.float32]:
        return self._take(self._places.weight(node, place), what)

    def _embedding(self, module: Module) -> Weights:
        return {"weight": self._weight(self._places.node(module.name, "Gather"), 0, f"{module.name}.weight")}

    def _linear(self, module: Module) -> Weights:
        node = self._places.node(module.name, "MatMul", "Gemm")
        self._check_plain(node)
        weight = self._weight(node, 1, f"{module.name}.weight")
        if not node.attributes.get_int("transB", 0):
            weight = weight.T
        return {"weight": np.ascontiguousarray(weight), **self._bias(module, node, weight.shape[0])}

    def _convolution(self, module: Module) -> Weights:
        node = self._places.node(module.name, "Conv", "ConvTranspose")
        weight = self._weight(node, 1, f"{module.name}.weight")
        made = module.shapes["bias"][0] if "bias" in module.shapes else 0
        return {"weight": weight, **self._bias(module, node, made)}

    def _normed(self, module: Module) -> Weights:
        weight, *bias = self._convolution(module).items()
        direction, gain = _weight_norm(weight[1])
        return {**dict(bias), "weight_g": gain, "weight_v": direction}

    def _lstm(self, module: Module) -> Weights:
        node = self._places.node(module.name, "LSTM")
        given, hidden, bias = (self._weight(node, place, f"{module.name} ({place})") for place in (1, 2, 3))
        if given.shape[0] != 2 or hidden.ndim != 3 or bias.shape != (2, 2 * hidden.shape[1]):
            raise Refusal(f"{self._places.source}: is no Kokoro: the node {node.name} is no LSTM of two directions.")
        rows = hidden.shape[1]
        return {
            f"{rest}_l0{way}": _torch_gates(tensor)
            for direction, way in enumerate(("", "_reverse"))
            for rest, tensor in (
                ("weight_ih", given[direction]),
                ("weight_hh", hidden[direction]),
                ("bias_ih", bias[direction, :rows]),
                ("bias_hh", bias[direction, rows:]),
            )
        }

    def _layer_norm(self, module: Module) -> Weights:
        node = self._places.node(module.name, "LayerNormalization", "SkipLayerNormalization")
        first = 2 if node.op_type == "SkipLayerNormalization" else 1
        return {
            rest: self._weight(node, first + place, f"{module.name}.{rest}") for place, rest in enumerate(module.shapes)
        }

    def _snake(self, module: Module) -> Weights:
        """The factors of the arguments of the sines; behind which norm an argument lies tells which factor it is."""
        found: Weights = {}
        for node in self._places.nodes(module.name):
            for one, other in _multiplied(input_at(node, 0)) if node.op_type == "Sin" else ():
                factor, rest = self._places.constant(one), self._alpha(module, other)
                if factor is not None and rest is not None:
                    found[rest] = self._take(factor, f"{module.name}.{rest}")
        missing = [rest for rest in module.shapes if rest not in found]
        if missing:
            raise Refusal(
                f"{self._places.source}: is no Kokoro as its weights are looked for: no sine at "
                f"{self._places.path(module.name)} has a factor that is {missing[0]}; give the official .pth."
            )
        return {rest: found[rest] for rest in module.shapes}

    def _alpha(self, module: Module, argument: ir.Value) -> str | None:
        """`alpha1.0` where `argument` comes from the norm `adain1.0`."""
        for rest in module.shapes:
            norm = self._places.path(f"{module.name}.{rest.replace('alpha', 'adain')}")
            node = argument.producer()
            names = (argument.name, None if node is None else node.name)
            if any(name is not None and name.startswith(f"{norm}/") for name in names):
                return rest
        return None

    def _bias(self, module: Module, node: ir.Node, size: int) -> Weights:
        if "bias" not in module.shapes:
            return {}
        found = self._places.bias(node, 2, size)
        if found is None:
            raise Refusal(
                f"{self._places.source}: is no Kokoro as its weights are looked for: the node {node.name} has no bias."
            )
        return {"bias": self._take(found, f"{module.name}.bias")}

    def _check_plain(self, node: ir.Node) -> None:
        factors = [node.attributes.get_float(name, 1.0) for name in ("alpha", "beta")]
        if factors != [1.0, 1.0] or node.attributes.get_int("transA", 0) != 0:
            raise Refusal(f"{self._places.source}: the node {node.name} scales or turns what it multiplies.")


def _weight_norm(weight: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """v and g of a folded weight."""
    norm = np.sqrt((weight.astype(np.float64) ** 2).sum(axis=tuple(range(1, weight.ndim)), keepdims=True))
    is_zero = norm == 0
    direction = np.where(is_zero, np.float32(1), weight) if is_zero.any() else weight
    return direction, norm.astype(np.float32)


def _multiplied(value: ir.Value | None) -> tuple[tuple[ir.Value, ir.Value], ...]:
    """The two factors of a Mul that made `value`, either way round; none where no Mul did."""
    node = None if value is None else value.producer()
    one, other = (None, None) if node is None or node.op_type != "Mul" else (input_at(node, 0), input_at(node, 1))
    return () if one is None or other is None else ((one, other), (other, one))


def _torch_gates(tensor: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows in torch's order of gates."""
    gates = tensor.reshape(len(_TORCH_GATES), -1, *tensor.shape[1:])
    return np.ascontiguousarray(gates[list(_TORCH_GATES)].reshape(tensor.shape))


def _zero_rows(weights: Weights) -> dict[str, int]:
    counts: Iterator[tuple[str, int]] = (
        (name.removesuffix(".weight_g"), int(np.count_nonzero(array == 0)))
        for name, array in weights.items()
        if name.endswith(".weight_g")
    )
    return {name: count for name, count in counts if count}


def _is_matrix(value: ir.Value) -> bool:
    tensor = tensor_of(value)
    return tensor is not None and tensor.dtype.is_floating_point() and len(tensor.shape.numpy()) > 1
