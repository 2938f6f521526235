"""CosyVoice2's predictor of pitch, inference only: mel [1, 80, W] -> f0 [1, W] in Hz, 0 or about where no voice is.

Five convolutions with ELUs, a linear layer and the absolute value. A pitch depends on five frames on each side; both
ends of a window see zeros, as those of an utterance do upstream.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from models.cosyvoice2.hift_config import PITCH_KERNEL, PITCH_LAYERS, HiftConfig

PREFIX = "f0_predictor."
"""Where it stands in a `hift.pt`."""


class Pitch(nn.Module):
    """The predictor; its weights are those of a checkpoint (`pitch_of`)."""

    def __init__(self, config: HiftConfig) -> None:
        super().__init__()
        ins, outs = config.mels, config.pitch_channels
        layers: list[nn.Module] = []
        for _ in range(PITCH_LAYERS):
            layers += [nn.Conv1d(ins, outs, PITCH_KERNEL, padding=PITCH_KERNEL // 2), nn.ELU()]
            ins = outs
        self.condnet = nn.Sequential(*layers)
        self.classifier = nn.Conv1d(outs, 1, 1)  # a linear layer on channels, which needs no transposed frames so

    def forward(self, mel: Tensor) -> Tensor:
        """mel [1, M, W] -> f0 [1, W]."""
        out: Tensor = self.classifier(self.condnet(mel)).squeeze(1).abs()
        return out


def pitch_of(weights: Mapping[str, NDArray[np.float32]], config: HiftConfig) -> Pitch:
    """The predictor of a checkpoint.

    Args:
        weights: of a whole `hift.pt`, weight norm folded (`hift_config.layout`), shared with what is returned.
        config: its sizes.
    """
    with torch.device("meta"):
        made = Pitch(config)
    given = {name: torch.from_numpy(np.require(weights[PREFIX + name], requirements="W")) for name in made.state_dict()}
    given["classifier.weight"] = given["classifier.weight"].unsqueeze(-1)
    made.load_state_dict(given, assign=True)
    return made.eval().requires_grad_(False)
