"""The whole host against the original's modules, put together as its `KModel.forward_with_tokens` does.

In double precision, so that what remains is what was rounded in the weights: weight norm is folded to single precision.
"""

from __future__ import annotations

from functools import cache, partial
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

from models.kokoro.albert import Albert
from models.kokoro.config import KokoroConfig
from models.kokoro.generator_weights import under
from models.kokoro.host import Host, Seam, token_of_frame
from tests.kokoro_reference import kokoro_module
from tests.kokoro_writer.checkpoint import SMALL, Weights
from tests.models.kokoro.checkpoints import drawn, part, snr_db, tame_weights
from tests.models.kokoro.originals import original, original_seam, reference_decoder

TOKENS = torch.tensor([[0, 5, 2, 9, 9, 1, 0]])
SPEED = torch.tensor([0.2], dtype=torch.float64)


@cache
def weights() -> Weights:
    return tame_weights(SMALL)


def voice_style(config: KokoroConfig) -> Tensor:
    return drawn(1, 2 * config.style_dim, seed=3).double()


@cache
def seam() -> Seam:
    noise = torch.zeros(1, 10 * SMALL.max_dur * TOKENS.shape[1] * SMALL.istftnet.hop, 9, dtype=torch.float64)
    with torch.inference_mode():
        made: Seam = Host(weights(), SMALL).double()(TOKENS, voice_style(SMALL), SPEED, noise)
    return made


@cache
def wanted() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The reference's x, decoder's style, pitch and durations."""
    modules, held, tokens = kokoro_module("modules"), weights(), TOKENS.shape[1]
    predictor = original(
        lambda: modules.ProsodyPredictor(SMALL.style_dim, SMALL.hidden_dim, SMALL.n_layer, SMALL.max_dur),
        held,
        "predictor",
    )
    encoder = original(
        lambda: modules.TextEncoder(SMALL.hidden_dim, SMALL.text_encoder_kernel_size, SMALL.n_layer, SMALL.n_token),
        held,
        "text_encoder",
    )
    decoder = original(reference_decoder, held, "decoder")
    for module in (predictor, encoder, decoder):
        module.double()
    whole, no_mask = torch.tensor([tokens]), torch.zeros(1, tokens, dtype=torch.bool)
    voice, manner = voice_style(SMALL).chunk(2, 1)
    with torch.inference_mode():
        # ALBERT has its own test; the original takes it from transformers.
        hidden = Albert(part(held, "bert"), SMALL.plbert).double()(TOKENS)
        narrow = under(held, "bert_encoder.module")
        text = hidden @ torch.from_numpy(narrow["weight"].T).double() + torch.from_numpy(narrow["bias"])
        encoded = predictor.text_encoder(text.transpose(1, 2), manner, whole, no_mask)
        chances = torch.sigmoid(predictor.duration_proj(predictor.lstm(encoded)[0]))
        durations = torch.round(chances.sum(-1) / SPEED).clamp(min=1).long()
        alignment = np.repeat(np.eye(tokens), durations[0].numpy(), axis=1)
        aligned = torch.from_numpy(alignment)[None]
        pitch, energy = predictor.F0Ntrain(encoded.transpose(1, 2) @ aligned, manner)
        with patch.object(torch, "zeros", partial(torch.zeros, dtype=torch.float64)):  # which its padding is made of
            spoken = encoder(TOKENS, whole, no_mask) @ aligned
        x, style, given = original_seam(decoder, spoken, pitch, energy, voice)
    assert torch.equal(pitch, given)
    return x, style, pitch, durations


def test_host_has_the_originals_durations_and_style() -> None:
    _, style, _, durations = wanted()
    assert torch.equal(seam().durations, durations)
    assert len(set(durations[0].tolist())) > 1
    assert torch.equal(seam().style, style)


def test_host_has_the_originals_latent() -> None:
    x = wanted()[0]
    assert x.shape[-1] == 2 * int(seam().durations.sum())
    assert snr_db(x, seam().x) > 130


def test_host_has_the_harmonics_of_the_originals_pitch() -> None:
    sizes, (_, _, pitch, _) = SMALL.istftnet, wanted()
    source = kokoro_module("istftnet").SourceModuleHnNSF(24000, sizes.hop, 8, voiced_threshod=10)
    held = under(weights(), "decoder.module.generator.m_source")
    source.load_state_dict({name: torch.from_numpy(array) for name, array in held.items()})
    source.l_sin_gen.noise_std = 0.0
    assert pitch.min() > 10, "a frame without a voice would be noise in the original"
    with torch.inference_mode():
        excitation = source.double()(pitch.repeat_interleave(sizes.hop, 1).unsqueeze(-1))[0].squeeze(-1)
    bins = kokoro_module("istftnet").TorchSTFT(sizes.gen_istft_n_fft, sizes.gen_istft_hop_size, sizes.gen_istft_n_fft)
    bins.window = bins.window.double()
    magnitude, phase = bins.transform(excitation)
    assert seam().har.shape == (1, 2 * sizes.bins, sizes.columns_per_frame * pitch.shape[1] + 1)
    # What was rounded in the weights is summed up in the phases of 182 frames.
    assert snr_db(spectrum(magnitude, phase), spectrum(*seam().har.chunk(2, 1))) > 100


def spectrum(magnitude: Tensor, phase: Tensor) -> Tensor:
    return torch.view_as_real(torch.polar(magnitude, phase))


def test_token_of_frame_repeats_each_token_for_its_duration() -> None:
    assert token_of_frame(torch.tensor([[2, 1, 3]])).tolist() == [0, 0, 1, 2, 2, 2]
