"""CosyVoice2's `hift.pt`, read: the vocoder's tensors and the sizes that they tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from contracts.contract import RANDOM
from contracts.errors import Refusal
from contracts.seed import SEED
from converters.cosyvoice_files import HIFT
from converters.stages import Checkpoint
from converters.torch_weights import check_weights, read_weights
from models.cosyvoice2.hift_config import EDGE_KERNEL, TRUE_CONFIG, UPSAMPLE_RATES, HiftConfig, layout
from models.weight_norm import folded, unfolded

WHOSE = "CosyVoice2's vocoder"
ADVICE = f"give CosyVoice2-0.5B's {HIFT}, or its folder"

PREFIX = "generator."
"""What training puts before the names, where the discriminator stands beside it."""

STAGES = len(UPSAMPLE_RATES)

_PARTS = tuple(dict.fromkeys(f"{name.split('.')[0]}." for name in layout(TRUE_CONFIG)))
_WANTED = (*_PARTS, *(PREFIX + part for part in _PARTS))
"""How names begin; training keeps its discriminator and its counts (`epoch`, `step`) in the file too."""

_SHOWN = 3
"""Of a list of tensors."""


@dataclass(frozen=True)
class OpenHift:
    """A vocoder's weights.

    Attributes:
        config: their sizes.
        weights: under a checkpoint's names, weight norm folded (`models.cosyvoice2.hift_config.layout`).
    """

    config: HiftConfig
    weights: Mapping[str, NDArray[np.float32]]


def open_hift(checkpoint: Checkpoint) -> OpenHift:
    """The vocoder of a located checkpoint.

    Raises:
        UserInput: the file is missing, damaged, or no torch file.
        Refusal: it is no vocoder of CosyVoice2, or holds NaN.
    """
    if checkpoint.source.kind == RANDOM:
        from models.cosyvoice2.hift_stand_in import stand_in

        return OpenHift(TRUE_CONFIG, folded(stand_in(TRUE_CONFIG, SEED)))
    path = checkpoint.path
    held = read_weights(path, WHOSE, ADVICE, _WANTED)
    weights = folded({name.removeprefix(PREFIX): array for name, array in held.items()})
    config = _config(weights, path)
    shapes = layout(config)
    if torn := unfolded(weights):
        raise Refusal(
            f"{path}: is not {WHOSE}: of weights that are kept as a gain and a direction, {', '.join(torn[:_SHOWN])} "
            f"do not fit each other; {ADVICE}."
        )
    check_weights(weights, shapes, path, WHOSE, ADVICE, alone=True)
    return OpenHift(config, {name: weights[name] for name in shapes})


def _config(weights: Mapping[str, NDArray[np.float32]], path: Path) -> HiftConfig:
    """The sizes that the first convolutions tell, once the other generations are told from this one."""
    first, pitch = weights.get("conv_pre.weight"), weights.get("f0_predictor.condnet.0.weight")
    if first is None or pitch is None or first.ndim != 3 or pitch.ndim != 3:
        raise Refusal(f"{path}: is no {HIFT}: it has no conv_pre and f0_predictor, convolutions of {WHOSE}; {ADVICE}.")
    if first.shape[2] != EDGE_KERNEL:
        raise Refusal(
            f"{path}: conv_pre has a kernel of {first.shape[2]} and not {EDGE_KERNEL}, as the causal vocoder of "
            f"CosyVoice3 has, which is another network; {ADVICE}."
        )
    if f"ups.{STAGES - 1}.weight" not in weights:
        raise Refusal(
            f"{path}: it upsamples in fewer than {STAGES} stages, as CosyVoice1's vocoder of 22.05 kHz does; {ADVICE}."
        )
    channels = first.shape[0]
    if channels % (1 << STAGES) or not channels:
        raise Refusal(f"{path}: conv_pre has {channels} channels, which {STAGES} stages cannot halve; {ADVICE}.")
    return HiftConfig(mels=first.shape[1], channels=channels, pitch_channels=pitch.shape[0])
