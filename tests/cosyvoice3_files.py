"""Checkpoints of CosyVoice3's flow on disk, for tests: of few channels, as upstream saves and exports them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
import torch
from numpy.typing import NDArray

from models.cosyvoice3.config import DitConfig
from models.cosyvoice3.dit import Dit
from models.cosyvoice3.layout import INPUTS, OUTPUT, input_shapes
from models.cosyvoice3.runs import dit_of
from models.cosyvoice3.stand_in import stand_in
from models.tracing import traced_by_script

REDUCED = DitConfig(
    width=96, depth=2, heads=3, head_dim=32, inner=160, mel=20, speaker=28, frequencies=64, kernel=7, groups=6
)
"""No two widths are alike but for the heads' (3 of 32): a layer that takes one for another fails."""

SIMULATED = DitConfig(
    width=256, depth=2, heads=4, head_dim=64, inner=512, mel=80, speaker=80, frequencies=256, kernel=31, groups=4
)
"""One whose heads, groups, mel frames and kernels are the published ones', which the compiler treats alike."""

SEED = 3

Weights = dict[str, NDArray[np.float32]]


def weights_of(config: DitConfig = REDUCED) -> Weights:
    """Random weights by upstream's names."""
    return stand_in(config, SEED)


def write_flow(path: Path, weights: Weights, **others: object) -> Path:
    """A `flow.pt` with these weights as its estimator's, one of the encoder's beside them, and `others`."""
    held = {f"decoder.estimator.{name}": torch.from_numpy(array) for name, array in weights.items()}
    torch.save({"encoder.embed.out.0.weight": torch.zeros(3, dtype=torch.float16), **held, **others}, path)
    return path


def exported(config: DitConfig = REDUCED, weights: Weights | None = None, frames: int = 8) -> ir.Model:
    """The graph that upstream's exporter makes of an estimator, for any length: biases and times under their names."""
    dit: Dit = dit_of(weights_of(config) if weights is None else weights, config)
    example = tuple(torch.zeros(shape) for shape in input_shapes(config, frames).values())
    lengths = {name: {2: "seq_len"} for name in ("x", "mask", "mu", "cond", OUTPUT)}
    return traced_by_script(dit, example, INPUTS, [OUTPUT], 18, lengths)
