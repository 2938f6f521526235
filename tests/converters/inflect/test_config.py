from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from contracts.errors import UserInput
from converters.inflect.config import Stated, read_config, read_stated
from models.inflect.config import MICRO
from tests.converters.inflect.releases import SMALL, config_json, write_config


def write(folder: Path, stated: object) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(stated), encoding="utf-8")
    return path


def changed(section: str, **keys: Any) -> dict[str, Any]:
    stated = config_json()
    stated[section].update(keys)
    return stated


def test_read_config_reads_what_the_release_states(tmp_path: Path) -> None:
    assert read_config(write_config(tmp_path) / "config.json", symbols=20) == SMALL
    assert read_config(write_config(tmp_path, MICRO) / "config.json", symbols=178) == MICRO


def test_read_stated_needs_no_sizes(tmp_path: Path) -> None:
    path = write(tmp_path, {"data": {"sampling_rate": 24000, "hop_length": 256}})
    assert read_stated(path) == Stated(24000, 256)


def test_read_stated_tells_the_latents_width_where_it_is_there(tmp_path: Path) -> None:
    assert read_stated(write_config(tmp_path, MICRO) / "config.json") == Stated(24000, 256, 192)


@pytest.mark.parametrize(
    ("stated", "told"),
    [
        ([], "a JSON object is expected, not list"),
        ({}, "is no config of Inflect v2: the key 'data' is missing"),
        ({"data": {"sampling_rate": 24000}}, r"the key 'data\.hop_length' is missing"),
        (changed("data", sampling_rate="24k"), r"the key data\.sampling_rate must be a whole number|'data\.sampling"),
        (changed("data", sampling_rate=10**9), "sampling_rate"),
        (changed("model", use_sdp=True), r"model\.use_sdp is True, and only False is supported"),
        (changed("model", decoder_alias_free=True), r"model\.decoder_alias_free is True, and only False is supported"),
        (changed("model", resblock="2"), r"model\.resblock is '2', and only '1' is supported"),
        (changed("model", inter_channels=7), "must be even, for the flow splits it"),
        (changed("model", hidden_channels=9), "hidden_channels must be a multiple of n_heads"),
        (changed("model", upsample_initial_channel=6), "must be a multiple of 4, for 2 stages halve it"),
        (changed("model", kernel_size=4), "must be odd"),
        (changed("model", resblock_kernel_sizes=[3, 4]), "must be odd"),
        (changed("model", upsample_kernel_sizes=[8]), "upsample_rates and upsample_kernel_sizes must be of one length"),
        (changed("model", upsample_kernel_sizes=[8, 3]), "must be its rate or an even number more"),
        (changed("model", upsample_kernel_sizes=[2, 4]), "must be its rate or an even number more"),
        (changed("model", resblock_dilation_sizes=[[1]]), "and resblock_dilation_sizes must be of one length"),
        (changed("data", hop_length=16), r"data\.hop_length is 16, and upsample_rates make 8"),
        (changed("model", n_heads=0), "must be a whole number from 1"),
    ],
)
def test_read_config_names_what_is_wrong(tmp_path: Path, stated: object, told: str) -> None:
    with pytest.raises(UserInput, match=rf"config\.json: .*({told})"):
        read_config(write(tmp_path, stated), symbols=20)


@pytest.mark.parametrize("text", ["", "{", "\x00"])
def test_read_config_says_so_when_it_is_no_json(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserInput, match="is not readable JSON"):
        read_config(path, symbols=20)
