from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from contracts.errors import UserInput
from converters.kokoro.config import read_config
from models.kokoro.config import KOKORO_82M

OFFICIAL = {
    "istftnet": {
        "upsample_kernel_sizes": [20, 12],
        "upsample_rates": [10, 6],
        "gen_istft_hop_size": 5,
        "gen_istft_n_fft": 20,
        "resblock_dilation_sizes": [[1, 3, 5], [1, 3, 5], [1, 3, 5]],
        "resblock_kernel_sizes": [3, 7, 11],
        "upsample_initial_channel": 512,
    },
    "dim_in": 64,
    "dropout": 0.2,
    "hidden_dim": 512,
    "max_conv_dim": 512,
    "max_dur": 50,
    "multispeaker": True,
    "n_layer": 3,
    "n_mels": 80,
    "n_token": 178,
    "style_dim": 128,
    "text_encoder_kernel_size": 5,
    "plbert": {
        "hidden_size": 768,
        "num_attention_heads": 12,
        "intermediate_size": 2048,
        "max_position_embeddings": 512,
        "num_hidden_layers": 12,
        "dropout": 0.1,
    },
    "vocab": {";": 1, ":": 2},
}
"""The official config.json, its vocabulary cut off."""


def written(folder: Path, data: Any) -> Path:
    path = folder / "config.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


def changed(key: str, value: object, below: str | None = None) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(json.dumps(OFFICIAL))
    (data if below is None else data[below])[key] = value
    return data


def test_read_config_is_kokoro_82m_when_the_file_is_the_official_one(tmp_path: Path) -> None:
    assert read_config(written(tmp_path, OFFICIAL)) == KOKORO_82M


@pytest.mark.parametrize("key", ["n_token", "hidden_dim", "style_dim", "n_layer", "max_dur", "plbert", "istftnet"])
def test_read_config_names_the_key_when_it_is_missing(tmp_path: Path, key: str) -> None:
    data = {name: value for name, value in OFFICIAL.items() if name != key}
    with pytest.raises(UserInput, match=rf"config\.json: is no config of Kokoro: the key '{key}' is missing"):
        read_config(written(tmp_path, data))


def test_read_config_names_the_whole_key_when_one_below_is_missing(tmp_path: Path) -> None:
    data = changed("x", 1)
    del data["istftnet"]["gen_istft_n_fft"]
    with pytest.raises(UserInput, match=r"'istftnet\.gen_istft_n_fft' is missing"):
        read_config(written(tmp_path, data))


@pytest.mark.parametrize("value", [0, -1, 1.5, "512", True, None, [512], 10**9])
def test_read_config_refuses_a_size_when_it_is_no_whole_number_of_a_size(tmp_path: Path, value: object) -> None:
    with pytest.raises(UserInput, match="'hidden_dim' must be a whole number from 1 to 65536"):
        read_config(written(tmp_path, changed("hidden_dim", value)))


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        ("upsample_rates", 10, "a list of whole numbers"),
        ("upsample_rates", [], "a list of whole numbers"),
        ("upsample_rates", [10, 0], "a list of whole numbers"),
        ("resblock_dilation_sizes", [1, 3, 5], "a list of lists"),
        ("resblock_dilation_sizes", [], "a list of lists"),
    ],
)
def test_read_config_refuses_a_list_when_it_is_none_of_sizes(
    tmp_path: Path, key: str, value: object, wanted: str
) -> None:
    with pytest.raises(UserInput, match=rf"'istftnet\.{key}' must be {wanted}"):
        read_config(written(tmp_path, changed(key, value, "istftnet")))


@pytest.mark.parametrize(
    ("key", "value", "counts"),
    [("upsample_rates", [10, 6, 2], "3 entries .* 2"), ("resblock_kernel_sizes", [3, 7], "2 entries .* 3")],
)
def test_read_config_refuses_lists_when_their_lengths_differ(
    tmp_path: Path, key: str, value: object, counts: str
) -> None:
    with pytest.raises(UserInput, match=counts):
        read_config(written(tmp_path, changed(key, value, "istftnet")))


@pytest.mark.parametrize("text", ["", "{", "nan", '{"a": 1e999}', "\udcff"])
def test_read_config_refuses_the_file_when_it_is_no_json_object(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UserInput, match=r"config\.json: is no"):
        read_config(path)


@pytest.mark.parametrize("data", [[], 1, "x"])
def test_read_config_refuses_the_file_when_it_holds_no_object(tmp_path: Path, data: object) -> None:
    with pytest.raises(UserInput, match="a JSON object is expected"):
        read_config(written(tmp_path, json.dumps(data)))


def test_read_config_refuses_plbert_when_it_is_no_object(tmp_path: Path) -> None:
    with pytest.raises(UserInput, match="the key 'plbert' must be an object, not 5"):
        read_config(written(tmp_path, changed("plbert", 5)))


def test_read_config_says_so_when_there_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UserInput, match=r"there is no such file; give the checkpoint's config\.json"):
        read_config(tmp_path / "config.json")


def test_read_config_refuses_heads_when_they_do_not_divide_the_width(tmp_path: Path) -> None:
    with pytest.raises(
        UserInput, match=r"plbert\.num_attention_heads, 7, does not divide plbert\.hidden_size, 768; give"
    ):
        read_config(written(tmp_path, changed("num_attention_heads", 7, "plbert")))


@pytest.mark.parametrize(("rates", "told"), [([10, 5], "has 5 where .* has 12"), ([22, 6], "has 22 where .* has 20")])
def test_read_config_refuses_a_rate_when_its_kernel_does_not_fit(tmp_path: Path, rates: list[int], told: str) -> None:
    with pytest.raises(UserInput, match=rf"istftnet\.upsample_rates {told}, which must be larger by an even number"):
        read_config(written(tmp_path, changed("upsample_rates", rates, "istftnet")))
