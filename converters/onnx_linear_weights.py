"""The weights of a torch model, found in the ONNX that torch's older exporter made of it. No torch.

The exporter leaves biases, convolutions and layers of vectors under their names; the weight of a linear layer of frames
it turns about and calls `onnx::MatMul_2345`. Each is found by its bias: of a node Add that adds `NAME.bias` to what a
MatMul makes of it. Whether all that is right is proven by running the graph itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from contracts.errors import Refusal
from surgery.graph import input_at
from surgery.weights import tensor_of

Weights = dict[str, NDArray[np.float32]]

BIAS, WEIGHT = ".bias", ".weight"

ANONYMOUS = "onnx::"
"""Begins the names that the exporter makes up."""

_NAMED = 8
"""Inputs that a sentence lists at most."""


@dataclass(frozen=True)
class Exported:
    """A graph, and what it should be.

    Attributes:
        model: the graph.
        path: its file, for sentences.
        whose: what it should be of ("CosyVoice3's flow estimator").
        advice: what to do where it is not, the end of a sentence.
    """

    model: ir.Model
    path: Path
    whose: str
    advice: str

    def check_ends(self, inputs: Iterable[str], output: str) -> None:
        """Refuse a graph of other inputs or another output."""
        graph, wanted = self.model.graph, list(inputs)
        fed = {value.name for value in graph.inputs if value.name not in graph.initializers}
        given = {value.name for value in graph.outputs}
        if fed != set(wanted) or given != {output}:
            raise Refusal(
                f"{self.path}: is not {self.whose}: it takes {_listed(fed)} and gives {_listed(given)}, and that takes "
                f"{', '.join(wanted)} and gives {output}; {self.advice}."
            )

    def weights(self, besides: tuple[str, ...] = ()) -> Weights:
        """Weights and biases by their names; views of what the file holds.

        Args:
            besides: endings of other names that are wanted.

        Raises:
            Refusal: a layer's weight cannot be found, or is not float32; it is named.
        """
        found: Weights = {}
        for name, value in self.model.graph.initializers.items():
            if not name.startswith(ANONYMOUS) and name.endswith((BIAS, WEIGHT, *besides)):
                found[name] = self.array(value, name)
        for name in [name for name in found if name.endswith(BIAS)]:
            weight = name.removesuffix(BIAS) + WEIGHT
            if weight not in found:
                found[weight] = self._before(self.model.graph.initializers[name], weight)
        return found

    def _before(self, bias: ir.Value, name: str) -> NDArray[np.float32]:
        """The weight `name` [O, I] of a linear layer: what is multiplied by in front of the sum with its bias."""
        for usage in bias.uses():
            for value in usage.node.inputs if usage.node.op_type == "Add" else ():
                node = None if value is None else value.producer()
                if node is not None and (factor := matrix(node)) is not None:
                    return self.array(factor, name).T
        raise self.not_found(name, f"no MatMul stands in front of the sum with {bias.name}")

    def array(self, value: ir.Value, name: str) -> NDArray[np.float32]:
        """What `value` holds, the weight `name`.

        Raises:
            Refusal: nothing, or it is not float32.
        """
        tensor = tensor_of(value)
        if tensor is None or tensor.dtype != ir.DataType.FLOAT:
            kind = "no weight" if tensor is None else str(tensor.dtype.name).lower()
            raise Refusal(f"{self.path}: {name} is {kind}, float32 is needed; {self.advice}.")
        array: NDArray[np.float32] = tensor.numpy()
        return array

    def not_found(self, name: str, why: str) -> Refusal:
        """That the weight `name` is not where the exporter leaves it."""
        return Refusal(
            f"{self.path}: is not {self.whose} as torch's exporter writes it: {why}, so {name} is not found; give the "
            "flow.pt."
        )


def matrix(node: ir.Node) -> ir.Value | None:
    """The weight [I, O] that `node`, a MatMul, multiplies by; None of any other node."""
    factor = input_at(node, 1) if node.op_type == "MatMul" else None
    return factor if factor is not None and tensor_of(factor) is not None else None


def _listed(names: set[str | None]) -> str:
    return ", ".join(sorted(str(name)[:40] for name in names)[:_NAMED]) or "nothing"
