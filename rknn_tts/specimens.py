"""A small graph for each cut, as real generators have the place that it rewrites: what the figures in docs/cuts.md are of.

Each stands between two convolutions, as in a generator: at the edge of a graph the compiler adds layers of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import numpy_helper, parser

SEED = 4
CHANNELS, STEPS = 128, 1200
"""Of most specimens: a vocoder's middle stage."""


@dataclass(frozen=True)
class Specimen:
    """A graph as text, and its weights.

    Attributes:
        where: where a real model has such a place.
        text: the graph in ONNX's textual syntax; it reads x.
        weights: shapes of seeded random weights, by name.
        constants: weights of given values, by name.
    """

    where: str
    text: str
    weights: Mapping[str, tuple[int, ...]]
    constants: Mapping[str, object] = field(default_factory=dict)


def specimen_model(specimen: Specimen) -> onnx.ModelProto:
    """The graph of `specimen`; weights are normal, scaled so that every layer's output is about as large as its input."""
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\n{specimen.text}')
    rng = np.random.default_rng(SEED)
    for name, shape in specimen.weights.items():
        values = rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
        model.graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), name))
    for name, given in specimen.constants.items():
        array = np.asarray(given)
        kind = np.int64 if array.dtype.kind == "i" else np.float32
        model.graph.initializer.append(numpy_helper.from_array(array.astype(kind), name))
    return model
