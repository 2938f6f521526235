"""Texts, phonemes and ids as a voice's ids, against Piper's rule by hand, and against the toolchain's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.speaking.phonemiser import piper_phonemes
from rknn_tts_runtime.speaking.piper_text import said_by, spelled
from rknn_tts_runtime.speaking.piper_voice import PiperVoice, read_voice
from rknn_tts_runtime.speaking.speaker import Asked

from converters.piper.phonemes import spoken_ids
from converters.piper.voice import open_voice
from converters.piper.voice_metadata import voice_metadata
from converters.stages import Sentence
from tests.runtime.speaking.test_voice_keys import KEY, PIPER, WHERE
from tests.vits_writer.voice import voice_json, write_voice

TABLE = {"_": [0], "^": [1], "$": [2], " ": [3], "h": [20], "i": [21], "a": [14], "ɪ": [9], "aɪ": [30, 31]}
TABLE_OF_SIGNS = {**TABLE, "e": [6], "\u0301": [7], "c\u0327": [8]}


def voice_of(**changes: Any) -> PiperVoice:
    return read_voice({KEY: json.dumps({**PIPER, "phoneme_id_map": TABLE_OF_SIGNS, **changes})}, WHERE)


def not_asked(voice: str, clusters: Any, text: str) -> list[list[str]]:
    pytest.fail("the phonemiser was asked")


@pytest.mark.parametrize(
    ("phonemes", "ids"),
    [
        ("hi", (1, 0, 20, 0, 21, 0, 2)),
        ("haɪ", (1, 0, 20, 0, 30, 31, 0, 2)),  # the longest symbol that fits
        ("haiɪ", (1, 0, 20, 0, 14, 0, 21, 0, 9, 0, 2)),
        ("h i", (1, 0, 20, 0, 3, 0, 21, 0, 2)),
        ("é", (1, 0, 6, 0, 7, 0, 2)),  # one character here, two in the table
        ("ç", (1, 0, 8, 0, 2)),
    ],
)
def test_phonemes_become_the_ids_of_one_sentence(phonemes: str, ids: tuple[int, ...]) -> None:
    assert said_by(voice_of(), Asked(phonemes=phonemes), not_asked) == ((ids,), ())


def test_phonemes_that_the_voice_has_no_id_for_are_refused_by_name() -> None:
    with pytest.raises(BadInput, match=r"piper-host\.onnx has no id for 'ʉ', 'x'; leave it out"):
        said_by(voice_of(), Asked(phonemes="hʉxʉ"), not_asked)


def test_spelled_takes_what_fits_nothing_alone() -> None:
    assert spelled(TABLE, "aɪxaa") == ["aɪ", "x", "a", "a"]
    assert spelled({}, "ab") == ["a", "b"]


def test_ids_are_taken_as_they_are() -> None:
    assert said_by(voice_of(), Asked(ids=(1, 39, 0)), not_asked).sentences == ((1, 39, 0),)


def test_text_of_characters_is_read_without_a_phonemiser() -> None:
    said = said_by(voice_of(phoneme_type="text"), Asked(text="hé"), not_asked)
    assert said.sentences == ((1, 0, 20, 0, 6, 0, 7, 0, 2),)


@pytest.mark.parametrize(
    ("changes", "asked", "says"),
    [
        ({"phoneme_type": "pinyin"}, Asked(text="hi"), "'pinyin', and texts are read for espeak and text only"),
        ({"espeak_voice": None}, Asked(text="hi"), "does not say in which language"),
        ({"phoneme_id_map": {}}, Asked(text="hi"), "--text: .* came without a phoneme_id_map"),
        ({"phoneme_id_map": {}}, Asked(phonemes="hi"), "--phonemes: .* came without a phoneme_id_map"),
        ({"phoneme_type": "text"}, Asked(text="ʉx"), r"has an id for nothing in it \('ʉ', 'x'\)"),
        ({}, Asked(ids=(40,)), "40 is no id .* from 0 to 39"),
        ({}, Asked(phonemes="h" * 1100), "2048 ids, and this has 2203"),
    ],
)
def test_what_cannot_be_said_is_refused(changes: dict[str, Any], asked: Asked, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        said_by(voice_of(**changes), asked, not_asked)


def test_a_text_has_the_same_ids_on_a_board_and_in_a_sample(tmp_path: Path) -> None:
    """With Piper's own phonemiser, whose phonemes of this are known: hˈaɪ. and jˈɛs!"""
    table = {symbol: [number] for number, symbol in enumerate(["_", "^", "$", ".", "h", "ˈ", "aɪ", "j", "ɛ", "s"])}
    config = {**voice_json(), "phoneme_id_map": table, "vowel_clusters": [["a", "ɪ"]]}
    voice = open_voice(write_voice(tmp_path / "voice.onnx", config=config))
    said = said_by(read_voice({KEY: voice_metadata(voice)}, WHERE), Asked(text="Hi. Yes!"), piper_phonemes)
    hi, yes = (1, 0, 4, 0, 5, 0, 6, 0, 3, 0, 2), (1, 0, 7, 0, 5, 0, 8, 0, 9, 0, 2)
    assert said == ((hi, yes), ("The voice in piper-host.onnx has no id for '!': left out of what is said.",))
    sample = spoken_ids(voice, Sentence("Hi. Yes!"), lambda: None)
    assert sample.ids == hi + yes
    assert sample.notes == ("The voice in voice.onnx.json has no id for '!': left out of what is said.",)
