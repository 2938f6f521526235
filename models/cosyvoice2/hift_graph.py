"""The vocoder, its predictor of pitch and its host half as ONNX graphs, traced by torch's exporters."""

from __future__ import annotations

import onnx_ir as ir
import torch

from models import tracing
from models.cosyvoice2.f0 import Pitch
from models.cosyvoice2.hift import Hift
from models.cosyvoice2.hift_config import BINS, COLUMNS, HARMONICS, HOP, HiftConfig
from models.cosyvoice2.source import Excitation

MEL, HAR, SPECTROGRAM, PITCH = "mel", "har", "spec_phase", "f0"
NOISE, BEFORE, CACHED, SOURCE, TURNS = "noise", "turns_before", "source_before", "source", "turns"

HOST_OPSET = 17

_TRACED_FRAMES, _TRACED_CACHE = 3, HOP
"""Lengths of what the host half is traced on; any others run."""


def hift_shapes(config: HiftConfig, frames: int) -> dict[str, tuple[int, ...]]:
    """Inputs of the vocoder for `frames` mel frames, by name."""
    return {MEL: (1, config.mels, frames), HAR: (1, 2 * BINS, COLUMNS * frames + 1)}


def f0_shapes(config: HiftConfig, frames: int) -> dict[str, tuple[int, ...]]:
    """The same of the predictor of pitch."""
    return {MEL: (1, config.mels, frames)}


def hift_graph(hift: Hift, config: HiftConfig, frames: int) -> ir.Model:
    """The vocoder for `frames` mel frames."""
    shapes = hift_shapes(config, frames)
    return tracing.traced(hift, tuple(map(torch.zeros, shapes.values())), list(shapes), [SPECTROGRAM])


def f0_graph(pitch: Pitch, config: HiftConfig, frames: int) -> ir.Model:
    """The predictor of pitch for `frames` mel frames."""
    shapes = f0_shapes(config, frames)
    return tracing.traced(pitch, tuple(map(torch.zeros, shapes.values())), list(shapes), [PITCH])


def host_graph(excitation: Excitation) -> ir.Model:
    """The host half, for any number of frames and of samples that are known already."""
    example = (
        torch.zeros(1, _TRACED_FRAMES),
        torch.zeros(1, _TRACED_FRAMES * HOP, HARMONICS),
        torch.zeros(1, HARMONICS),
        torch.zeros(1, _TRACED_CACHE),
    )
    axes = {
        PITCH: {1: "frames"},
        NOISE: {1: "samples"},
        CACHED: {1: "known"},
        HAR: {2: "columns"},
        SOURCE: {1: "source_samples"},
        TURNS: {1: "turned_frames"},
    }
    names = [PITCH, NOISE, BEFORE, CACHED]
    return tracing.traced_by_script(excitation, example, names, [HAR, SOURCE, TURNS], HOST_OPSET, axes)
