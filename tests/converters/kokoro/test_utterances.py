from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from contracts.errors import Refusal
from converters.kokoro.utterances import CAT, YES, Utterance, speak, speak_long
from converters.kokoro.voices import Voices
from models.kokoro.config import KokoroConfig
from tests.kokoro_writer.speaking import SPEAKING

RATE = 6
"""Columns a frame, of the small one."""

SIGNS = dict.fromkeys(CAT, 1)


def voices(width: int = 2 * SPEAKING.style_dim, vocabulary: dict[str, int] | None = None) -> Voices:
    styles = np.arange(10, dtype=np.float32).reshape(10, 1, 1) * np.ones((1, 1, width), np.float32)
    return Voices({"one": styles}, vocabulary or SIGNS)


@dataclass
class Host:
    """Speaks `each` frames a token; columns and frames count up."""

    each: float
    fed: list[Mapping[str, NDArray[Any]]] = field(default_factory=list)

    def __call__(self, feed: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        self.fed.append(feed)
        frames = int(self.each * feed["tokens"].shape[1])
        return {
            "x": np.arange(frames, dtype=np.float32)[None, None],
            "har": np.arange(RATE * frames + 1, dtype=np.float32)[None, None],
            "style": feed["voice_style"][:, : SPEAKING.style_dim],
            "durations": np.ones_like(feed["tokens"]),
        }


def counted(frames: int) -> Utterance:
    x, har = (np.arange(count, dtype=np.float32)[None, None] for count in (frames, RATE * frames + 1))
    return Utterance("counted", x, har, np.zeros((1, 4), np.float32))


@pytest.mark.parametrize(("start", "frames"), [(0, 5), (2, 3), (4, 1), (1, 2)])
def test_part_has_the_columns_of_its_frames_and_the_closing_one(start: int, frames: int) -> None:
    part = counted(5).part(start, frames)
    assert part.frames == frames
    assert part.x[0, 0].tolist() == list(range(start, start + frames))
    assert part.har[0, 0].tolist() == list(range(RATE * start, RATE * (start + frames) + 1))
    assert (part.seam[0] is part.x, part.name) == (True, "counted")


def test_part_of_a_part_is_the_part_of_the_whole() -> None:
    whole = counted(9)
    np.testing.assert_array_equal(whole.part(2, 6).part(1, 3).har, whole.part(3, 3).har)


def test_speak_feeds_the_host_what_it_takes() -> None:
    host = Host(2)
    said = speak(host, voices(), SPEAKING, "thanks", "one", "naɯ")
    (fed,) = host.fed
    assert fed["tokens"].tolist() == [[0, 1, 1, 1, 0]]
    assert fed["voice_style"].tolist() == [[2.0] * 8]  # the style for three phonemes
    assert fed["speed"].tolist() == [1.0]
    # Twice max_dur frames a token, hop 30 (3 x 2 columns of 5 samples), nine tones.
    assert fed["noise_source"].shape == (1, 2 * 5 * 5 * 30, 9)
    assert abs(float(fed["noise_source"].std()) - 1) < 0.02
    assert (said.name, said.frames, said.style.shape) == ("thanks", 10, (1, 4))


def test_speak_draws_the_same_noise_each_time() -> None:
    host = Host(2)
    for _ in range(2):
        speak(host, voices(), SPEAKING, "", "one", YES)
    np.testing.assert_array_equal(host.fed[0]["noise_source"], host.fed[1]["noise_source"])


def test_speak_refuses_voices_of_another_width() -> None:
    told = (
        r"^The voice one has a style of 256 numbers, this checkpoint needs 8: it is no checkpoint for these voices\.$"
    )
    with pytest.raises(Refusal, match=told):
        speak(Host(2), voices(256), SPEAKING, "", "one", YES)


def test_speak_refuses_a_vocabulary_of_more_tokens() -> None:
    told = r"^The voices' vocabulary goes up to token 10, this checkpoint has 10: it is no checkpoint for these voices"
    with pytest.raises(Refusal, match=told):
        speak(Host(2), voices(vocabulary={"a": 10}), SPEAKING, "", "one", YES)


def test_speak_long_says_it_once_when_that_is_enough() -> None:
    host, length = Host(2), len(CAT) + 2
    assert speak_long(host, voices(), SPEAKING, "", "one", 2 * length).frames == 2 * length
    assert len(host.fed) == 1


@pytest.mark.parametrize("times", [2, 3])
def test_speak_long_says_it_as_often_as_it_takes(times: int) -> None:
    host = Host(1)
    said = speak_long(host, voices(), SPEAKING, "", "one", times * (len(CAT) + 2) - 5)
    assert host.fed[-1]["tokens"].shape == (1, times * len(CAT) + times - 1 + 2)
    assert said.frames == times * len(CAT) + times + 1


def positions(count: int) -> KokoroConfig:
    return replace(SPEAKING, plbert=replace(SPEAKING.plbert, max_position_embeddings=count))


@pytest.mark.parametrize(("room", "times"), [(2 * len(CAT) + 1, 2), (2 * len(CAT), 1), (len(CAT), 1)])
def test_speak_long_fits_the_text_models_positions(room: int, times: int) -> None:
    """Twice is a blank longer than two; the boundaries take two positions."""
    host = Host(1)
    with pytest.raises(Refusal, match=r"No sentence of this checkpoint is as long .* a narrower --window needs less"):
        speak_long(host, voices(), positions(room + 2), "", "one", 100 * len(CAT))
    assert host.fed[-1]["tokens"].shape[1] == times * len(CAT) + times - 1 + 2 <= room + 2
