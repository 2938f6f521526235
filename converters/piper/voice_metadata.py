"""What a host half tells a board of its voice: ids of phonemes, sample rate, speakers, scales, names of inputs.

So that plan, engine, manifest and host half are all that speaks. The board reads it with
`rknn_tts_runtime.speaking.piper_voice`.
"""

from __future__ import annotations

import json

import onnx_ir as ir
from rknn_tts_runtime.speaking.piper_voice import FAMILY
from rknn_tts_runtime.speaking.voice_keys import VOICE_METADATA

from converters.piper.config import frame_of
from converters.piper.voice import Voice


def tell_voice(host: ir.Model, voice: Voice) -> ir.Model:
    """`host` with what is known of `voice` in its metadata."""
    host.metadata_props[VOICE_METADATA] = voice_metadata(voice)
    return host


def voice_metadata(voice: Voice) -> str:
    """What is known of `voice`, as JSON; the same of the same voice. What neither graph nor JSON states is null."""
    config, inputs = voice.config, voice.inputs
    noise_scale, length_scale, noise_width = config.scales
    table = config.phoneme_ids
    told = {
        "family": FAMILY,
        "sample_rate": voice.sample_rate,
        "hop_length": voice.seam.hop,
        "num_symbols": voice.symbols,
        "num_speakers": voice.speakers,
        "speaker_id_map": config.speaker_ids,
        "inference": {"noise_scale": noise_scale, "length_scale": length_scale, "noise_w": noise_width},
        "inputs": {
            "ids": inputs.ids,
            "lengths": inputs.lengths,
            "scales": inputs.scales,
            "speaker": None if inputs.speaker is None else inputs.speaker.name,
            "language": None if inputs.language is None else inputs.language.name,
        },
        "phoneme_type": config.phoneme_type if table else None,
        "espeak_voice": config.espeak_voice,
        "vowel_clusters": config.vowel_clusters,
        "phoneme_id_map": table,
        "frame": dict(zip(("begin", "pad", "end"), frame_of(table), strict=True)),
    }
    # In ASCII: JSON can state characters that no file's text can hold.
    return json.dumps(told, sort_keys=True, separators=(",", ":"))
