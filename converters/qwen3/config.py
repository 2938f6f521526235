"""The `config.json` of a Qwen3 speech tokenizer (12 Hz), as the published `speech_tokenizer` folders have it.

{"model_type": "qwen3_tts_tokenizer_12hz", "output_sample_rate": 24000, "decode_upsample_rate": 1920,
 "decoder_config": {...}, "encoder_config": {...}, ...}
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contracts.errors import UserInput
from converters.config_keys import ConfigKeys, read_object
from models.qwen3.config import DecoderConfig

CONFIG_NAME = "config.json"

MODEL_TYPE = "qwen3_tts_tokenizer_12hz"
"""`model_type` of the tokenizer whose decoder this is; the other is `qwen3_tts_tokenizer_25hz` (diffusion, BigVGAN)."""

_WHOLE_MODEL = "qwen3_tts"
"""`model_type` of a snapshot's own config.json, beside the folder `speech_tokenizer`."""

_BELOW = "decoder_config"

_OTHER_RATE = "25hz"

_SEMANTIC = 1
"""Semantic codebooks: written out in the reference's decoder, whatever `num_semantic_quantizers` says."""

_LARGEST_RATE = 1 << 20
"""Of a sample rate, in Hz, and of samples a code."""

_AGAIN = "give a Qwen3-TTS-12Hz snapshot's speech_tokenizer/config.json"


@dataclass(frozen=True)
class TokenizerConfig:
    """What a `config.json` states.

    Attributes:
        decoder: the decoder's sizes.
        sample_rate: of its samples, in Hz.
    """

    decoder: DecoderConfig
    sample_rate: int


def read_config(path: Path) -> TokenizerConfig:
    """The sizes that the file `path` states; keys that decoding does not need (`encoder_config`) are not looked at.

    Raises:
        UserInput: the file cannot be read, is another model's, or a key is missing, of the wrong type or does not fit
            the others; it is named.
    """
    data = read_object(path, _AGAIN)
    _check_model_type(path, data.get("model_type"))
    whole = ConfigKeys(path, data, "Qwen3's speech tokenizer", _AGAIN)
    below = whole.below(_BELOW, _decoder_keys(path, data))
    _check_supported(below)
    heads, hidden = below.size("num_attention_heads"), below.size("hidden_size")
    config = DecoderConfig(
        codebook_dim=below.size("codebook_dim"),
        codebook_size=below.size("codebook_size"),
        latent_dim=below.size("latent_dim"),
        hidden_size=hidden,
        intermediate_size=below.size("intermediate_size"),
        num_hidden_layers=below.size("num_hidden_layers"),
        num_attention_heads=heads,
        num_key_value_heads=below.size("num_key_value_heads"),
        head_dim=below.size("head_dim"),
        sliding_window=below.size("sliding_window"),
        rope_theta=below.positive("rope_theta"),
        rms_norm_eps=below.positive("rms_norm_eps"),
        decoder_dim=below.size("decoder_dim"),
        upsample_rates=below.sizes("upsample_rates"),
        upsampling_ratios=below.sizes("upsampling_ratios"),
        num_quantizers=below.size("num_quantizers"),
        n_q_semantic=_SEMANTIC,
    )
    _check_fit(path, config, whole.size("decode_upsample_rate", _LARGEST_RATE))
    return TokenizerConfig(config, whole.size("output_sample_rate", _LARGEST_RATE))


def _check_model_type(path: Path, stated: object) -> None:
    if stated == MODEL_TYPE:
        return
    if isinstance(stated, str) and _OTHER_RATE in stated.lower():
        raise UserInput(
            f"{path}: is of the 25 Hz tokenizer (model_type {stated!r:.60}), whose decoder is another model; the 12 Hz "
            f"one is supported ({MODEL_TYPE!r}): give a Qwen3-TTS-12Hz snapshot."
        )
    if stated == _WHOLE_MODEL:
        raise UserInput(
            f"{path}: is the config of the whole Qwen3-TTS, and its speech decoder's is speech_tokenizer/{CONFIG_NAME} "
            "in the same snapshot, which is not there; get the snapshot with its folder speech_tokenizer."
        )
    what = "has no model_type" if stated is None else f"has the model_type {stated!r:.60}"
    raise UserInput(f"{path}: {what}, and {MODEL_TYPE!r} is expected; {_AGAIN}.")


def _decoder_keys(path: Path, data: dict[str, Any]) -> dict[str, Any]:
    """What stands below `decoder_config`; one that leaves its sizes to the package's defaults is refused."""
    held = data.get(_BELOW, {})
    if held is not None and not isinstance(held, dict):
        raise UserInput(f"{path}: the key {_BELOW!r} must be an object, not {held!r:.40}; {_AGAIN}.")
    if not held:
        lacks = f"states no {_BELOW}"
    elif "codebook_dim" not in held:
        lacks = f"states no {_BELOW}.codebook_dim"
    else:
        return held
    raise UserInput(
        f"{path}: {lacks}, and the class defaults of the package qwen-tts, which would be meant, are not a published "
        f"model's sizes; {_AGAIN}."
    )


def _check_supported(keys: ConfigKeys) -> None:
    """Options of the reference that no published model uses; absent ones are as in the published models."""
    keys.only("hidden_act", ("silu",))
    keys.only("attention_bias", (False,))
    keys.only("rope_scaling", (None,))
    keys.only("num_semantic_quantizers", (_SEMANTIC,))


def _check_fit(path: Path, config: DecoderConfig, samples_per_code: int) -> None:
    """Sizes that no tensor's shape tells, and that the layers cannot be computed with."""
    halvings = len(config.upsample_rates)
    if config.samples_per_code != samples_per_code:
        wrong = (
            f"{_BELOW}'s upsample_rates and upsampling_ratios make {config.samples_per_code} samples of a code, and "
            f"decode_upsample_rate is {samples_per_code}"
        )
    elif config.codebook_dim % 2:
        wrong = f"{_BELOW}.codebook_dim, {config.codebook_dim}, is odd, and a codebook's vectors are half as wide"
    elif config.head_dim % 2:
        wrong = f"{_BELOW}.head_dim, {config.head_dim}, is odd, and rotary positions turn pairs"
    elif config.num_key_value_heads != config.num_attention_heads:
        wrong = (
            f"{_BELOW}.num_key_value_heads, {config.num_key_value_heads}, is not num_attention_heads, "
            f"{config.num_attention_heads}, and attention whose heads share keys is not supported"
        )
    elif config.num_quantizers <= config.n_q_semantic:
        wrong = f"{_BELOW}.num_quantizers is {config.num_quantizers}, and a semantic codebook and others are needed"
    elif config.sliding_window == 1:
        wrong = f"{_BELOW}.sliding_window is 1, so that no code would attend to an earlier one"
    elif config.decoder_dim % 2**halvings:
        wrong = (
            f"{_BELOW}.decoder_dim, {config.decoder_dim}, cannot be halved {halvings} times, once for each of "
            "upsample_rates"
        )
    else:
        return
    raise UserInput(f"{path}: {wrong}; {_AGAIN}.")
