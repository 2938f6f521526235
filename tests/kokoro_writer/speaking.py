"""A small random Kokoro that speaks long enough for its gates, and voices for it."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from models.kokoro.config import KokoroConfig
from tests.kokoro_writer.checkpoint import SMALL, Weights, state_dicts, stated, write_checkpoint
from tests.models.kokoro.checkpoints import tame_weights

SPEAKING: KokoroConfig = replace(
    SMALL,
    plbert=replace(SMALL.plbert, max_position_embeddings=300),
    istftnet=replace(
        SMALL.istftnet, resblock_kernel_sizes=(3,), resblock_dilation_sizes=((1, 2, 4),), gen_istft_n_fft=10
    ),
)
"""The small one, with room for a long sentence, one residual block a stage, and a transform that can be inverted."""

SIGNS = "aeiokʨɯn."
"""What it knows: one sign for each token but the boundary."""

VOCABULARY = {sign: token for token, sign in enumerate(SIGNS, start=1)}

VOICE_NAMES = ("first", "second")

LENGTHS = 300
"""Styles of a voice: one for each number of phonemes."""

ALPHA, GAIN = np.float32(0.5), np.float32(0.3)
"""What random numbers of about one are scaled by, of Snakes and of weight norms."""

STYLE, STYLE_BY_LENGTH = 0.5, 0.02
"""How far apart voices are, and a voice's styles for sentences of different length."""


@cache
def speaking_weights() -> Weights:
    """Its weights, which stay in a trained one's range; sines go a few half turns far, as there."""
    weights = tame_weights(SPEAKING)
    for name, array in weights.items():
        if ".generator." in name and ".alpha" in name:
            weights[name] = ALPHA * array
        elif ".generator." in name and name.endswith(".weight_g"):
            weights[name] = GAIN * array
    return weights


def write_speaking(folder: Path) -> Path:
    """The checkpoint as `model.pth`, and its config.json."""
    return write_checkpoint(folder, state_dicts(speaking_weights()), stated(SPEAKING))


def write_voices(folder: Path) -> Path:
    """Voices as `voices_ja.npz`, and the vocabulary beside them as `vocab.json`."""
    rng = np.random.default_rng(0)
    path = folder / "voices_ja.npz"
    width = 2 * SPEAKING.style_dim
    styles = {
        name: rng.standard_normal(width) * STYLE + rng.standard_normal((LENGTHS, 1, width)) * STYLE_BY_LENGTH
        for name in VOICE_NAMES
    }
    arrays = {name: array.astype(np.float32) for name, array in styles.items()}
    np.savez(path, **arrays)  # type: ignore[arg-type]  # its stub takes them for `allow_pickle`
    (folder / "vocab.json").write_text(json.dumps({"vocab": VOCABULARY}, ensure_ascii=False), encoding="utf-8")
    return path
