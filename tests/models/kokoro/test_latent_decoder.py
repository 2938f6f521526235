from __future__ import annotations

import torch

from models.kokoro.latent_decoder import LatentDecoder
from tests.kokoro_writer.checkpoint import SMALL
from tests.models.kokoro.checkpoints import drawn, part, snr_db, tame_weights
from tests.models.kokoro.originals import original, original_seam, reference_decoder

FRAMES = 6


def test_latent_decoder_is_the_references() -> None:
    weights = tame_weights(SMALL)
    text, style = drawn(1, SMALL.hidden_dim, FRAMES), drawn(1, SMALL.style_dim, seed=1)
    pitch, energy = 120 + 50 * drawn(1, 2 * FRAMES, seed=2), drawn(1, 2 * FRAMES, seed=3)
    with torch.inference_mode():
        wanted = original_seam(original(reference_decoder, weights, "decoder"), text, pitch, energy, style)[0]
        got = LatentDecoder(part(weights, "decoder"))(text, pitch, energy, style)
    assert got.shape == (1, SMALL.istftnet.upsample_initial_channel, 2 * FRAMES)
    assert snr_db(wanted, got) > 120
