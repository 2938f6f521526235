"""The vocoder's graphs against their modules."""

from __future__ import annotations

import numpy as np
import pytest

from models.cosyvoice2.f0 import pitch_of
from models.cosyvoice2.hift_config import HOP
from models.cosyvoice2.hift_graph import BEFORE, CACHED, HAR, MEL, NOISE, PITCH, SOURCE, TURNS, f0_graph, host_graph
from models.cosyvoice2.hift_runs import excited, pitched
from models.cosyvoice2.source import Excitation
from tests.cosyvoice2_hift import SMALL, drawn, weights_of
from tests.onnx_runs import open_session, run, snr_db


def test_pitch_graph_is_its_module() -> None:
    pitch, mel = pitch_of(weights_of(), SMALL), drawn((1, SMALL.mels, 12), 1, 3.0)
    got = run(f0_graph(pitch, SMALL, 12), {MEL: mel})
    assert snr_db(pitched(pitch, mel), got[PITCH]) > 120


def test_host_half_takes_any_number_of_frames_and_of_known_samples() -> None:
    excitation = Excitation(weights_of())
    session = open_session(host_graph(excitation))
    for frames, known in ((1, 0), (40, 8 * HOP), (32, 0)):
        pitch = np.abs(drawn((1, frames), frames, 150.0))
        given = (pitch, drawn((1, frames * HOP + 5, 9)), drawn((1, 9), 2) % 1, drawn((1, known), 3, 0.1))
        got = session(dict(zip((PITCH, NOISE, BEFORE, CACHED), given, strict=True)))
        for name, owed in zip((HAR, SOURCE, TURNS), excited(excitation, *given), strict=True):
            assert got[name].shape == owed.shape
            assert snr_db(owed, got[name]) > 110


@pytest.mark.parametrize("frames", [1, 40])
def test_host_half_gives_120_columns_a_frame_and_one(frames: int) -> None:
    got = run(
        host_graph(Excitation(weights_of())),
        {
            PITCH: np.full((1, frames), 120, np.float32),
            NOISE: np.zeros((1, frames * HOP, 9), np.float32),
            BEFORE: np.zeros((1, 9), np.float32),
            CACHED: np.zeros((1, 0), np.float32),
        },
    )
    assert got[HAR].shape == (1, 18, 120 * frames + 1)
    assert got[SOURCE].shape == (1, frames * HOP)
