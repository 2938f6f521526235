from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest
import torch

from contracts.contract import Cache
from models.qwen3.cache import KINDS, MINIMAL, REFERENCE, SPARE, cache_layout, reference_numel, wave_history
from models.qwen3.config import TRUE_CONFIG, DecoderConfig
from tests.models.qwen3.originals import random, random_decoder
from tests.qwen3_configs import REDUCED

OTHER_RATES = replace(REDUCED, upsample_rates=(9, 2, 3), upsampling_ratios=(3, 2, 2))
TWO_BLOCKS = replace(REDUCED, upsample_rates=(8, 3))


def shapes(layout: Cache) -> dict[str, tuple[int, ...]]:
    return {part.name: part.shape for part in layout.layout}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("config", [TRUE_CONFIG, REDUCED, OTHER_RATES], ids=["true", "reduced", "other rates"])
def test_slices_follow_each_other_and_fill_the_cache(config: DecoderConfig, kind: str) -> None:
    layout = cache_layout(config, kind)
    end = 0
    for part in layout.layout:
        assert part.offset == end
        assert all(size > 0 for size in part.shape)
        end += prod(part.shape)
    assert end == layout.numel
    assert len(shapes(layout)) == len(layout.layout)  # no name twice


def test_the_published_decoders_cache_is_as_large_as_the_references() -> None:
    layout = cache_layout(TRUE_CONFIG, REFERENCE)
    assert layout.numel == reference_numel(TRUE_CONFIG) == 1_303_424


def test_the_published_decoders_keys_and_values_are_as_the_references() -> None:
    kept = {name: shape for name, shape in shapes(cache_layout(TRUE_CONFIG, MINIMAL)).items() if "layers." in name}
    assert set(kept) == {f"layers.{layer}.{part}" for layer in range(8) for part in ("keys", "values")}
    assert set(kept.values()) == {(16, 71, 64)}
    assert sum(map(prod, kept.values())) == 1_163_264


def test_the_published_decoders_tails_are_what_its_convolutions_see() -> None:
    """Kernel 3 and 7, dilations 1, 3 and 9; the widths of decoder_config."""
    tails = {name: shape for name, shape in shapes(cache_layout(TRUE_CONFIG, MINIMAL)).items() if "layers." not in name}
    assert tails == {
        "pre_conv": (512, 2),
        "upsample.0": (1024, 6),
        "upsample.1": (1024, 6),
        "decoder.0": (1024, 6),
        "decoder.1.up": (1536, 1),
        "decoder.1.units.0": (768, 6),
        "decoder.1.units.1": (768, 18),
        "decoder.1.units.2": (768, 54),
        "wave": (768, 23),
        "valid": (71,),
    }


@pytest.mark.parametrize("config", [TRUE_CONFIG, REDUCED], ids=["true", "reduced"])
def test_the_minimal_cache_is_the_references_without_what_is_unused(config: DecoderConfig) -> None:
    small, large = cache_layout(config, MINIMAL), cache_layout(config, REFERENCE)
    assert large.layout[: len(small.layout)] == small.layout
    (spare,) = large.layout[len(small.layout) :]
    assert (spare.name, spare.offset, spare.shape) == (SPARE, small.numel, (large.numel - small.numel,))
    assert small.numel < large.numel


def test_a_cache_of_the_references_kind_holds_all_that_is_needed_where_that_is_more() -> None:
    """A block that upsamples by 1 reaches back farther than its tails are long."""
    config = replace(REDUCED, upsample_rates=(8, 1))
    assert cache_layout(config, REFERENCE) == cache_layout(config, MINIMAL)
    assert cache_layout(config, REFERENCE).numel > reference_numel(config)


def test_the_published_decoder_keeps_23_frames_of_the_first_block() -> None:
    assert wave_history(TRUE_CONFIG) == 23


@pytest.mark.parametrize(
    "config", [REDUCED, OTHER_RATES, TWO_BLOCKS], ids=["published rates", "other rates", "two blocks"]
)
def test_a_frame_behind_the_first_block_reaches_as_far_as_the_wave_history_and_no_farther(
    config: DecoderConfig,
) -> None:
    """Measured on the decoder itself: which frames the samples of frame 70 have a slope by."""
    blocks = random_decoder(config).decoder[2:]
    rate, at = prod(config.upsample_rates[1:]), 70
    frames = (0.3 * random(1, config.block_channels(1), 80)).requires_grad_()
    audio = blocks(frames)[0, 0]
    assert len(audio) == 80 * rate
    seen = []
    for sample in range(at * rate, (at + 1) * rate):
        (slope,) = torch.autograd.grad(audio[sample], frames, retain_graph=True)
        seen.append(slope[0].abs().sum(dim=0).nonzero()[:, 0])
    assert min(int(each.min()) for each in seen) == at - wave_history(config)
    assert max(int(each.max()) for each in seen) == at


def test_samples_do_not_change_with_frames_older_than_the_wave_history() -> None:
    blocks, at = random_decoder().decoder[2:], 40
    frames = 0.3 * random(1, 48, 64)
    older, oldest = frames.clone(), frames.clone()
    older[..., : at - 23] = 100 * random(1, 48, at - 23, seed=1)
    oldest[..., at - 23] += 100
    with torch.no_grad():
        wanted, same, other = (blocks(each)[..., at * 60 :] for each in (frames, older, oldest))
    torch.testing.assert_close(same, wanted, rtol=0, atol=0)
    assert not torch.equal(other[..., :60], wanted[..., :60])
