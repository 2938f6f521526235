from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from contracts.errors import UserInput
from converters.qwen3.config import read_config
from models.qwen3.config import TRUE_CONFIG
from tests.qwen3_configs import REDUCED
from tests.qwen3_snapshots import stated


def written(folder: Path, data: object) -> Path:
    path = folder / "config.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return path


def refused(folder: Path, data: object) -> str:
    """The sentence: one line that begins with the file's path and ends with a full stop."""
    path = written(folder, data)
    with pytest.raises(UserInput) as caught:
        read_config(path)
    said = str(caught.value)
    assert said.startswith(f"{path}: ")
    assert said.endswith(".")
    assert "\n" not in said
    return said.removeprefix(f"{path}: ")


def changed(**below: object) -> dict[str, Any]:
    return stated(TRUE_CONFIG, **below)


@pytest.mark.parametrize("config", [TRUE_CONFIG, REDUCED], ids=["true", "reduced"])
def test_read_config_reads_what_a_tokenizer_states(tmp_path: Path, config: Any) -> None:
    found = read_config(written(tmp_path, stated(config)))
    assert found.decoder == config
    assert found.sample_rate == 24000


def test_read_config_takes_options_that_are_not_stated_as_the_published_ones(tmp_path: Path) -> None:
    data = stated(TRUE_CONFIG)
    for key in ("hidden_act", "attention_bias", "num_semantic_quantizers"):
        del data["decoder_config"][key]
    assert read_config(written(tmp_path, data)).decoder == TRUE_CONFIG


def test_read_config_refuses_a_25_hz_tokenizer(tmp_path: Path) -> None:
    """As `Qwen3TTSTokenizerV1Config` writes it: its decoder_config holds a dit_config and a bigvgan_config."""
    data = {"model_type": "qwen3_tts_tokenizer_25hz", "decoder_config": {"dit_config": {}, "bigvgan_config": {}}}
    assert refused(tmp_path, data).startswith("is of the 25 Hz tokenizer (model_type 'qwen3_tts_tokenizer_25hz')")


def test_read_config_refuses_the_whole_models_config(tmp_path: Path) -> None:
    assert "its speech decoder's is speech_tokenizer/config.json" in refused(tmp_path, {"model_type": "qwen3_tts"})


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, "has no model_type, and 'qwen3_tts_tokenizer_12hz' is expected"),
        ({"model_type": "mimi"}, "has the model_type 'mimi', and"),
        ({"model_type": 12}, "has the model_type 12, and"),
        ([], "a JSON object is expected, not list"),
        ("{", "is not readable JSON"),
        ("[" * 5000 + "]" * 5000, "is not readable JSON"),
    ],
    ids=["empty", "another", "number", "list", "damaged", "deep"],
)
def test_read_config_refuses_what_is_no_tokenizers(tmp_path: Path, data: object, said: str) -> None:
    assert refused(tmp_path, data).startswith(said)


def test_read_config_refuses_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserInput, match="there is no such file"):
        read_config(tmp_path / "config.json")


@pytest.mark.parametrize("held", [{}, None, "absent"], ids=["empty", "null", "absent"])
def test_read_config_refuses_a_config_of_class_defaults(tmp_path: Path, held: object) -> None:
    data = changed()
    data["decoder_config"] = held
    if held == "absent":
        del data["decoder_config"]
    said = refused(tmp_path, data)
    assert said.startswith("states no decoder_config, and the class defaults of the package qwen-tts")


def test_read_config_refuses_class_defaults_with_everything_but_codebook_dim(tmp_path: Path) -> None:
    """What `Qwen3TTSTokenizerV2DecoderConfig()` has: it knows no codebook_dim."""
    data = changed(hidden_size=1024, intermediate_size=3072)
    del data["decoder_config"]["codebook_dim"]
    assert refused(tmp_path, data).startswith("states no decoder_config.codebook_dim, and the class defaults")


KEYS = sorted(set(stated(TRUE_CONFIG)["decoder_config"]) & set(TRUE_CONFIG.__dict__) - {"codebook_dim"})


@pytest.mark.parametrize("key", KEYS)
def test_read_config_names_a_key_of_the_decoder_that_is_missing(tmp_path: Path, key: str) -> None:
    data = changed()
    del data["decoder_config"][key]
    assert f"the key 'decoder_config.{key}' is missing" in refused(tmp_path, data)


@pytest.mark.parametrize("key", ["output_sample_rate", "decode_upsample_rate"])
def test_read_config_names_a_key_of_the_tokenizer_that_is_missing(tmp_path: Path, key: str) -> None:
    data = changed()
    del data[key]
    assert f"the key '{key}' is missing" in refused(tmp_path, data)


WRONG_VALUES: tuple[object, ...] = (0, -1, True, None, "8", 2.5, [8], [8, 0], {}, 1 << 40)
NUMBERS, LISTS = ("rope_theta", "rms_norm_eps"), ("upsample_rates", "upsampling_ratios")
WRONG: list[tuple[str, object]] = [
    (key, wrong)
    for key in [*KEYS, "codebook_dim"]
    for wrong in WRONG_VALUES
    if not (key in NUMBERS and wrong == 2.5) and not (key in LISTS and wrong == [8])
]


@pytest.mark.parametrize(("key", "wrong"), WRONG)
def test_read_config_names_a_key_of_the_wrong_type(tmp_path: Path, key: str, wrong: object) -> None:
    assert refused(tmp_path, changed(**{key: wrong})).startswith(f"the key 'decoder_config.{key}' must be ")


@pytest.mark.parametrize("text", ["NaN", "Infinity", "1e999", "9" * 400], ids=["nan", "inf", "over", "long"])
def test_read_config_refuses_a_number_that_is_none(tmp_path: Path, text: str) -> None:
    data = json.dumps(changed(rope_theta="HERE")).replace('"HERE"', text)
    assert refused(tmp_path, data).startswith("the key 'decoder_config.rope_theta' must be a number above 0")


@pytest.mark.parametrize(
    ("below", "said"),
    [
        ({"hidden_act": "gelu"}, "decoder_config.hidden_act is 'gelu', and only 'silu' is supported"),
        ({"attention_bias": True}, "decoder_config.attention_bias is True, and only False is supported"),
        ({"attention_bias": 0}, "decoder_config.attention_bias is 0, and only False"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 2}}, "decoder_config.rope_scaling is {'rope_type': 'yarn'"),
        ({"num_semantic_quantizers": 2}, "decoder_config.num_semantic_quantizers is 2, and only 1"),
        ({"num_key_value_heads": 8}, "decoder_config.num_key_value_heads, 8, is not num_attention_heads, 16"),
        ({"codebook_dim": 511}, "decoder_config.codebook_dim, 511, is odd"),
        ({"head_dim": 63}, "decoder_config.head_dim, 63, is odd"),
        ({"num_quantizers": 1}, "decoder_config.num_quantizers is 1"),
        ({"sliding_window": 1}, "decoder_config.sliding_window is 1"),
        ({"decoder_dim": 1544}, "decoder_config.decoder_dim, 1544, cannot be halved 4 times"),
        ({"upsample_rates": [8, 5, 4, 4]}, "decoder_config's upsample_rates and upsampling_ratios make 2560 samples"),
        ({"upsampling_ratios": [2]}, "decoder_config's upsample_rates and upsampling_ratios make 960 samples of a"),
    ],
)
def test_read_config_refuses_what_cannot_be_computed(tmp_path: Path, below: dict[str, object], said: str) -> None:
    assert refused(tmp_path, changed(**below)).startswith(said)


def test_read_config_refuses_another_rate_than_the_layers_make(tmp_path: Path) -> None:
    assert "and decode_upsample_rate is 960" in refused(tmp_path, {**changed(), "decode_upsample_rate": 960})
