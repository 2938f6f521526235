"""Runs rknn-tts engines on a board, and speaks. Needs numpy only; onnxruntime where a host half or a twin is opened."""

from rknn_tts_runtime.aperture_budget import ApertureBudget
from rknn_tts_runtime.backends.npu import NpuBackend
from rknn_tts_runtime.backends.twins import TwinBackend
from rknn_tts_runtime.carried_state import State, walk_states, zero_states
from rknn_tts_runtime.event_stream import stream_events
from rknn_tts_runtime.faults import BadInput, Fault, Mismatch, RunFault
from rknn_tts_runtime.istft import istft
from rknn_tts_runtime.istft_stream import IstftStream
from rknn_tts_runtime.ladders import full_or_short, ladder_of, narrowest_rung, rung_of, rungs_of
from rknn_tts_runtime.lazy_ladder import LazyLadder
from rknn_tts_runtime.manifest import manifest_of
from rknn_tts_runtime.plans.reading import read_plans
from rknn_tts_runtime.speaker_window import speaker_window
from rknn_tts_runtime.speaking.speaker import Asked
from rknn_tts_runtime.speaking.stopwatch import Stopwatch
from rknn_tts_runtime.speaking.voices import open_speaker
from rknn_tts_runtime.spectrogram_gain import correct_windows
from rknn_tts_runtime.spectrogram_windows import (
    frame_masks,
    join_columns,
    stream_columns,
    walk_spectrogram,
    walk_spectrogram_windows,
)
from rknn_tts_runtime.stateful import (
    CodeEvent,
    CodeStep,
    cache_slice,
    decode_event,
    plan_codes,
    stream_codes,
    walk_codes,
    walk_events,
    window_events,
    zero_cache,
)
from rknn_tts_runtime.vocoder_stream import VocoderStream, vocoder_samples
from rknn_tts_runtime.wav import write_wav
from rknn_tts_runtime.window_cover import CoverStep, Rung, cover_utterance, walk_cover
from rknn_tts_runtime.windows import WindowStep, decode_windowed, plan_windows, walk_windows

__all__ = [
    "ApertureBudget",
    "Asked",
    "BadInput",
    "CodeEvent",
    "CodeStep",
    "CoverStep",
    "Fault",
    "IstftStream",
    "LazyLadder",
    "Mismatch",
    "NpuBackend",
    "RunFault",
    "Rung",
    "State",
    "Stopwatch",
    "TwinBackend",
    "VocoderStream",
    "WindowStep",
    "cache_slice",
    "correct_windows",
    "cover_utterance",
    "decode_event",
    "decode_windowed",
    "frame_masks",
    "full_or_short",
    "istft",
    "join_columns",
    "ladder_of",
    "manifest_of",
    "narrowest_rung",
    "open_speaker",
    "plan_codes",
    "plan_windows",
    "read_plans",
    "rung_of",
    "rungs_of",
    "speaker_window",
    "stream_codes",
    "stream_columns",
    "stream_events",
    "vocoder_samples",
    "walk_codes",
    "walk_cover",
    "walk_events",
    "walk_spectrogram",
    "walk_spectrogram_windows",
    "walk_states",
    "walk_windows",
    "window_events",
    "write_wav",
    "zero_cache",
    "zero_states",
]
__version__ = "0.1.0"
