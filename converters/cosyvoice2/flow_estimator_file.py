"""The flow estimator of CosyVoice2, read from `flow.pt` or its graph: its tensors and the sizes that they tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from contracts.contract import RANDOM
from contracts.errors import Refusal
from contracts.seed import SEED
from converters.cosyvoice2.flow_estimator_onnx import onnx_weights
from converters.cosyvoice_files import ESTIMATOR, FLOW, IN_FLOW
from converters.onnx_file import read_onnx
from converters.stages import Checkpoint
from converters.torch_weights import check_weights, numbers_behind, read_weights, shape_of
from models.cosyvoice2.estimator_config import HEAD_DIM, PARTS, TRUE_CONFIG, EstimatorConfig, layout

WHOSE = "CosyVoice2's flow estimator"
ADVICE = f"give CosyVoice2-0.5B's {FLOW} or {ESTIMATOR}, or their folder"

Weights = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True)
class OpenEstimator:
    """An estimator's weights.

    Attributes:
        config: their sizes.
        weights: by the original's names (`models.cosyvoice2.estimator_config.layout`).
        graph: the graph that they are from; None where they are from no graph.
    """

    config: EstimatorConfig
    weights: Weights
    graph: ir.Model | None = None


def open_estimator(checkpoint: Checkpoint) -> OpenEstimator:
    """The estimator of a located checkpoint.

    Raises:
        UserInput: the file is missing, damaged, or of another format.
        Refusal: it is no flow estimator of CosyVoice2, or holds NaN.
    """
    if checkpoint.source.kind == RANDOM:
        from models.cosyvoice2.estimator_stand_in import stand_in

        return OpenEstimator(TRUE_CONFIG, stand_in(TRUE_CONFIG, SEED))
    path = checkpoint.path
    graph = read_onnx(path) if path.suffix == ".onnx" else None
    if graph is not None:
        weights = onnx_weights(graph, path, WHOSE, ADVICE)
    else:
        held = read_weights(path, WHOSE, ADVICE, (IN_FLOW,))
        weights = {name.removeprefix(IN_FLOW): array for name, array in held.items()}
    config = config_of(weights, path)
    shapes = layout(config)
    check_weights(weights, shapes, path, WHOSE, ADVICE, alone=True)
    return OpenEstimator(config, {name: weights[name] for name in shapes}, graph)


def config_of(weights: Weights, path: Path) -> EstimatorConfig:
    """The sizes, from one tensor each; whether the others fit is seen later.

    Raises:
        Refusal: a tensor that tells is missing, or the sizes are no estimator's.
    """
    first = "down_blocks.0"
    mel, channels = _shape(weights, "final_proj.weight", 3, path)[:2]
    given = _shape(weights, f"{first}.0.block1.block.0.weight", 3, path)[1]
    inner = _shape(weights, f"{first}.1.0.attn1.to_q.weight", 2, path)[0]
    hidden = _shape(weights, f"{first}.1.0.ff.net.0.proj.weight", 2, path)[0]
    time = _shape(weights, "time_mlp.linear_1.weight", 2, path)[0]
    _check(given == PARTS * mel, f"its first block reads {given} channels and not {PARTS} mels of {mel}", path)
    _check(given % 2 == 0 and given > 2, f"a time is no {given} sines and cosines", path)
    _check(inner % HEAD_DIM == 0, f"attention of {inner} channels is no heads of {HEAD_DIM}", path)
    depth, mid = numbers_behind(weights, f"{first}.1."), numbers_behind(weights, "mid_blocks.")
    return EstimatorConfig(mel, channels, depth, mid, inner, hidden, time)


def _shape(weights: Weights, name: str, axes: int, path: Path) -> tuple[int, ...]:
    return shape_of(weights, name, axes, path, WHOSE, ADVICE)


def _check(holds: bool, fault: str, path: Path) -> None:
    if not holds:
        raise Refusal(f"{path}: is not {WHOSE}: {fault}; {ADVICE}.")
