"""Runs of the decoder on arrays, against the reference's module and numpy."""

from __future__ import annotations

from dataclasses import replace
from math import pi

import numpy as np
import pytest
import torch

from models.qwen3.cache import MINIMAL, cache_layout
from models.qwen3.layers import SnakeBeta
from models.qwen3.runs import quantized, stepped, voiced, voiced_and_watched
from models.qwen3.step import Step, cache_shape
from tests.models.qwen3.originals import EXACT_DB, original, random_codes, random_decoder
from tests.onnx_runs import snr_db
from tests.qwen3_configs import REDUCED

NARROW = replace(REDUCED, decoder_dim=32)
COUNT = 6


def test_quantized_and_voiced_are_the_references_decode() -> None:
    codes = random_codes(COUNT, NARROW)
    with torch.no_grad():
        wanted = original(NARROW)(codes).numpy()
    hidden = quantized(random_decoder(NARROW), codes.numpy())
    assert hidden.shape == (1, NARROW.codebook_dim, COUNT)
    assert snr_db(wanted, voiced(random_decoder(NARROW), hidden)) >= EXACT_DB


def test_arrays_that_are_no_rows_in_memory_are_taken() -> None:
    codes = random_codes(COUNT, NARROW).numpy()
    mirrored = np.asfortranarray(codes)
    decoder = random_decoder(NARROW)
    np.testing.assert_array_equal(quantized(decoder, codes), quantized(decoder, mirrored))
    hidden = quantized(decoder, random_codes(2 * COUNT, NARROW).numpy())[..., ::2]
    np.testing.assert_array_equal(voiced(decoder, hidden), voiced(decoder, hidden.copy()))


def test_voiced_and_watched_tells_the_largest_argument_of_each_sine_over_pi() -> None:
    """Against the reference's module, whose SnakeBetas take the same inputs."""
    codes, seen = random_codes(COUNT, NARROW), []

    def look(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        scale = np.exp(module.get_parameter("alpha").numpy())
        seen.append(np.abs(inputs[0].numpy()[0]).max(axis=1) * scale / pi)

    hooks = [
        module.register_forward_pre_hook(look)
        for module in original(NARROW).modules()
        if type(module).__name__ == "SnakeBeta"
    ]
    try:
        with torch.no_grad():
            original(NARROW)(codes)
    finally:
        for hook in hooks:
            hook.remove()
    decoder = random_decoder(NARROW)
    audio, largest = voiced_and_watched(decoder, quantized(decoder, codes.numpy()))
    assert len(largest) == 29
    for got, wanted in zip(largest, seen, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-3)
    np.testing.assert_array_equal(audio, voiced(decoder, quantized(decoder, codes.numpy())))


def test_voiced_and_watched_leaves_no_hook_when_decoding_fails() -> None:
    decoder = random_decoder(NARROW)
    with pytest.raises(RuntimeError):
        voiced_and_watched(decoder, np.zeros((1, 3, 4), np.float32))
    assert not any(module._forward_pre_hooks for module in decoder.modules() if isinstance(module, SnakeBeta))


def test_stepped_gives_audio_and_cache_of_a_feed_in_its_order() -> None:
    layout = cache_layout(NARROW, MINIMAL)
    step = Step(random_decoder(NARROW), layout, COUNT).eval()
    hidden = quantized(random_decoder(NARROW), random_codes(COUNT, NARROW).numpy())
    feed = {"hidden": hidden[:, :, None], "cache": np.zeros(cache_shape(NARROW, layout), np.float32)}
    audio, cache = stepped(step, feed)
    assert cache.shape == feed["cache"].shape
    assert snr_db(voiced(random_decoder(NARROW), hidden), audio.reshape(1, 1, -1)) >= 100
