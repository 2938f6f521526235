from __future__ import annotations

import sys

import numpy as np
import torch

from tests.kokoro_reference import kokoro_module


def test_kokoro_module_is_the_originals_without_its_package_being_run() -> None:
    generator = kokoro_module("istftnet").Generator
    assert generator.__module__ == "kokoro.istftnet"
    assert not {"kokoro", "kokoro.istftnet", "kokoro.pipeline", "loguru"} & set(sys.modules)
    # Only the real transformers may be there (Qwen3's original needs it): a stand-in has no place that it came from.
    transformers = sys.modules.get("transformers")
    assert transformers is None or transformers.__spec__ is not None


def test_kokoro_module_is_one_when_loaded_twice_or_by_another() -> None:
    assert kokoro_module("modules").AdainResBlk1d is kokoro_module("istftnet").AdainResBlk1d


def test_kokoro_custom_stft_gives_the_magnitudes_of_a_frame() -> None:
    samples = np.random.default_rng(0).standard_normal(200, dtype=np.float32)
    stft = kokoro_module("custom_stft").CustomSTFT(filter_length=20, hop_length=5, win_length=20)
    magnitude, _ = stft.transform(torch.from_numpy(samples)[None])
    # Frame 7 is centred on sample 35, under a periodic Hann window.
    frame = samples[25:45] * (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(20) / 20))
    np.testing.assert_allclose(magnitude[0, :, 7].numpy(), np.abs(np.fft.rfft(frame)), atol=1e-5)
