"""Streams of codes that the gates decode, and ways to decode them step by step.

No real codes can be had without a speech model or an encoder beside the decoder, so the codes are drawn evenly from the
codebooks with a seed: every entry occurs, and neighbours have nothing to do with each other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rknn_tts_runtime import CodeStep

from models.qwen3.config import DecoderConfig

FloatArray = NDArray[np.float32]
CodeArray = NDArray[np.int64]

PROOF_CODES = 192
"""Least length of the streams that stepwise decoding is proven on: over 2.5 sliding windows of 72."""


def drawn_codes(config: DecoderConfig, length: int, seed: int) -> CodeArray:
    """Codes [1, Q, length]."""
    drawn = np.random.default_rng(seed).integers(0, config.codebook_size, (1, config.num_quantizers, length))
    return drawn.astype(np.int64)


def proof_length(plans: Sequence[tuple[int, int]]) -> int:
    """The least length, `PROOF_CODES` or more, that leaves the last step of each plan partly empty.

    Args:
        plans: of each, how many codes are taken before, and then in each step; one at a time leaves nothing empty.
    """
    checked = [(before, size) for before, size in plans if size > 1]
    length = PROOF_CODES
    while any((length - before) % size == 0 for before, size in checked):
        length += 1
    return length


def steps_of(length: int, size: int, first: int | None = None) -> list[CodeStep]:
    """Steps of `size` codes, one of `first` codes before them where that is given; the last is as full as may be."""
    sizes = [] if first is None else [first]
    while sum(sizes) < length:
        sizes.append(size)
    starts = np.cumsum([0, *sizes[:-1]]).tolist()
    return [CodeStep(each, start, min(each, length - start)) for each, start in zip(sizes, starts, strict=True)]


def columns(values: NDArray[np.generic], start: int, size: int) -> NDArray[np.generic]:
    """`values` [1, C, N] from `start` on, `size` of them, zeros behind the last."""
    part = values[..., start : start + size]
    return np.pad(part, ((0, 0), (0, 0), (0, size - part.shape[-1])))
