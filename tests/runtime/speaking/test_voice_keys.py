"""What is believed of a host half's metadata, and what is refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.speaking.inflect import read_inflect
from rknn_tts_runtime.speaking.piper_voice import read_voice

KEY = "rknn-tts/voice/1"
WHERE = Path("piper-host.onnx")

PIPER: dict[str, Any] = {
    "family": "piper",
    "sample_rate": 22050,
    "hop_length": 256,
    "num_symbols": 40,
    "num_speakers": 2,
    "speaker_id_map": {"anna": 0, "bo": 1},
    "inference": {"noise_scale": 0.5, "length_scale": 1.25, "noise_w": 0},
    "inputs": {"ids": "input", "lengths": "input_lengths", "scales": "scales", "speaker": "sid", "language": None},
    "phoneme_type": "espeak",
    "espeak_voice": "en-us",
    "vowel_clusters": [["a", "ɪ"]],
    "phoneme_id_map": {"_": [0], "^": [1], "$": [2], "a": [14], "aɪ": [15, 16]},
    "frame": {"begin": [1], "pad": [0], "end": [2]},
    "newer": "is left alone",
}


def told(**changes: Any) -> dict[str, str]:
    return {KEY: json.dumps({**PIPER, **changes})}


def test_read_voice_reads_what_is_told() -> None:
    voice = read_voice(told(), WHERE)
    assert (voice.sample_rate, voice.hop, voice.symbols, voice.speakers) == (22050, 256, 40, 2)
    assert voice.scales == (0.5, 1.25, 0.0)
    assert (voice.inputs.ids, voice.inputs.speaker, voice.inputs.language) == ("input", "sid", None)
    assert (voice.phoneme_type, voice.espeak_voice, voice.vowel_clusters) == ("espeak", "en-us", (("a", "ɪ"),))
    assert voice.table["aɪ"] == (15, 16)
    assert (voice.begin, voice.pad, voice.end) == ((1,), (0,), (2,))
    assert voice.speaker_ids == {"anna": 0, "bo": 1}


def test_read_voice_takes_a_voice_that_states_no_more_than_its_graph() -> None:
    nothing: dict[str, Any] = {"sample_rate": None, "phoneme_type": None, "espeak_voice": None, "phoneme_id_map": {}}
    voice = read_voice(told(**nothing), WHERE)
    assert (voice.sample_rate, voice.phoneme_type, voice.espeak_voice, voice.table) == (None, None, None, {})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"family": "kokoro"}, "is a host half of kokoro, not of piper"),
        ({"num_symbols": 0}, r"num_symbols = 0, expected a whole number from 1 to 1048576"),
        ({"num_symbols": True}, "num_symbols = True"),
        ({"num_symbols": 1 << 40}, "num_symbols = 1099511627776"),
        ({"hop_length": None}, "hop_length = None"),
        ({"sample_rate": "22050"}, "sample_rate = '22050'"),
        ({"inputs": None}, r"inputs = None, expected an object"),
        ({"inputs": {**PIPER["inputs"], "ids": 1}}, r"inputs\.ids = 1, expected a text"),
        ({"inputs": {**PIPER["inputs"], "speaker": ""}}, r"inputs\.speaker = ''"),
        ({"inference": {**PIPER["inference"], "length_scale": 0}}, r"inference\.length_scale = 0, .* from 0\.01"),
        ({"inference": {**PIPER["inference"], "noise_w": float("nan")}}, r"inference\.noise_w = nan"),
        ({"inference": {**PIPER["inference"], "noise_scale": -1}}, r"inference\.noise_scale = -1"),
        ({"inference": {**PIPER["inference"], "noise_scale": 10**400}}, r"inference\.noise_scale = 1000"),
        ({"phoneme_id_map": {"a": [40]}}, r"phoneme_id_map\['a'\] = 40, expected a whole number from 0 to 39"),
        ({"phoneme_id_map": {"a": 4}}, r"phoneme_id_map\['a'\] = 4, expected a list of ids"),
        ({"phoneme_id_map": []}, "phoneme_id_map = "),
        ({"frame": {**PIPER["frame"], "pad": [-1]}}, r"frame\.pad = -1"),
        ({"speaker_id_map": {"c": 2}}, r"speaker_id_map\['c'\] = 2, expected a whole number from 0 to 1"),
        ({"vowel_clusters": ["aɪ"]}, "vowel_clusters = "),
    ],
)
def test_what_is_not_of_its_kind_is_refused_by_name(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=rf"piper-host\.onnx: .*{says}"):
        read_voice(told(**changes), WHERE)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("[1]", "is .*expected an object"),
        (" " * (1 << 20) + " ", "1048577 characters, and 1048576 is the most"),
    ],
)
def test_what_is_no_object_is_refused(text: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        read_voice({KEY: text}, WHERE)


def test_check_speaker_tells_which_there_are() -> None:
    read_voice(told(), WHERE).check_speaker(1)
    with pytest.raises(BadInput, match=r"the speakers 0 to 1 \(anna: 0, bo: 1\)"):
        read_voice(told(), WHERE).check_speaker(2)
    with pytest.raises(BadInput, match="has one speaker; leave the option out"):
        read_voice(told(num_speakers=1, speaker_id_map={}), WHERE).check_speaker(1)


def test_read_inflect_reads_what_is_told() -> None:
    data = {
        "family": "inflect",
        "sample_rate": 24000,
        "hop_length": 256,
        "num_symbols": 178,
        "inference": {"noise_scale": 0.667, "length_scale": 1.0},
        "inputs": {"ids": "tokens", "lengths": "lengths", "length_scale": "length_scale"},
    }
    voice = read_inflect({KEY: json.dumps(data)}, WHERE)
    assert (voice.sample_rate, voice.hop, voice.symbols, voice.noise_scale) == (24000, 256, 178, 0.667)
    assert (voice.ids, voice.lengths, voice.length_scale_name) == ("tokens", "lengths", "length_scale")
    with pytest.raises(BadInput, match="is a host half of piper, not of inflect"):
        read_inflect(told(), WHERE)
