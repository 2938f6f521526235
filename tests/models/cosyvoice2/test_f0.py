"""The predictor of pitch against the original at the same weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from rknn_tts_runtime import walk_windows

from models.cosyvoice2.f0 import pitch_of
from models.cosyvoice2.hift_config import PITCH_FIELD
from models.cosyvoice2.hift_runs import pitched
from tests.cosyvoice2_hift import SMALL, drawn, original, weights_of
from tests.onnx_runs import snr_db


@pytest.mark.parametrize("frames", [1, 9, 30])
def test_pitch_is_the_originals(frames: int) -> None:
    mel = torch.from_numpy(drawn((1, SMALL.mels, frames), 1, 3.0))
    owed = original().f0_predictor(mel).numpy()
    got = pitch_of(weights_of(), SMALL)(mel).numpy()
    assert got.shape == (1, frames)
    assert snr_db(owed, got) > 120


def test_pitch_depends_on_its_field_and_on_nothing_beyond() -> None:
    mel = torch.from_numpy(drawn((1, SMALL.mels, 31), 1, 3.0))
    moved = mel.clone()
    moved[..., 15] += 1
    pitch = pitch_of(weights_of(), SMALL)
    changed = (pitch(mel) != pitch(moved))[0].nonzero().flatten().tolist()
    assert (changed[0], changed[-1]) == (15 - PITCH_FIELD, 15 + PITCH_FIELD)


def test_windows_with_their_field_are_the_whole() -> None:
    mel, pitch = drawn((1, SMALL.mels, 77), 1, 3.0), pitch_of(weights_of(), SMALL)
    walked = [part for _, part in walk_windows(lambda cut: pitched(pitch, cut), [mel], 32, PITCH_FIELD, PITCH_FIELD, 1)]
    assert snr_db(pitched(pitch, mel)[0], np.concatenate(walked)) > 100
