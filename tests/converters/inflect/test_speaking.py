from __future__ import annotations

import re

import numpy as np
import pytest

from contracts.contract import Window
from contracts.errors import UserInput
from converters.inflect.speaking import read_sentence, sample_of
from converters.inflect.voice import decoder_cut, watched_decode
from converters.stages import Sentence
from converters.vits_ladder import DecoderWindow
from converters.vits_sample import SampleRung
from tests.converters.inflect.releases import graphs
from tests.converters.inflect.test_voice import opened
from tests.onnx_runs import open_session, snr_db


def nothing() -> None:
    raise AssertionError("nothing has to be added")


@pytest.mark.parametrize(
    ("sentence", "told"),
    [
        (Sentence(text="hello"), "--text: what makes ids of a text is part of the Inflect release"),
        (Sentence(ids=(0, 19, 20)), "--ids: 20 is no symbol of this model, whose ids go from 0 to 19"),
        (Sentence(ids=()), "--ids: there is nothing to speak in it"),
        (Sentence(ids=(3,) * 2049), "--ids: a sample speaks up to 2048 ids, and these are 2049"),
    ],
)
def test_read_sentence_says_what_cannot_be_spoken(sentence: Sentence, told: str) -> None:
    with pytest.raises(UserInput, match=re.escape(told)):
        read_sentence(opened(), sentence, nothing)


def test_read_sentence_takes_ids_and_nothing_at_all() -> None:
    for sentence in (Sentence(ids=(0, 19)), Sentence()):
        assert read_sentence(opened(), sentence, nothing) == sentence


@pytest.mark.parametrize("sentence", [Sentence(), Sentence(ids=(0, 3, 0, 7, 0))])
def test_sample_of_is_put_together_again_from_what_an_engine_gives(sentence: Sentence) -> None:
    voice = opened()
    cut = open_session(decoder_cut(voice))
    made = DecoderWindow(Window(72, 8, 32, 32, 8, 24_000), masked=False, trim=None, takes_short=True)
    sessions = open_session(graphs()[0]), open_session(watched_decode(voice))
    sample = sample_of(voice, *sessions, {"": SampleRung(made, cut, 1.0)}, sentence)
    frames = sample.whole.size // 8
    assert f", {frames} frames" in sample.said
    assert sample.said.endswith("(less than a window, so padded to 72)") is (frames < 72)
    assert sample.sample_rate == 24_000
    assert all(feed["z"].shape == (1, 8, 72) for feed in sample.feeds)
    rendered = sample.render([{"audio": cut(feed)["audio"]} for feed in sample.feeds])
    np.testing.assert_array_equal(rendered, sample.windowed)
    assert len(sample.feeds) == max(1, -(-(frames - 64) // 8))  # each emits 8 frames, the first and last 32 more
    if frames >= 72:
        assert snr_db(sample.whole, sample.windowed) >= 60.0
