"""Runs rknn-tts engines on a board. Needs numpy only."""

from rknn_tts_runtime.carried_state import State, walk_states, zero_states
from rknn_tts_runtime.istft import istft
from rknn_tts_runtime.speaker_window import speaker_window
from rknn_tts_runtime.spectrogram_windows import frame_masks, join_columns, walk_spectrogram, walk_spectrogram_windows
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
from rknn_tts_runtime.windows import WindowStep, decode_windowed, plan_windows, walk_windows

__all__ = [
    "CodeEvent",
    "CodeStep",
    "State",
    "VocoderStream",
    "WindowStep",
    "cache_slice",
    "decode_event",
    "decode_windowed",
    "frame_masks",
    "istft",
    "join_columns",
    "plan_codes",
    "plan_windows",
    "speaker_window",
    "stream_codes",
    "vocoder_samples",
    "walk_codes",
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
