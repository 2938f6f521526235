"""Snapshots of Qwen3-TTS on disk, for tests: a config.json as the published one, and safetensors written by hand."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.qwen3.config import DecoderConfig

Arrays = Mapping[str, NDArray[Any]]


def stated(config: DecoderConfig, **below: object) -> dict[str, Any]:
    """The `config.json` of a tokenizer with this decoder; `below` are other keys of decoder_config."""
    decoder = asdict(config)
    del decoder["n_q_semantic"]
    lists = {key: list(value) for key, value in decoder.items() if isinstance(value, tuple)}
    published = {
        "attention_bias": False,
        "attention_dropout": 0.0,
        "hidden_act": "silu",
        "layer_scale_initial_scale": 0.01,
        "max_position_embeddings": 8000,
        "num_semantic_quantizers": 1,
        "rope_theta": int(config.rope_theta),  # a whole number in the published file
    }
    return {
        "architectures": ["Qwen3TTSTokenizerV2Model"],
        "model_type": "qwen3_tts_tokenizer_12hz",
        "encoder_valid_num_quantizers": 16,
        "input_sample_rate": 24000,
        "output_sample_rate": 24000,
        "decode_upsample_rate": config.samples_per_code,
        "encode_downsample_rate": 1920,
        "decoder_config": {**decoder, **lists, **published, **below},
        "encoder_config": {"hidden_size": 512},
    }


def safetensors_bytes(arrays: Arrays, stored: str = "F32") -> bytes:
    """A safetensors file: the header's length, the header, the numbers (github.com/huggingface/safetensors, Format)."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    parts: list[bytes] = []
    for name, array in arrays.items():
        data = _stored(array, stored)
        start = sum(map(len, parts))
        header[name] = {"dtype": stored, "shape": list(array.shape), "data_offsets": [start, start + len(data)]}
        parts.append(data)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"".join(parts)


def write_snapshot(
    root: Path, config: DecoderConfig, weights: Arrays, stored: str = "F32", shards: int | None = None
) -> Path:
    """A snapshot with these weights as its decoder's and one of the encoder's beside them; its tokenizer's folder."""
    folder = root / "speech_tokenizer"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(stated(config)))
    every = {"encoder.quantizer.codebook": np.zeros(3, np.float32), **weights}
    if shards is None:
        (folder / "model.safetensors").write_bytes(safetensors_bytes(every, stored))
        return folder
    names = sorted(every)
    where = {name: f"model-{place % shards + 1:05}-of-{shards:05}.safetensors" for place, name in enumerate(names)}
    for file in sorted(set(where.values())):
        held = {name: every[name] for name in names if where[name] == file}
        (folder / file).write_bytes(safetensors_bytes(held, stored))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": where}))
    return folder


def _stored(array: NDArray[Any], stored: str) -> bytes:
    """The array's numbers; bfloat16 is the upper half of float32."""
    if stored == "BF16":
        return (np.ascontiguousarray(array, "<f4").view("<u4") >> 16).astype("<u2").tobytes()
    return np.ascontiguousarray(array, {"F32": "<f4", "F16": "<f2", "F64": "<f8", "I8": "i1"}[stored]).tobytes()
