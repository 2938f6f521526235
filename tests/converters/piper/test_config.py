from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from contracts.errors import UserInput
from converters.piper.config import VoiceConfig, config_path, read_config


def written(folder: Path, data: Any) -> Path:
    voice = folder / "voice.onnx"
    text = data if isinstance(data, str) else json.dumps(data)
    config_path(voice).write_text(text, encoding="utf-8")
    return voice


def test_config_path_adds_to_the_whole_name() -> None:
    assert config_path(Path("a/en_US-joe-medium.onnx")) == Path("a/en_US-joe-medium.onnx.json")


def test_read_config_states_nothing_when_there_is_no_file(tmp_path: Path) -> None:
    config = read_config(tmp_path / "voice.onnx")
    assert config == VoiceConfig(None, None, None, None, {}, (0.667, 1.0, 0.8))


def test_read_config_reads_what_piper_writes(tmp_path: Path) -> None:
    data = {
        "audio": {"sample_rate": 22050, "quality": "medium"},
        "inference": {"noise_scale": 0.5, "length_scale": 1, "noise_w": 0.25},
        "phoneme_id_map": {"_": [0], "^": [1], "ø": [42, 43]},
        "num_symbols": 256,
        "num_speakers": 1,
    }
    wanted = VoiceConfig(22050, None, 256, 1, {"_": (0,), "^": (1,), "ø": (42, 43)}, (0.5, 1.0, 0.25))
    assert read_config(written(tmp_path, data)) == wanted


@pytest.mark.parametrize("data", [{"hop_length": 256}, {"audio": {"hop_length": 256}}])
def test_read_config_finds_the_hop_in_both_places(tmp_path: Path, data: dict[str, Any]) -> None:
    assert read_config(written(tmp_path, data)).hop == 256


@pytest.mark.parametrize("data", [{}, {"audio": None, "phoneme_id_map": None, "num_symbols": None}])
def test_read_config_states_nothing_when_keys_are_missing_or_null(tmp_path: Path, data: dict[str, Any]) -> None:
    assert read_config(written(tmp_path, data)) == VoiceConfig()


@pytest.mark.parametrize("text", ["", "{", "not json", '{"a": 1,}', "\x00"])
def test_read_config_names_the_file_when_it_is_no_json(tmp_path: Path, text: str) -> None:
    with pytest.raises(UserInput, match=r"voice\.onnx\.json: is not readable JSON"):
        read_config(written(tmp_path, text))


def test_read_config_names_the_file_when_it_is_no_utf8(tmp_path: Path) -> None:
    voice = tmp_path / "voice.onnx"
    config_path(voice).write_bytes(b'{"a": "\xff\xfe"}')
    with pytest.raises(UserInput, match=r"voice\.onnx\.json: is not readable JSON"):
        read_config(voice)


@pytest.mark.parametrize("data", [[], 3, "text", None, True])
def test_read_config_expects_an_object(tmp_path: Path, data: Any) -> None:
    with pytest.raises(UserInput, match=rf"a JSON object is expected, not {type(data).__name__}"):
        read_config(written(tmp_path, json.dumps(data)))


@pytest.mark.parametrize(
    ("data", "key"),
    [
        ({"audio": [22050]}, "audio"),
        ({"audio": []}, "audio"),
        ({"audio": "22050"}, "audio"),
        ({"inference": 3}, "inference"),
        ({"audio": {"sample_rate": "22050"}}, "sample_rate"),
        ({"audio": {"sample_rate": 22050.5}}, "sample_rate"),
        ({"audio": {"sample_rate": 0}}, "sample_rate"),
        ({"audio": {"sample_rate": -1}}, "sample_rate"),
        ({"audio": {"sample_rate": True}}, "sample_rate"),
        ({"audio": {"hop_length": "256"}}, "hop_length"),
        ({"hop_length": []}, "hop_length"),
        ({"num_symbols": "256"}, "num_symbols"),
        ({"num_symbols": {}}, "num_symbols"),
        ({"num_speakers": 1.5}, "num_speakers"),
        ({"inference": {"noise_scale": "loud"}}, "noise_scale"),
        ({"inference": {"length_scale": None}}, "length_scale"),
        ({"inference": {"length_scale": 0}}, "length_scale"),
        ({"inference": {"length_scale": -1.0}}, "length_scale"),
        ({"inference": {"noise_scale": -0.5}}, "noise_scale"),
        ({"inference": {"noise_w": False}}, "noise_w"),
        ('{"inference": {"noise_scale": NaN}}', "noise_scale"),
        ('{"inference": {"length_scale": Infinity}}', "length_scale"),
        ({"speaker_id_map": ["ann"]}, "speaker_id_map"),
        ({"speaker_id_map": {"ann": "0"}}, "speaker_id_map"),
        ({"speaker_id_map": {"ann": -1}}, "speaker_id_map"),
        ({"speaker_id_map": {"ann": True}}, "speaker_id_map"),
        ({"phoneme_id_map": [1]}, "phoneme_id_map"),
        ({"phoneme_id_map": {"a": 3}}, "phoneme_id_map"),
        ({"phoneme_id_map": {"a": ["3"]}}, "phoneme_id_map"),
        ({"phoneme_id_map": {"a": [-1]}}, "phoneme_id_map"),
        ({"phoneme_id_map": {"a": [1.0]}}, "phoneme_id_map"),
        ({"phoneme_id_map": {"a": [True]}}, "phoneme_id_map"),
        ({"phoneme_id_map": {"a": [], "b": []}}, "phoneme_id_map"),
        ({"phoneme_type": 3}, "phoneme_type"),
        ({"espeak": "de"}, "espeak"),
        ({"espeak": {"voice": ["de"]}}, "voice"),
        ({"vowel_clusters": "aɪ"}, "vowel_clusters"),
        ({"vowel_clusters": ["aɪ"]}, "vowel_clusters"),
        ({"vowel_clusters": [["a", 3]]}, "vowel_clusters"),
    ],
)
def test_read_config_names_file_and_key_when_a_value_is_of_the_wrong_kind(
    tmp_path: Path, data: dict[str, Any] | str, key: str
) -> None:
    with pytest.raises(UserInput, match=key) as caught:
        read_config(written(tmp_path, data))
    assert "voice.onnx.json" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_read_config_reads_how_a_text_becomes_phonemes(tmp_path: Path) -> None:
    data = {"phoneme_type": "text", "espeak": {"voice": "de"}, "vowel_clusters": [["a", "ɪ"], ["o", "ʊ"]]}
    config = read_config(written(tmp_path, data))
    assert (config.phoneme_type, config.espeak_voice) == ("text", "de")
    assert config.vowel_clusters == (("a", "ɪ"), ("o", "ʊ"))


@pytest.mark.parametrize("data", [{}, {"phoneme_type": None, "espeak": {}, "vowel_clusters": None}])
def test_read_config_takes_espeak_for_what_it_does_not_state(tmp_path: Path, data: dict[str, Any]) -> None:
    assert read_config(written(tmp_path, data)).phoneme_type == "espeak"  # Piper's own default


def test_read_config_reads_the_names_of_speakers(tmp_path: Path) -> None:
    config = read_config(written(tmp_path, {"num_speakers": 2, "speaker_id_map": {"ann": 0, "ben": 1}}))
    assert (config.speakers, config.speaker_ids) == (2, {"ann": 0, "ben": 1})


def test_read_config_takes_zero_noise(tmp_path: Path) -> None:
    voice = written(tmp_path, {"inference": {"noise_scale": 0, "noise_w": 0.0}})
    assert read_config(voice).scales == (0.0, 1.0, 0.0)


def test_read_config_has_no_symbols_of_those_without_ids(tmp_path: Path) -> None:
    data = {"phoneme_id_map": {"_": [0], "a": [], "b": [4, 5]}}
    assert read_config(written(tmp_path, json.dumps(data))).phoneme_ids == {"_": (0,), "b": (4, 5)}
