"""What host halves tell of their voices, against the JSON that the writer put beside the voice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx_ir as ir
import pytest

from converters.piper.duration_host import duration_parts
from converters.piper.host_half import host_half
from converters.piper.voice import Voice, open_voice
from converters.piper.voice_metadata import voice_metadata
from tests.converters.duration_voices import ATTENTIVE
from tests.converters.voices import opened, save
from tests.vits_writer.recipe import ALPHABET, Recipe
from tests.vits_writer.voice import voice_json, voice_model, write_voice

KEY = "rknn-tts/voice/1"


def told(voice: Voice) -> dict[str, Any]:
    data = json.loads(voice_metadata(voice))
    assert isinstance(data, dict)
    return data


def test_host_half_tells_what_the_voices_json_says(tmp_path: Path) -> None:
    voice = opened(tmp_path, Recipe(speakers=2, sample_rate=22050))
    assert json.loads(host_half(voice).metadata_props[KEY]) == {
        "family": "piper",
        "sample_rate": 22050,
        "hop_length": 16,
        "num_symbols": len(ALPHABET),
        "num_speakers": 2,
        "speaker_id_map": {"speaker_0": 0, "speaker_1": 1},
        "inference": {"noise_scale": 0.667, "length_scale": 1.0, "noise_w": 0.8},
        "inputs": {"ids": "input", "lengths": "input_lengths", "scales": "scales", "speaker": "sid", "language": None},
        "phoneme_type": "espeak",
        "espeak_voice": "en-us",
        "vowel_clusters": [],
        "phoneme_id_map": {symbol: [number] for number, symbol in enumerate(ALPHABET)},
        "frame": {"begin": [1], "pad": [0], "end": [2]},
    }


def test_both_host_halves_tell_the_same_and_no_other_part_tells_it(tmp_path: Path) -> None:
    voice = opened(tmp_path, ATTENTIVE)
    parts = duration_parts(voice)
    assert parts.host.metadata_props[KEY] == host_half(voice).metadata_props[KEY]
    assert KEY not in parts.encoder.metadata_props
    assert KEY not in voice.model.metadata_props


def test_it_is_in_the_file(tmp_path: Path) -> None:
    voice = opened(tmp_path)
    ir.save(host_half(voice), tmp_path / "host.onnx")
    assert ir.load(tmp_path / "host.onnx").metadata_props[KEY] == voice_metadata(voice)


def test_a_voice_without_json_tells_of_ids_only(tmp_path: Path) -> None:
    data = told(open_voice(save(tmp_path / "voice.onnx", voice_model(Recipe()))))
    assert (data["sample_rate"], data["phoneme_type"], data["phoneme_id_map"]) == (None, None, {})
    assert data["frame"] == {"begin": [], "pad": [0], "end": []}
    assert data["num_symbols"] == len(ALPHABET)


def test_a_symbol_that_is_no_text_keeps_no_host_half_from_being_written(tmp_path: Path) -> None:
    stray = {**voice_json()["phoneme_id_map"], "\ud800": [3]}  # half of a pair, as JSON can state it
    path = write_voice(tmp_path / "voice.onnx")
    path.with_name("voice.onnx.json").write_text(json.dumps({**voice_json(), "phoneme_id_map": stray}))
    ir.save(host_half(open_voice(path)), tmp_path / "host.onnx")
    assert json.loads(ir.load(tmp_path / "host.onnx").metadata_props[KEY])["phoneme_id_map"] == stray


@pytest.mark.parametrize(
    ("changes", "key", "wanted"),
    [
        ({"phoneme_type": "text"}, "phoneme_type", "text"),
        ({"espeak": {"voice": "de"}}, "espeak_voice", "de"),
        ({"vowel_clusters": [["a", "ɪ"]]}, "vowel_clusters", [["a", "ɪ"]]),
        (
            {"inference": {"noise_scale": 0.5, "length_scale": 1.25, "noise_w": 0}},
            "inference",
            {"noise_scale": 0.5, "length_scale": 1.25, "noise_w": 0.0},
        ),
    ],
)
def test_it_tells_what_the_json_states(tmp_path: Path, changes: dict[str, Any], key: str, wanted: object) -> None:
    voice = open_voice(write_voice(tmp_path / "voice.onnx", config={**voice_json(), **changes}))
    assert told(voice)[key] == wanted


def test_a_language_of_its_own_is_named(tmp_path: Path) -> None:
    inputs = told(opened(tmp_path, Recipe(languages=2, speakers=2)))["inputs"]
    assert (inputs["speaker"], inputs["language"]) == ("sid", "lid")
