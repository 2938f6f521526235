"""The transform of columns that come in pieces, against torch's of all of them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from rknn_tts_runtime import istft
from rknn_tts_runtime.istft_stream import IstftStream

from gates.snr import snr_db

Floats = NDArray[np.float32]


def raw_spectrogram(columns: int, n_fft: int) -> Floats:
    draw = np.random.default_rng(columns)
    return draw.normal(0, 1.5, (1, n_fft + 2, columns)).astype(np.float32)


def streamed(raw: Floats, n_fft: int, hop: int, cuts: list[int]) -> list[Floats]:
    stream = IstftStream(n_fft, hop)
    pieces = [stream.push(raw[..., start:stop]) for start, stop in pairwise([0, *cuts, raw.shape[-1]])]
    return [*pieces, stream.finish()]


def of_torch(raw: Floats, n_fft: int, hop: int) -> NDArray[np.float64]:
    half = n_fft // 2 + 1
    rows = torch.from_numpy(raw[0].astype(np.float64))
    spectrum = torch.polar(rows[:half].exp(), rows[half:].sin())
    window = torch.hann_window(n_fft, dtype=torch.float64)
    samples: NDArray[np.float64] = torch.istft(spectrum[None], n_fft, hop, n_fft, window).numpy()[0]
    return samples


@pytest.mark.parametrize(("n_fft", "hop"), [(20, 5), (16, 4), (8, 4), (12, 4), (12, 2)])
@pytest.mark.parametrize("cuts", [[], [1], [1, 2, 3, 4, 5, 6], [3, 3, 30], [60, 62]], ids=str)
def test_pieces_give_the_transform_of_all(n_fft: int, hop: int, cuts: list[int]) -> None:
    raw = raw_spectrogram(64, n_fft)
    samples = np.concatenate(streamed(raw, n_fft, hop, cuts))
    assert samples.dtype == np.float32
    assert snr_db(of_torch(raw, n_fft, hop), samples) >= 120
    np.testing.assert_array_almost_equal_nulp(samples, istft(raw, n_fft, hop), nulp=4)


@pytest.mark.parametrize("columns", [1, 2, 3, 4, 5])
def test_a_stream_of_few_columns_is_whole(columns: int) -> None:
    raw = raw_spectrogram(columns, 20)
    samples = np.concatenate(streamed(raw, 20, 5, list(range(1, columns))))
    assert samples.shape == (5 * (columns - 1),)
    np.testing.assert_array_almost_equal_nulp(samples, istft(raw), nulp=4)


def test_samples_come_as_soon_as_they_are_final() -> None:
    # With F columns the samples before 5 F are final, of which the first ten are none of the signal's.
    raw = raw_spectrogram(9, 20)
    assert [piece.size for piece in streamed(raw, 20, 5, [1, 2, 3, 7])] == [0, 0, 5, 20, 10, 5]


def test_a_stream_without_columns_has_no_samples() -> None:
    stream = IstftStream()
    assert stream.push(np.zeros((1, 22, 0), np.float32)).size == 0
    assert stream.finish().size == 0


def test_columns_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\[1, 20, 3\] is not \[1, 22, F\]"):
        IstftStream().push(np.zeros((1, 20, 3), np.float32))


def test_a_hop_that_leaves_gaps_is_refused() -> None:
    with pytest.raises(ValueError, match="a hop must divide"):
        IstftStream(20, 20)
