"""What a host half tells a board of its model: symbols, sample rate, scales, names of inputs.

So that plan, engine, manifest and host half are all that speaks. The board reads it with
`rknn_tts_runtime.speaking.inflect`.
"""

from __future__ import annotations

import json

import onnx_ir as ir
from rknn_tts_runtime.speaking.inflect import FAMILY
from rknn_tts_runtime.speaking.voice_keys import VOICE_METADATA

from converters.inflect.prior import NOISE_SCALE
from converters.inflect.voice import Voice

LENGTH_SCALE = 1.0
"""Of the durations: what the release speaks with."""


def tell_voice(host: ir.Model, voice: Voice) -> ir.Model:
    """`host` with what is known of `voice` in its metadata."""
    told = {
        "family": FAMILY,
        "sample_rate": voice.sample_rate,
        "hop_length": voice.seam.hop,
        "num_symbols": voice.symbols,
        "inference": {"noise_scale": NOISE_SCALE, "length_scale": LENGTH_SCALE},
        "inputs": {"ids": voice.ids, "lengths": voice.lengths, "length_scale": voice.length_scale},
    }
    host.metadata_props[VOICE_METADATA] = json.dumps(told, sort_keys=True, separators=(",", ":"))
    return host
