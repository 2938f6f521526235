"""Runs rknn-tts engines on a board. Needs numpy only."""

from rknn_tts_runtime.windows import WindowStep, decode_windowed, plan_windows, walk_windows

__all__ = ["WindowStep", "decode_windowed", "plan_windows", "walk_windows"]
__version__ = "0.1.0"
