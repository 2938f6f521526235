"""Every stage there is, the default stage of a family first."""

from __future__ import annotations

from converters.cosyvoice2.f0 import STAGE as COSYVOICE2_F0
from converters.cosyvoice2.flow_encoder import STAGE as COSYVOICE2_FLOW_ENCODER
from converters.cosyvoice2.flow_estimator import STAGE as COSYVOICE2_FLOW_ESTIMATOR
from converters.cosyvoice2.hift import STAGE as COSYVOICE2_HIFT
from converters.cosyvoice2.speaker import STAGE as COSYVOICE2_SPEAKER
from converters.cosyvoice2.speech_head import STAGE as COSYVOICE2_SPEECH_HEAD
from converters.cosyvoice3.flow import STAGE as COSYVOICE3_FLOW
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
    COSYVOICE3_FLOW,
    COSYVOICE2_FLOW_ENCODER,
    COSYVOICE2_FLOW_ESTIMATOR,
    COSYVOICE2_F0,
    COSYVOICE2_HIFT,
    COSYVOICE2_SPEAKER,
    COSYVOICE2_SPEECH_HEAD,
)
