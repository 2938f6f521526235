"""Noise of a Piper voice's host half: every input, sentence and seed has its own, by their definition."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rknn_tts_runtime.backends.host_session import HostTensor
from rknn_tts_runtime.speaking.piper_host import Sentence, host_feed, latent_noise
from rknn_tts_runtime.speaking.piper_voice import InputNames, PiperVoice

VOICE = PiperVoice(
    where=Path("host.onnx"),
    sample_rate=22050,
    hop=256,
    symbols=9,
    speakers=3,
    speaker_ids={},
    scales=(0.6, 1.0, 0.8),
    inputs=InputNames("input", "input_lengths", "scales", "sid", None),
    phoneme_type=None,
    espeak_voice=None,
    vowel_clusters=(),
    table={},
    begin=(),
    pad=(),
    end=(),
)
SENTENCE = Sentence(ids=(1, 0, 2), scales=(0.5, 1.25, 0.0), speaker=2, seed=7, place=0)


class Host:
    """A host half that is no more than its inputs."""

    inputs = (
        HostTensor("input", (1, None), "int64"),
        HostTensor("input_lengths", (1,), "int64"),
        HostTensor("scales", (3,), "float32"),
        HostTensor("sid", (1,), "int64"),
        HostTensor("prosody_features", (None, None, 3), "int64"),
        HostTensor("noise_duration", (1, None, None), "float32"),
        HostTensor("noise_pitch", (1, None, None), "float32"),
        HostTensor("noise_latent", (1, 4, None), "float32"),
    )


def firsts(sentence: Sentence) -> list[float]:
    """The number that each of the three noises of `sentence` begins with: what its seed draws first."""
    feed = host_feed(Host(), VOICE, sentence)  # type: ignore[arg-type]
    latent = latent_noise(Host(), sentence, 4).of(2)["noise_latent"]  # type: ignore[arg-type]
    return [float(array[0, 0, 0]) for array in (feed["noise_duration"], feed["noise_pitch"], latent)]


def test_host_half_takes_what_the_sentence_has_and_zeros_besides() -> None:
    feed = host_feed(Host(), VOICE, SENTENCE)  # type: ignore[arg-type]
    assert set(feed) == {info.name for info in Host.inputs} - {"noise_latent"}
    told = {name: array.tolist() for name, array in feed.items() if not name.startswith("noise")}
    assert told == {
        "input": [[1, 0, 2]],
        "input_lengths": [3],
        "scales": [0.5, 1.25, 0.0],
        "sid": [2],
        "prosody_features": [[[0, 0, 0]] * 3],
    }
    assert feed["noise_duration"].dtype == np.float32


@pytest.mark.parametrize("other", [replace(SENTENCE, place=1), replace(SENTENCE, seed=8)])
def test_every_noise_of_every_sentence_and_seed_is_another(other: Sentence) -> None:
    assert len({*firsts(SENTENCE), *firsts(other)}) == 6
    assert firsts(SENTENCE) == firsts(replace(SENTENCE, speaker=0))
