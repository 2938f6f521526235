"""Every stage there is, the default stage of a family first."""

from __future__ import annotations

from converters.kokoro.stage import STAGE as KOKORO_GENERATOR
from converters.piper.decoder import STAGE as PIPER_DECODER
from converters.stages import Stage

STAGES: tuple[Stage, ...] = (PIPER_DECODER, KOKORO_GENERATOR)
