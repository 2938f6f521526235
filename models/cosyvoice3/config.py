"""Sizes of CosyVoice3's flow estimator."""

from __future__ import annotations

from dataclasses import dataclass

PAIR = 2
"""Rows of a batch: classifier-free guidance runs the estimator with its conditions and without them at once."""

ROTARY_BASE = 10000.0
"""Of the angles that the first head is turned by (arXiv:2104.09864)."""


@dataclass(frozen=True)
class DitConfig:
    """Sizes of the diffusion transformer.

    Attributes:
        width: of the stream between blocks.
        depth: blocks.
        heads: of the attention, each `head_dim` wide.
        head_dim: likewise; the first head alone is turned by its frame's place, all of its channels.
        inner: width inside a block's feed-forward.
        mel: bins of a mel frame, which the estimator takes three times: noised, of the prompt, as predicted.
        speaker: width of the speaker's embedding.
        frequencies: width of the time's sinusoidal embedding.
        kernel: frames of a convolution of the position embedding.
        groups: of the same.
    """

    width: int
    depth: int
    heads: int
    head_dim: int
    inner: int
    mel: int
    speaker: int
    frequencies: int
    kernel: int
    groups: int


TRUE_CONFIG = DitConfig(
    width=1024,
    depth=22,
    heads=16,
    head_dim=64,
    inner=2048,
    mel=80,
    speaker=80,
    frequencies=256,
    kernel=31,
    groups=16,
)
"""Of the published estimator (its training configuration, and the defaults of its modules)."""
