"""The flow estimator's arithmetic against the original's at the same weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from models.cosyvoice2.estimator import chunk_sight, embedded_time, velocity
from tests.cosyvoice2_estimator import CHUNK, SMALL, Floats, by_original, drawn, original, tensors
from tests.onnx_runs import snr_db

FRAMES = 21


def ours(real: int = FRAMES, seen: torch.Tensor | None = None, frames: int = FRAMES) -> Floats:
    stream = drawn(frames)
    mask = np.broadcast_to(np.arange(frames) < real, (2, 1, frames)).astype(np.float32)
    arrays = (stream.x, mask, stream.mu, stream.t, stream.spks, stream.cond)
    x, masked, mu, t, spks, cond = map(torch.from_numpy, arrays)
    with torch.no_grad():
        made: Floats = velocity(tensors(), SMALL, x, masked, mu, t, spks, cond, seen).numpy()
    return made


@pytest.mark.parametrize("real", [FRAMES, FRAMES - 4, 1])
def test_velocity_is_the_originals_when_all_frames_see_all(real: int) -> None:
    owed = by_original(drawn(FRAMES), real=real)
    assert owed.shape == (2, SMALL.mel, FRAMES)
    assert snr_db(owed, ours(real)) > 115


def test_velocity_is_the_originals_when_frames_come_in_chunks() -> None:
    whole, chunks = by_original(drawn(FRAMES)), by_original(drawn(FRAMES), streaming=True)
    assert snr_db(chunks, ours(seen=chunk_sight(FRAMES, CHUNK))) > 115
    assert snr_db(whole, chunks) < 30


def test_rows_of_guidance_differ_by_their_conditions() -> None:
    made = ours()
    assert snr_db(made[:1], made[1:]) < 15


def test_time_is_the_originals() -> None:
    t = torch.tensor([0.0, 0.37])
    module = original()
    owed = module.time_mlp(module.time_embeddings(t)).detach().numpy()
    assert snr_db(owed, embedded_time(tensors(), SMALL, t).numpy()) > 110


def test_chunk_sight_is_by_hand() -> None:
    assert chunk_sight(5, 2).tolist() == [
        [1, 1, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 1, 0],
        [1, 1, 1, 1, 0],
        [1, 1, 1, 1, 1],
    ]
    assert chunk_sight(5, 2, history=1).tolist() == [
        [1, 1, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [0, 1, 1, 1, 0],
        [0, 1, 1, 1, 0],
        [0, 0, 0, 1, 1],
    ]
