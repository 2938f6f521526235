"""What a user hears of an engine: a sentence, whose spectrogram the engine gives window by window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from rknn_tts_runtime import istft

from converters.kokoro import evidence
from converters.kokoro.decoding import decode_by
from converters.kokoro.evidence import feed_of, padded_feed_of, windows_of
from converters.kokoro.geometry import FULL
from converters.kokoro.opening import Opening
from converters.kokoro.utterances import FloatArray, Utterance
from converters.stages import Array, Sample
from models.kokoro.config import SAMPLE_RATE
from models.kokoro.generator_graph import SPECTROGRAM
from models.kokoro.runs import run


def sample_of(opening: Opening, said: Utterance, role: str) -> Sample:
    """What a user hears: `said`, whose spectrogram an engine gives window by window."""
    geometry = opening.geometry
    original = decode_by(opening.original, geometry)
    windows = windows_of(said, geometry) if role == FULL else [said]
    width = geometry.window.frames
    feeds = [feed_of(part) if role == FULL else padded_feed_of(part, width, opening.sizes) for part in windows]

    def samples(spectrogram: FloatArray) -> FloatArray:
        return istft(spectrogram, opening.sizes.gen_istft_n_fft, opening.sizes.gen_istft_hop_size)

    def render(outputs: Sequence[Mapping[str, Array]]) -> FloatArray:
        shape = (1, 2 * opening.sizes.bins, -1)
        following = iter([np.asarray(output[SPECTROGRAM], np.float32).reshape(shape) for output in outputs])
        return samples(evidence.walk(lambda x, har, valid: next(following), said, geometry))

    return Sample(
        said=f"the sentence {said.name}, {said.frames} frames",
        feeds=tuple(feeds),
        render=render,
        whole=samples(run(opening.original, said.seam)),
        windowed=samples(evidence.decoded_by_windows(original, said, geometry) if role == FULL else original(said)),
        sample_rate=SAMPLE_RATE,
    )
