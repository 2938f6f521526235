"""Features of speech for a speaker encoder of a fixed length.

An encoder that takes means over all its frames cannot have padding among them. So longer speech is cropped to its
first frames, shorter speech is said again from its start, and the mean over time goes last, as it is of what is kept:

    features [N, F] -> rows n mod N for n = 0 .. frames - 1 -> less their mean over rows -> [1, 1, F, frames]

The features are 80 log mel energies of 16 kHz speech a frame by Kaldi's recipe (frames of 25 ms, 10 ms apart, no
dither), which CosyVoice computes by `torchaudio.compliance.kaldi.fbank`.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rknn_tts_runtime.windows import FloatArray


def speaker_window(features: npt.NDArray[np.floating[Any]], frames: int) -> FloatArray:
    """What an engine for `frames` frames takes of `features` [N, F], float32 [1, 1, F, frames].

    Raises:
        ValueError: the features are no matrix, or there are none; or `frames` is below 1.
    """
    if features.ndim != 2 or not features.size or frames < 1:
        raise ValueError(f"features [N, F] and a number of frames are expected, not {list(features.shape)}, {frames}")
    kept = features[np.arange(frames) % len(features)].astype(np.float64)
    centred = kept - kept.mean(axis=0)
    return np.ascontiguousarray(centred.T, dtype=np.float32)[None, None]
