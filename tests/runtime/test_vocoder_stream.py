"""A stream of mel frames through windows: by hand on networks of a line, and as the original streams its own."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from rknn_tts_runtime import VocoderStream, istft, vocoder_samples

from models.cosyvoice2.f0 import pitch_of
from models.cosyvoice2.hift import hift_of
from models.cosyvoice2.hift_config import HARMONICS, HOP
from models.cosyvoice2.hift_runs import excited, pitched, vocoded_and_watched
from models.cosyvoice2.source import Excitation
from tests.cosyvoice2_hift import SMALL, drawn, original, weights_of
from tests.onnx_runs import snr_db

Floats = NDArray[np.float32]


class Toy:
    """A vocoder whose samples are mel and source, sample by sample, and which notes its windows.

    Its pitch is the mel, its source counts samples from what was turned before; `vocoder_samples` is stood in for.
    """

    def __init__(self) -> None:
        self.windows: list[Floats] = []
        self.known: list[int] = []
        self.before: list[float] = []

    def pitch(self, mel: Floats) -> Floats:
        self.windows.append(mel)
        return mel[:, 0]

    def source(self, f0: Floats, before: Floats, known: Floats) -> tuple[Floats, Floats, Floats]:
        self.known.append(known.shape[1])
        self.before.append(float(before[0, 0]))
        own = np.repeat(f0, HOP, axis=1)
        samples = np.concatenate([known, own[:, known.shape[1] :]], axis=1)
        return samples, samples, np.repeat(f0[..., None], 2, axis=2)

    def vocoder(self, mel: Floats, har: Floats) -> Floats:
        return har + np.repeat(mel[:, 0], HOP, axis=1)

    def stream(self, **options: Any) -> VocoderStream:
        return VocoderStream(self.pitch, self.source, self.vocoder, (32, 40), harmonics=2, **options)


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Toy:
    monkeypatch.setattr("rknn_tts_runtime.vocoder_stream.vocoder_samples", lambda made: made[0])
    return Toy()


def frames(start: int, stop: int) -> Floats:
    return np.arange(start, stop, dtype=np.float32)[None, None]


def without_fades(samples: Floats, seams: list[int]) -> Floats:
    """One sample of each frame, without those of the eight before each seam."""
    faded = {frame for seam in seams for frame in range(seam - 8, seam)}
    return samples[::HOP][[frame for frame in range(samples.size // HOP) if frame not in faded]]


def test_chunks_of_32_are_decoded_behind_8_and_hold_8_back(toy: Toy) -> None:
    stream = toy.stream()
    sizes = [stream.push(frames(start, start + 32), last=start == 64).size // HOP for start in (0, 32, 64)]
    assert sizes == [24, 32, 40]
    assert [window.shape[-1] for window in toy.windows] == [32, 40, 40]
    assert [window[0, 0, 0] for window in toy.windows] == [0, 24, 56]
    assert toy.known == [0, 8 * HOP - HOP // 2, 8 * HOP - HOP // 2]


def test_samples_are_those_of_the_whole_where_nothing_fades(toy: Toy) -> None:
    stream = toy.stream()
    samples = np.concatenate([stream.push(frames(start, start + 32), last=start == 64) for start in (0, 32, 64)])
    whole = 2 * np.repeat(frames(0, 96)[0, 0], HOP)
    assert samples.size == whole.size
    np.testing.assert_array_equal(without_fades(samples, [32, 64]), without_fades(whole, [32, 64]))


def test_seam_is_the_sum_under_both_halves_of_a_hamming_window(toy: Toy) -> None:
    stream = toy.stream()
    samples = np.concatenate([stream.push(frames(0, 32)), stream.push(frames(32, 64), last=True)])
    window = np.hamming(2 * 8 * HOP)
    both = window[: 8 * HOP] + window[8 * HOP :]  # of two windows that agree
    owed = 2 * np.repeat(frames(24, 32)[0, 0], HOP) * both
    np.testing.assert_allclose(samples[24 * HOP : 32 * HOP], owed, rtol=1e-5)


def test_last_chunk_that_is_short_is_decoded_behind_more(toy: Toy) -> None:
    stream = toy.stream()
    stream.push(frames(0, 32))
    assert stream.push(frames(32, 37), last=True).size == (8 + 5) * HOP
    np.testing.assert_array_equal(toy.windows[1], frames(5, 37))
    assert toy.known[1] == 27 * HOP - HOP // 2


def test_stream_shorter_than_the_narrowest_window_is_padded_with_silence(toy: Toy) -> None:
    samples = toy.stream().push(frames(1, 11), last=True)
    np.testing.assert_array_equal(samples[::HOP], 2 * frames(1, 11)[0, 0])
    np.testing.assert_allclose(toy.windows[0][0, 0, 10:], np.log(1e-5), rtol=1e-6)


def test_chunk_wider_than_the_widest_window_is_taken_in_parts(toy: Toy) -> None:
    samples = toy.stream().push(frames(0, 100), last=True)
    assert samples.size == 100 * HOP
    assert [window.shape[-1] for window in toy.windows] == [40, 40, 40]
    assert [window[0, 0, -1] for window in toy.windows] == [39, 71, 99]


def test_end_without_frames_gives_what_was_held_back(toy: Toy) -> None:
    stream = toy.stream()
    stream.push(frames(0, 32))
    assert stream.push(frames(0, 0), last=True)[::HOP].tolist() == [2.0 * frame for frame in range(24, 32)]


def test_phases_go_on_from_the_frame_before_the_window(toy: Toy) -> None:
    stream = toy.stream()
    stream.push(frames(7, 39))
    stream.push(frames(39, 71))
    assert toy.before == [0, 7 + 23]  # what the toy has turned at a frame is its mel; the second starts at frame 24


def test_phases_start_at_zero_in_every_window_as_upstream(toy: Toy) -> None:
    stream = toy.stream(carries_phase=False)
    stream.push(frames(7, 39))
    stream.push(frames(39, 71))
    assert toy.before == [0, 0]
    assert toy.known == [0, 8 * HOP]  # all of them


def sources_of_a_stream(pitch: Floats, edge: float) -> list[tuple[int, Floats]]:
    """The harmonic source of each window of a stream in chunks of 32, of pitch [1, N] without noise, and its end.

    `edge` is the share by which the last five pitches of a window are off.
    """
    excitation, made = Excitation(weights_of()), list[tuple[int, Floats]]()

    def run_pitch(mel: Floats) -> Floats:
        stop = 32 * (len(made) + 1)
        found = pitch[:, stop - mel.shape[-1] : stop].copy()
        found[:, -5:] *= 1 + edge
        return found

    def run_source(f0: Floats, before: Floats, known: Floats) -> tuple[Floats, Floats, Floats]:
        parts = excited(excitation, f0, np.zeros((1, f0.shape[1] * HOP, HARMONICS), np.float32), before, known)
        made.append((32 * (len(made) + 1), parts[1][0]))
        return parts

    def run_vocoder(mel: Floats, har: Floats) -> Floats:
        return np.zeros((1, 18, 120 * mel.shape[-1] + 1), np.float32)

    stream = VocoderStream(run_pitch, run_source, run_vocoder, (32, 40))
    for _ in range(pitch.shape[1] // 32):
        stream.push(np.zeros((1, 2, 32), np.float32))
    return made


def whole_source(pitch: Floats) -> Floats:
    noise, nothing = np.zeros((1, pitch.shape[1] * HOP, HARMONICS), np.float32), np.zeros((1, HARMONICS), np.float32)
    _, source, _ = excited(Excitation(weights_of()), pitch, noise, nothing, np.zeros((1, 0), np.float32))
    return np.asarray(source[0], np.float32)


PITCH = (150 + 40 * np.sin(np.arange(96) / 7)).astype(np.float32)[None]


def test_source_of_a_stream_is_that_of_the_whole() -> None:
    whole = whole_source(PITCH)
    for stop, source in sources_of_a_stream(PITCH, edge=0.0):
        owed = whole[stop * HOP - source.size : stop * HOP]
        held = HOP // 2 if stop < PITCH.shape[1] else 0  # behind a window's last middle no pitch tells how to go on
        assert snr_db(owed[: owed.size - held], source[: source.size - held]) > 100


def test_source_does_not_jump_where_a_window_sees_another_pitch_than_the_one_before() -> None:
    largest = np.abs(np.diff(whole_source(1.05 * PITCH))).max()
    for _, source in sources_of_a_stream(PITCH, edge=0.05):
        assert np.abs(np.diff(source)).max() <= largest


@pytest.mark.parametrize("widths", [(), (8,)])
def test_windows_that_hold_no_more_than_the_overlap_are_refused(widths: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="must hold more than the 8 frames of overlap"):
        VocoderStream(Toy().pitch, Toy().source, Toy().vocoder, widths)


def test_vocoder_samples_cuts_magnitudes_and_samples() -> None:
    spectrogram = np.zeros((1, 18, 31), np.float32)
    spectrogram[:, 1] = 9.0  # above log(100)
    cut = spectrogram.copy()
    cut[:, 1] = np.log(100.0)
    np.testing.assert_allclose(vocoder_samples(spectrogram), np.clip(istft(cut, 16, 4), -0.99, 0.99), atol=1e-6)
    assert spectrogram[0, 1, 0] == 9.0


def upstream_streams(model: Any, mel: Floats, chunks: list[int]) -> Floats:
    """A stream as the original's token2wav decodes it: cached mel and source, and fades by a Hamming window."""
    fade = torch.from_numpy(np.hamming(2 * 8 * HOP).astype(np.float32))
    made, start, kept = [], 0, None
    for place, count in enumerate(chunks):
        part = torch.from_numpy(mel[..., start : start + count])
        source = torch.zeros(1, 1, 0)
        if kept is not None:
            part, source = torch.cat([kept[0], part], dim=2), kept[1]
        speech, source = model.inference(speech_feat=part, cache_source=source)
        if kept is not None:
            joined = speech[:, : 8 * HOP] * fade[: 8 * HOP] + kept[2] * fade[8 * HOP :]
            speech = torch.cat([joined, speech[:, 8 * HOP :]], dim=1)
        kept = (part[..., -8:], source[..., -8 * HOP :], speech[:, -8 * HOP :])
        last = place == len(chunks) - 1
        made.append(speech if last else speech[:, : -8 * HOP])
        start += count
    return torch.cat(made, dim=1)[0].numpy()


def test_stream_is_the_originals() -> None:
    mel = np.clip(drawn((1, SMALL.mels, 96), 1, 3.0) - 5, -11.5, 2.0)
    weights = weights_of()
    hift, pitch, excitation = hift_of(weights, SMALL), pitch_of(weights, SMALL), Excitation(weights)

    def source(f0: Floats, before: Floats, known: Floats) -> tuple[Floats, Floats, Floats]:
        return excited(excitation, f0, np.zeros((1, f0.shape[1] * HOP, HARMONICS), np.float32), before, known)

    stream = VocoderStream(
        lambda window: pitched(pitch, window),
        source,
        lambda window, har: vocoded_and_watched(hift, window, har)[0],
        (32, 40),
        carries_phase=False,
    )
    got = np.concatenate([stream.push(mel[..., start : start + 32], start == 64) for start in (0, 32, 64)])
    with patch.object(torch, "randn_like", torch.zeros_like):
        owed = upstream_streams(original(), mel, [32, 32, 32])
    assert got.shape == owed.shape
    assert snr_db(owed, got) > 60  # the original's phases are summed in single precision
