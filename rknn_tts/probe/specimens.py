"""Small graphs of those rewritten operators that docs/cuts.md has no specimen of: sines, absolute values, and relative
attention as VITS's exporters write it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rknn_tts.specimens import CHANNELS, SEED, STEPS, Specimen

_SIZES = f"1,{CHANNELS},{STEPS}"
_ENDS = dict.fromkeys(("w_before", "w_behind"), (CHANNELS, CHANNELS, 3))
_BEFORE = "[before] h = Conv <kernel_shape = [3], pads = [1, 1]> (x, w_before)\n"
_BEHIND = "[behind] y = Conv <kernel_shape = [3], pads = [1, 1]> ({value}, w_behind)\n"

MOST_FREQUENCY = 4.0
"""Of the sine's specimen: h is about N(0, 1), five deviations at most, so arguments stay within 20, or 6.4 pi: folded
three times, as most of Kokoro's sites are (`surgery.rewrite_sines.EIGHT`)."""


def _graph(body: str, value: str) -> str:
    return f"specimen (float[{_SIZES}] x) => (float[{_SIZES}] y) {{\n{_BEFORE}{body}{_BEHIND.format(value=value)}}}"


_ALPHA = np.linspace(0.5, MOST_FREQUENCY, CHANNELS).reshape(1, CHANNELS, 1)

SNAKE = Specimen(
    "sin^2(alpha x) / alpha, what Snake adds to x, in every residual block of Kokoro's generator",
    _graph(
        "argument = Mul (h, alpha)\nwave = Sin (argument)\nsquare = Mul (wave, wave)\nsmall = Mul (square, share)\n",
        "small",
    ),
    _ENDS,
    {"alpha": _ALPHA, "share": 1 / _ALPHA},
)

ABSOLUTE = Specimen(
    "an absolute value between two convolutions, as the folds of a triangle wave have it",
    _graph("bent = Abs (h)\n", "bent"),
    _ENDS,
)

ABSOLUTE_AS_LEAKY = Specimen(
    "the same as a LeakyRelu of slope -1, which stays on the NPU",
    _graph("bent = LeakyRelu <alpha = -1.0> (h)\n", "bent"),
    _ENDS,
)

HEADS, HEAD_CHANNELS, POSITIONS, REACH = 2, 96, 128, 4
"""Of the text encoder of a Piper voice, in the narrower of its two engines: nine distances count."""

_DISTANCES = 2 * POSITIONS - 1
_ALONG = f"1,{HEADS},{POSITIONS},{HEAD_CHANNELS}"


def _embeddings(seed: int) -> NDArray[np.float64]:
    """One row for each distance, [1, 1, 2N - 1, D]: random within reach, else zero."""
    rows = np.random.default_rng(seed).standard_normal((2 * REACH + 1, HEAD_CHANNELS)) / np.sqrt(HEAD_CHANNELS)
    beyond = POSITIONS - REACH - 1
    return np.pad(rows, [(beyond, beyond), (0, 0)])[None, None]


RELATIVE = Specimen(
    "relative attention of VITS's text encoder (Piper: 2 heads of 96, here 128 tokens)",
    f"specimen (float[{_ALONG}] q, float[{_ALONG}] k, float[{_ALONG}] v) => (float[{_ALONG}] y) {{\n"
    "queries = Mul (q, scale)\n"
    "turned = Transpose <perm = [0, 1, 3, 2]> (k)\n"
    "content = MatMul (queries, turned)\n"
    "logits = MatMul (queries, keys)\n"
    "wider = Pad (logits, one_behind)\n"
    "flat = Reshape (wider, flat_logits)\n"
    "longer = Pad (flat, rows_behind)\n"
    "rows = Reshape (longer, logit_rows)\n"
    "shifted = Slice (rows, logit_starts, logit_ends, two_axes)\n"
    "scores = Add (content, shifted)\n"
    "weights = Softmax <axis = -1> (scores)\n"
    "mixed = MatMul (weights, v)\n"
    "spread = Pad (weights, columns_behind)\n"
    "flat_spread = Reshape (spread, flat_weights)\n"
    "moved = Pad (flat_spread, rows_ahead)\n"
    "moved_rows = Reshape (moved, weight_rows)\n"
    "distances = Slice (moved_rows, weight_starts, weight_ends, last_axis)\n"
    "relative = MatMul (distances, values)\n"
    "y = Add (mixed, relative)\n}",
    {},
    {
        "scale": HEAD_CHANNELS**-0.5,
        "keys": _embeddings(SEED).swapaxes(-1, -2),
        "values": _embeddings(SEED + 1),
        "one_behind": [0, 0, 0, 0, 0, 0, 0, 1],
        "flat_logits": [1, HEADS, 2 * POSITIONS**2],
        "rows_behind": [0, 0, 0, 0, 0, POSITIONS - 1],
        "logit_rows": [1, HEADS, POSITIONS + 1, _DISTANCES],
        "logit_starts": [0, POSITIONS - 1],
        "logit_ends": [POSITIONS, _DISTANCES],
        "two_axes": [2, 3],
        "columns_behind": [0, 0, 0, 0, 0, 0, 0, POSITIONS - 1],
        "flat_weights": [1, HEADS, POSITIONS * _DISTANCES],
        "rows_ahead": [0, 0, POSITIONS, 0, 0, 0],
        "weight_rows": [1, HEADS, POSITIONS, 2 * POSITIONS],
        "weight_starts": [1],
        "weight_ends": [2 * POSITIONS],
        "last_axis": [3],
    },
)

HOP = 8
"""Of the upsampling in the mask's specimen: Piper's first."""

MASKED_FRAMES, _HALF = 93, CHANNELS // 2


def decoder_mask(frames: int) -> Specimen:
    """The specimen of the decoder's mask, of so many frames."""
    return Specimen(
        "a HiFi-GAN's first upsampling, masked so that a short utterance ends where it ends (Piper, window 93)",
        f"specimen (float[1,{CHANNELS},{frames}] x, float[1,1,{frames}] mask)"
        f" => (float[1,{_HALF},{HOP * frames}] y) {{\n"
        "kept = Mul (x, mask)\n"
        "[before] h = Conv <kernel_shape = [7], pads = [3, 3]> (kept, w_before, b_before)\n"
        "bent = LeakyRelu <alpha = 0.1> (h)\n"
        f"up = ConvTranspose <kernel_shape = [16], strides = [{HOP}], pads = [4, 4]> (bent, w_up)\n"
        "[behind] y = Conv <kernel_shape = [3], pads = [1, 1]> (up, w_behind, b_behind)\n}",
        {
            "w_before": (CHANNELS, CHANNELS, 7),
            "w_up": (CHANNELS, _HALF, 2 * HOP),
            "w_behind": (_HALF, _HALF, 3),
        },
        {"b_before": np.linspace(-0.5, 0.5, CHANNELS), "b_behind": np.linspace(-0.5, 0.5, _HALF)},
    )


PLACED_STEPS, SPARED_STEPS = 1712, 80
"""Of a Piper decoder of 256 frames behind its first upsampling, and what a crop takes off either side."""

PLACES = 3
"""Where a window stands in its utterance: at the beginning, between others, at the end."""

_KEPT_STEPS = PLACED_STEPS - 2 * SPARED_STEPS


def _placed(body: str, constants: Mapping[str, object]) -> Specimen:
    return Specimen(
        "the context of a decoder's window, dropped behind the first upsampling (Piper, window 256)",
        f"specimen (float[1,{CHANNELS},{PLACED_STEPS}] x, float[1,{PLACES},1,1] place)"
        f" => (float[1,{CHANNELS},{_KEPT_STEPS}] y) {{\n{_BEFORE}{body}{_BEHIND.format(value='kept')}}}",
        _ENDS,
        {"axis": [2], **constants},
    )


PLACED = _placed("kept = Slice (h, start, end, axis)\n", {"start": [SPARED_STEPS], "end": [SPARED_STEPS + _KEPT_STEPS]})
"""Between two windows: the steps in the middle."""

PLACED_AS_SUM = _placed(
    "".join(
        f"picked{n} = Conv <kernel_shape = [1, 1]> (place, pick{n})\n"
        f"share{n} = Reshape (picked{n}, share_sizes)\n"
        f"part{n} = Slice (h, start{n}, end{n}, axis)\n"
        f"chosen{n} = Mul (part{n}, share{n})\n"
        for n in range(PLACES)
    )
    + "begin_or_between = Add (chosen0, chosen1)\nkept = Add (begin_or_between, chosen2)\n",
    {
        "share_sizes": [1, CHANNELS, 1],
        **{f"pick{n}": np.tile(np.eye(PLACES)[n].reshape(1, PLACES, 1, 1), (CHANNELS, 1, 1, 1)) for n in range(PLACES)},
        **{f"start{n}": [n * SPARED_STEPS] for n in range(PLACES)},
        **{f"end{n}": [n * SPARED_STEPS + _KEPT_STEPS] for n in range(PLACES)},
    },
)
"""As `surgery.trim_decoder` writes it."""
