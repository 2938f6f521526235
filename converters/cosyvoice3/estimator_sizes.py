"""The sizes of a flow estimator, read off its weights. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from contracts.errors import Refusal
from converters.torch_weights import numbers_behind, shape_of
from models.cosyvoice3.config import TRUE_CONFIG, DitConfig
from models.cosyvoice3.layout import BLOCKS, POSITIONS, ROTARY

WHOSE = "CosyVoice3's flow estimator"
ADVICE = "give Fun-CosyVoice3-0.5B's flow.pt or flow.decoder.estimator.fp32.onnx, or their folder"

Weights = Mapping[str, NDArray[np.float32]]


def config_of(weights: Weights, path: Path) -> DitConfig:
    """The sizes, from one tensor each; whether the others fit is seen later.

    A graph may have lost the angles of the first head's rotation, which tell the width of a head: it is the published
    one then.

    Args:
        weights: under upstream's names.
        path: the checkpoint, for messages.

    Raises:
        Refusal: a tensor that tells is missing, or the sizes are no estimator's.
    """
    mel, width = _shape(weights, "proj_out.weight", 2, path)
    frequencies = _shape(weights, "time_embed.time_mlp.0.weight", 2, path)[1]
    joined = _shape(weights, "input_embed.proj.weight", 2, path)[1]
    _, group, kernel = _shape(weights, f"{POSITIONS[0]}.weight", 3, path)
    attention = _shape(weights, f"{BLOCKS}0.attn.to_q.weight", 2, path)[0]
    inner = _shape(weights, f"{BLOCKS}0.ff.ff.0.0.weight", 2, path)[0]
    head_dim = 2 * _shape(weights, ROTARY, 1, path)[0] if ROTARY in weights else TRUE_CONFIG.head_dim
    depth = numbers_behind(weights, BLOCKS)
    _check(width % group == 0, f"{width} channels are no groups of {group}", path)
    _check(attention % head_dim == 0 and attention > head_dim, f"{attention} are no heads of {head_dim}", path)
    _check(joined > 3 * mel, f"{joined} numbers a frame are no three of {mel} and a speaker", path)
    _check(frequencies % 2 == 0 and frequencies > 2, f"a time is no {frequencies} sines and cosines", path)
    return DitConfig(
        width=width,
        depth=depth,
        heads=attention // head_dim,
        head_dim=head_dim,
        inner=inner,
        mel=mel,
        speaker=joined - 3 * mel,
        frequencies=frequencies,
        kernel=kernel,
        groups=width // group,
    )


def _shape(weights: Weights, name: str, axes: int, path: Path) -> tuple[int, ...]:
    return shape_of(weights, name, axes, path, WHOSE, ADVICE)


def _check(holds: bool, fault: str, path: Path) -> None:
    if not holds:
        raise Refusal(f"{path}: is not {WHOSE}: {fault}; {ADVICE}.")
