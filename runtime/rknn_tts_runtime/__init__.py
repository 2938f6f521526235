"""Runs rknn-tts engines on a board. Needs numpy only."""

from rknn_tts_runtime.istft import istft
from rknn_tts_runtime.spectrogram_windows import frame_masks, join_columns, walk_spectrogram, walk_spectrogram_windows
from rknn_tts_runtime.wav import write_wav
from rknn_tts_runtime.windows import WindowStep, decode_windowed, plan_windows, walk_windows

__all__ = [
    "WindowStep",
    "decode_windowed",
    "frame_masks",
    "istft",
    "join_columns",
    "plan_windows",
    "walk_spectrogram",
    "walk_spectrogram_windows",
    "walk_windows",
    "write_wav",
]
__version__ = "0.1.0"
