"""The speaker encoder as an ONNX graph, and run on an array."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import torch
from numpy.typing import NDArray

from models import tracing
from models.cosyvoice2.speaker import Speaker
from models.cosyvoice2.speaker_config import SpeakerConfig

FBANK, EMBEDDING = "fbank", "embedding"


def speaker_shapes(config: SpeakerConfig, frames: int) -> dict[str, tuple[int, ...]]:
    """Inputs of the encoder for `frames` frames, by name."""
    return {FBANK: (1, 1, config.features, frames)}


def speaker_graph(speaker: Speaker, config: SpeakerConfig, frames: int) -> ir.Model:
    """The encoder for `frames` frames, as it was made for."""
    shapes = speaker_shapes(config, frames)
    return tracing.traced(speaker, tuple(map(torch.zeros, shapes.values())), list(shapes), [EMBEDDING])


def embedded(speaker: Speaker, fbank: NDArray[np.float32]) -> NDArray[np.float32]:
    """The embedding [1, E] of fbank [1, 1, F, T]."""
    with torch.no_grad():
        made: NDArray[np.float32] = speaker(torch.from_numpy(fbank)).numpy()
    return made
