"""A flow estimator's checkpoint, read: its weights, the sizes that they tell, and its graph where it is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from contracts.contract import RANDOM
from contracts.seed import SEED
from converters.cosyvoice3.estimator_sizes import ADVICE, WHOSE, config_of
from converters.cosyvoice3.onnx_weights import onnx_weights
from converters.cosyvoice_files import IN_FLOW
from converters.onnx_file import read_onnx
from converters.stages import Checkpoint
from converters.torch_weights import check_weights, read_weights
from models.cosyvoice3.config import TRUE_CONFIG, DitConfig
from models.cosyvoice3.layout import ROTARY, layout
from models.cosyvoice3.stand_in import rotary, stand_in

Weights = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True)
class OpenFlow:
    """An estimator's weights.

    Attributes:
        config: their sizes.
        weights: by upstream's names (`models.cosyvoice3.layout`).
        graph: the graph that they are from; None where they are from no graph.
    """

    config: DitConfig
    weights: Weights
    graph: ir.Model | None


def open_flow(checkpoint: Checkpoint) -> OpenFlow:
    """The estimator of a located checkpoint.

    Raises:
        UserInput: the file is missing or damaged.
        Refusal: it is no flow estimator of CosyVoice3, or holds NaN.
    """
    if checkpoint.source.kind == RANDOM:
        return OpenFlow(TRUE_CONFIG, stand_in(TRUE_CONFIG, SEED), None)
    path = checkpoint.path
    graph = read_onnx(path) if path.suffix == ".onnx" else None
    if graph is not None:
        weights = onnx_weights(graph, path)
    else:
        held = read_weights(path, WHOSE, ADVICE, (IN_FLOW,))
        weights = {name.removeprefix(IN_FLOW): array for name, array in held.items()}
    config = config_of(weights, path)
    weights.setdefault(ROTARY, rotary(config))
    shapes = layout(config)
    check_weights(weights, shapes, path, WHOSE, ADVICE, alone=True)
    return OpenFlow(config, {name: weights[name] for name in shapes}, graph)
