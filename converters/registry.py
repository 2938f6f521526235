"""Every stage there is, the default stage of a family first."""

from __future__ import annotations

from converters.inflect.stage import STAGE as INFLECT_DECODER
from converters.kokoro.stage import STAGE as KOKORO_GENERATOR
from converters.piper.decoder import STAGE as PIPER_DECODER
from converters.piper.duration_encoder import STAGE as PIPER_DURATION_ENCODER
from converters.qwen3.stage import STAGE as QWEN3_SPEECH_DECODER
from converters.stages import Stage

STAGES: tuple[Stage, ...] = (
    PIPER_DECODER,
    PIPER_DURATION_ENCODER,
    KOKORO_GENERATOR,
    QWEN3_SPEECH_DECODER,
    INFLECT_DECODER,
)
