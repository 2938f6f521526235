from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest
import torch

from contracts.contract import Cache
from models.qwen3.cache import (
    KINDS,
    MINIMAL,
    REFERENCE,
    SPARE,
    VALID,
    cache_layout,
    group_width,
    reference_numel,
    row_width,
    valid_rows,
    wave_frames,
    wave_history,
)
from models.qwen3.config import TRUE_CONFIG, DecoderConfig
from tests.models.qwen3.originals import random, random_decoder
from tests.qwen3_configs import REDUCED, SIMULATED

OTHER_RATES = replace(REDUCED, upsample_rates=(9, 2, 3), upsampling_ratios=(3, 2, 2))
TWO_BLOCKS = replace(REDUCED, upsample_rates=(8, 3))
ROWS = (VALID, SPARE)
"""Slices that are no signal."""


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
    assert set(kept.values()) == {(71, 16 * 64)}
    assert sum(map(prod, kept.values())) == 1_163_264


def test_the_published_decoders_tails_are_what_its_convolutions_see() -> None:
    """Kernel 3 and 7, dilations 1, 3 and 9; the widths of decoder_config."""
    tails = {name: shape for name, shape in shapes(cache_layout(TRUE_CONFIG, MINIMAL)).items() if "layers." not in name}
    assert tails == {
        "pre_conv": (2, 512),
        "upsample.0": (6, 1024),
        "upsample.1": (6, 1024),
        "decoder.0": (6, 1024),
        "decoder.1.up": (1, 1536),
        "decoder.1.units.0": (6, 768),
        "decoder.1.units.1": (18, 768),
        "decoder.1.units.2": (54, 768),
        "wave": (26, 768),
        "valid": (72, 16),
    }


def test_the_published_decoders_cache_is_rows_of_16_an_eighth_of_them_whole() -> None:
    assert row_width(TRUE_CONFIG) == 16
    assert 1_303_424 == 16 * 81_464 == 16 * 8 * 10_183
    minimal = cache_layout(TRUE_CONFIG, MINIMAL)
    # 8 layers of keys and values, tails, wave, valid.
    slices = 1_163_264 + 2 * 512 + 18 * 1024 + 1536 + 78 * 768 + 26 * 768 + 72 * 16
    assert slices == 1_265_280 == 16 * 8 * 9_885
    assert minimal.numel == slices


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "config",
    [TRUE_CONFIG, SIMULATED, REDUCED, OTHER_RATES, TWO_BLOCKS],
    ids=["true", "simulated", "reduced", "other rates", "two blocks"],
)
def test_every_slice_is_whole_rows_and_all_of_them_a_multiple_of_8(config: DecoderConfig, kind: str) -> None:
    layout, width = cache_layout(config, kind), row_width(config)
    assert all(each.offset % width == 0 and prod(each.shape) % width == 0 for each in layout.layout)
    assert layout.numel % width == 0
    if kind == MINIMAL or config in (TRUE_CONFIG, SIMULATED):
        assert layout.numel // width % 8 == 0
    assert all(shape[1] % group_width(config) == 0 for name, shape in shapes(layout).items() if name not in ROWS)


def test_frames_and_tails_of_the_first_block_are_a_multiple_of_8_together() -> None:
    """6 + 18 + 54 + 26; the last kept frames are those that are needed."""
    for config in (TRUE_CONFIG, OTHER_RATES, TWO_BLOCKS):
        assert (78 + wave_frames(config)) % 8 == 0
        assert wave_history(config) <= wave_frames(config) < wave_history(config) + 8


@pytest.mark.parametrize(("window", "rows"), [(72, 72), (73, 72), (74, 80), (9, 8), (2, 8)])
def test_valid_has_rows_for_all_earlier_codes_of_a_window_in_groups_of_8(window: int, rows: int) -> None:
    assert valid_rows(replace(REDUCED, sliding_window=window)) == rows


@pytest.mark.parametrize("config", [TRUE_CONFIG, REDUCED], ids=["true", "reduced"])
def test_the_minimal_cache_is_the_references_without_what_is_unused(config: DecoderConfig) -> None:
    small, large = cache_layout(config, MINIMAL), cache_layout(config, REFERENCE)
    needed, (*others, spare) = [each for each in small.layout if each.name != SPARE], large.layout
    assert others == needed
    assert (spare.name, spare.offset) == (SPARE, sum(prod(each.shape) for each in needed))
    assert spare.shape == ((large.numel - spare.offset) // row_width(config), row_width(config))
    assert spare.offset <= small.numel < spare.offset + 8 * row_width(config)
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
