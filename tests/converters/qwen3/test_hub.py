from __future__ import annotations

from pathlib import Path

import pytest

from contracts.errors import UserInput
from converters.qwen3.hub import fetch_tokenizer
from tests.converters.hubs import Hub, fetched

VOICE = {
    "config.json": b'{"model_type": "qwen3_tts"}',
    "model.safetensors": b"the talker",
    "speech_tokenizer/config.json": b'{"model_type": "qwen3_tts_tokenizer_12hz"}',
    "speech_tokenizer/model.safetensors": b"weights",
    "speech_tokenizer/preprocessor_config.json": b"{}",
}
TOKENIZER = {name.partition("/")[2]: content for name, content in VOICE.items() if "/" in name}


def test_fetch_tokenizer_gets_the_speech_tokenizer_and_not_the_talker(tmp_path: Path) -> None:
    hub = Hub(tmp_path, VOICE)
    folder = fetch_tokenizer("hf://Qwen/Qwen3-TTS-12Hz-0.6B-Base", hub)
    assert fetched(folder) == ["speech_tokenizer/config.json", "speech_tokenizer/model.safetensors"]
    assert hub.asked == ["hf://Qwen/Qwen3-TTS-12Hz-0.6B-Base"]


def test_fetch_tokenizer_gets_the_shards_and_their_index(tmp_path: Path) -> None:
    names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json"]
    files = {f"speech_tokenizer/{name}": b"" for name in ("config.json", *names)}
    assert fetched(fetch_tokenizer("hf://a/b", Hub(tmp_path, files))) == sorted(files)


def test_fetch_tokenizer_gets_the_files_at_the_top_of_a_tokenizers_own_repository(tmp_path: Path) -> None:
    folder = fetch_tokenizer("hf://Qwen/Qwen3-TTS-Tokenizer-12Hz", Hub(tmp_path, TOKENIZER))
    assert fetched(folder) == ["config.json", "model.safetensors"]


@pytest.mark.parametrize(
    "config", [b'{"model_type": "llama"}', b"{", b"[]", None], ids=["another model", "damaged", "list", "none"]
)
def test_fetch_tokenizer_gets_no_weights_of_another_model(tmp_path: Path, config: bytes | None) -> None:
    files = {"model.safetensors": b"gigabytes", **({"config.json": config} if config is not None else {})}
    with pytest.raises(UserInput, match=r"^hf://a/b: has no speech_tokenizer/config.json, and is no speech tokenizer"):
        fetch_tokenizer("hf://a/b", Hub(tmp_path, files))
    assert not any("model.safetensors" in name for name in fetched(tmp_path))
