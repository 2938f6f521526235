"""The weights of a flow estimator, found in the ONNX that upstream exports of it. No torch.

torch's exporter leaves biases, convolutions and the layers of a time under their names; the weight of a linear layer of
frames it turns about and calls `onnx::MatMul_2345`. Each is found by its bias: of a node Add that adds `NAME.bias` to
what a MatMul makes of it. Whether all that is right is proven by running the graph itself.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from contracts.errors import Refusal
from converters.cosyvoice3.estimator_sizes import ADVICE, WHOSE
from models.cosyvoice3.layout import INPUTS, OUTPUT
from surgery.graph import input_at
from surgery.weights import tensor_of

Weights = dict[str, NDArray[np.float32]]

_BIAS, _WEIGHT = ".bias", ".weight"


def onnx_weights(model: ir.Model, path: Path) -> Weights:
    """The weights of the estimator `model`, read from `path`, by upstream's names; views of what the file holds.

    Raises:
        Refusal: it is another graph, or a linear layer's weight cannot be found; the tensor is named.
    """
    graph = model.graph
    fed = {value.name for value in graph.inputs if value.name not in graph.initializers}
    given = {value.name for value in graph.outputs}
    if fed != set(INPUTS) or given != {OUTPUT}:
        raise Refusal(
            f"{path}: is not {WHOSE}: it takes {_listed(fed)} and gives {_listed(given)}, and that takes "
            f"{', '.join(INPUTS)} and gives {OUTPUT}; {ADVICE}."
        )
    weights: Weights = {}
    for name, value in graph.initializers.items():
        if not name.startswith("onnx::") and name.endswith((_BIAS, _WEIGHT, ".inv_freq")):
            weights[name] = _array(value, name, path)
    for name in [name for name in weights if name.endswith(_BIAS)]:
        weight = name.removesuffix(_BIAS) + _WEIGHT
        if weight not in weights:
            weights[weight] = _matrix(graph.initializers[name], weight, path).T
    return weights


def _matrix(bias: ir.Value, name: str, path: Path) -> NDArray[np.float32]:
    """What is multiplied by in front of the sum with `bias`, [I, O]."""
    for usage in bias.uses():
        for value in usage.node.inputs if usage.node.op_type == "Add" else ():
            node = None if value is None else value.producer()
            if node is not None and node.op_type == "MatMul":
                factor = input_at(node, 1)
                if factor is not None and tensor_of(factor) is not None:
                    return _array(factor, name, path)
    raise Refusal(
        f"{path}: is not {WHOSE} as torch's exporter writes it: no MatMul stands in front of the sum with {bias.name}, "
        f"so {name} is not found; give the flow.pt."
    )


def _array(value: ir.Value, name: str, path: Path) -> NDArray[np.float32]:
    tensor = tensor_of(value)
    if tensor is None or tensor.dtype != ir.DataType.FLOAT:
        kind = "no weight" if tensor is None else str(tensor.dtype.name).lower()
        raise Refusal(f"{path}: {name} is {kind}, float32 is needed; {ADVICE}.")
    array: NDArray[np.float32] = tensor.numpy()
    return array


def _listed(names: set[str | None]) -> str:
    return ", ".join(sorted(str(name)[:40] for name in names)[:8]) or "nothing"
