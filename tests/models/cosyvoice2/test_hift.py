"""The vocoder's module against the original at the same weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from rknn_tts_runtime import walk_spectrogram
from torch.nn import functional

from models.cosyvoice2.hift import Hift, Snake, SourceDown, hift_of
from models.cosyvoice2.hift_config import COLUMNS, HOP, receptive_frames
from models.cosyvoice2.hift_runs import vocoded_and_watched
from tests.cosyvoice2_hift import SMALL, Floats, drawn, original, original_spectrogram, weights_of
from tests.onnx_runs import snr_db


def har_of(source: Floats) -> torch.Tensor:
    """Real and imaginary parts by torch."""
    window = torch.hann_window(16)
    spectrum = torch.stft(torch.from_numpy(source), 16, 4, window=window, return_complex=True)
    return torch.cat([spectrum.real, spectrum.imag], 1)


def small() -> Hift:
    return hift_of(weights_of(), SMALL)


@pytest.mark.parametrize("frames", [2, 13])
def test_hift_is_the_originals(frames: int) -> None:
    mel, source = drawn((1, SMALL.mels, frames), 1, 3.0), drawn((1, HOP * frames), 2, 0.1)
    owed = original_spectrogram(original(), mel, source)
    got = small()(torch.from_numpy(mel), har_of(source)).numpy()
    assert got.shape == (1, 18, COLUMNS * frames + 1)
    assert snr_db(owed, got) > 120


def test_snake_is_by_hand() -> None:
    snake = Snake(2)
    snake.alpha.data = torch.tensor([0.5, 2.0])
    got = snake(torch.tensor([[[1.0], [1.0]]])).flatten().tolist()
    assert got == pytest.approx([1 + np.sin(0.5) ** 2 / 0.5, 1 + np.sin(2.0) ** 2 / 2], rel=1e-6)


@pytest.mark.parametrize(("stride", "taps"), [(15, 30), (3, 6), (1, 1)])
def test_source_down_is_a_strided_convolution(stride: int, taps: int) -> None:
    down = SourceDown(18, 4, stride)
    weight, bias = torch.from_numpy(drawn((4, 18, taps), 3)), torch.from_numpy(drawn((4,), 4))
    down.load_state_dict({"weight": weight, "bias": bias})
    har = torch.from_numpy(drawn((1, 18, 6 * 15 + 1), 5))
    owed = functional.conv1d(har, weight, bias, stride=stride, padding=stride // 2)
    assert owed.shape[-1] == (6 * 15 // stride if stride > 1 else 91)
    assert snr_db(owed.numpy(), down(har).detach().numpy()) > 120


def test_column_depends_on_its_receptive_field_and_on_nothing_beyond() -> None:
    frames, place, hift = 40, 20, small()
    mel = torch.from_numpy(drawn((1, SMALL.mels, frames), 1, 3.0))
    har = har_of(drawn((1, HOP * frames), 2, 0.1))
    moved = mel.clone()
    moved[..., place] += 1
    changed = (hift(mel, har) != hift(moved, har)).any(dim=1)[0].nonzero().flatten()
    reach = receptive_frames()
    assert COLUMNS * (place - reach) <= changed.min() < COLUMNS * (place - reach + 2)
    assert COLUMNS * (place + reach - 1) <= changed.max() <= COLUMNS * (place + reach + 1)


def test_windows_with_their_receptive_field_are_the_whole() -> None:
    # The walk of a board that has the whole utterance: windows of 40 frames emit 12.
    frames, reach, hift = 70, receptive_frames(), small()
    mel, har = drawn((1, SMALL.mels, frames), 1, 3.0), har_of(drawn((1, HOP * frames), 2, 0.1)).numpy()

    def run(part: Floats, columns: Floats, valid: int) -> Floats:
        return vocoded_and_watched(hift, part, columns)[0]

    walked = walk_spectrogram(run, mel, har, 40, reach, reach, COLUMNS)
    assert snr_db(run(mel, har, frames), walked) > 100
