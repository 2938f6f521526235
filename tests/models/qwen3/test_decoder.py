from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from models.qwen3.config import TRUE_CONFIG, DecoderConfig
from models.qwen3.decoder import PREFIX, Decoder, decoded, decoder_of
from tests.models.qwen3.originals import EXACT_DB, original, random_codes, random_decoder, snr
from tests.qwen3_configs import REDUCED

CONFIGS = {
    "as published": REDUCED,
    "other rates": replace(REDUCED, upsample_rates=(5, 2, 3, 4), upsampling_ratios=(3, 2)),
    "three blocks": replace(REDUCED, upsample_rates=(4, 3, 2), upsampling_ratios=(2,)),
    "five blocks": replace(REDUCED, upsample_rates=(3, 2, 2, 2, 2), upsampling_ratios=(2, 2, 2), decoder_dim=128),
    "other heads": replace(REDUCED, num_attention_heads=3, num_key_value_heads=3, head_dim=12, hidden_size=40),
    "other constants": replace(REDUCED, rope_theta=300.0, rms_norm_eps=0.1, sliding_window=20, num_hidden_layers=3),
    "other codebooks": replace(REDUCED, num_quantizers=5, codebook_size=11, codebook_dim=24),
}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_a_whole_decode_gives_what_the_references_gives(config: DecoderConfig) -> None:
    codes = random_codes(110, config)
    with torch.no_grad():
        wanted, got = original(config)(codes), random_decoder(config)(codes)
    assert got.shape == (1, 1, 110 * config.samples_per_code)
    assert 0.01 < wanted.std() < 0.5  # neither silent nor clipped
    assert snr(wanted, got) >= EXACT_DB


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_names_and_shapes_are_the_references(config: DecoderConfig) -> None:
    ours, theirs = (made.state_dict() for made in (random_decoder(config), original(config)))
    assert {name: value.shape for name, value in ours.items()} == {name: value.shape for name, value in theirs.items()}


def test_the_published_decoder_has_its_114_million_parameters() -> None:
    with torch.device("meta"):
        made = Decoder(TRUE_CONFIG)
    assert sum(parameter.numel() for parameter in made.parameters()) == 114_323_137


def test_audio_is_clipped_to_one() -> None:
    decoder = decoder_of(arrays(), REDUCED)
    last = decoder.get_submodule("decoder.6.conv")
    last.get_parameter("weight").data = 30 * last.get_parameter("weight")
    codes = random_codes(20)
    with torch.no_grad():
        quiet, loud = random_decoder()(codes), decoder(codes)
    offset = last.get_parameter("bias")
    torch.testing.assert_close(loud, ((quiet - offset) * 30 + offset).clamp(-1, 1), rtol=1e-4, atol=1e-4)
    assert (loud.min(), loud.max()) == (-1, 1)


def test_the_seam_is_the_hidden_state_behind_the_quantizer() -> None:
    decoder, codes = random_decoder(), random_codes(20)
    with torch.no_grad():
        hidden = decoder.quantizer(codes)
        assert hidden.shape == (1, REDUCED.codebook_dim, 20)
        assert torch.equal(decoder.voiced(hidden), decoder(codes))


def test_a_code_changes_no_earlier_sample() -> None:
    codes = random_codes(40)
    later = codes.clone()
    later[:, :, 30] = (later[:, :, 30] + 1) % REDUCED.codebook_size
    with torch.no_grad():
        first, second = random_decoder()(codes), random_decoder()(later)
    assert torch.equal(first[..., : 30 * 1920], second[..., : 30 * 1920])
    assert not torch.equal(first[..., 30 * 1920 : 31 * 1920], second[..., 30 * 1920 : 31 * 1920])


def arrays() -> dict[str, NDArray[np.float32]]:
    return {f"{PREFIX}{name}": value.numpy() for name, value in random_decoder().state_dict().items()}


def test_a_decoder_of_a_checkpoint_has_its_weights_and_shares_them() -> None:
    weights = {name: value.copy() for name, value in arrays().items()}
    made, codes = decoder_of(weights, REDUCED), random_codes(30)
    assert not any(parameter.requires_grad for parameter in made.parameters())
    got = decoded(made, np.asarray(codes.numpy()))
    assert got.dtype == np.float32
    with torch.no_grad():
        wanted: Tensor = random_decoder()(codes)
    assert np.array_equal(got, wanted.numpy())
    for name, value in made.state_dict().items():
        assert np.shares_memory(value.numpy(), weights[PREFIX + name])


def test_a_decoder_is_of_all_its_tensors_and_no_others() -> None:
    short, long, other = arrays(), arrays(), arrays()
    del short[f"{PREFIX}pre_conv.conv.bias"]
    long[f"{PREFIX}pre_conv.conv.scale"] = np.zeros(1, np.float32)
    other[f"{PREFIX}pre_conv.conv.bias"] = np.zeros(1, np.float32)
    for weights in (short, long, other):
        with pytest.raises(RuntimeError, match=r"pre_conv\.conv\.(bias|scale)"):
            decoder_of(weights, REDUCED)
