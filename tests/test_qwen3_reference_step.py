"""The reference's step decodes what the whole decode does, and its cache is as large as the reference's."""

from __future__ import annotations

from math import log10

import pytest
import torch
from torch import Tensor

from converters.qwen3.stand_in import stand_in
from models.qwen3.cache import reference_numel
from models.qwen3.config import TRUE_CONFIG, DecoderConfig
from models.qwen3.decoder import Decoder, decoder_of
from tests.qwen3_configs import REDUCED
from tests.qwen3_reference_step import (
    CODES,
    SEAMS,
    ReferenceStep,
    exported,
    operators,
    reference_numel_walked,
    tables_at,
)

COUNT = 150
"""Codes of a stream: more than twice the window."""


@pytest.fixture(scope="module")
def decoder() -> Decoder:
    return decoder_of(stand_in(REDUCED, 0), REDUCED)


@pytest.fixture(scope="module")
def codes() -> Tensor:
    return torch.randint(0, REDUCED.codebook_size, (1, REDUCED.num_quantizers, COUNT), generator=torch.manual_seed(0))


def test_the_reference_cache_has_its_published_size() -> None:
    assert reference_numel_walked(TRUE_CONFIG) == 1_303_424  # family-facts


@pytest.mark.parametrize("config", [TRUE_CONFIG, REDUCED])
def test_our_account_of_the_reference_cache_is_what_its_step_reads(config: DecoderConfig) -> None:
    assert reference_numel(config) == reference_numel_walked(config, codes=1) == reference_numel_walked(config, 64)


@pytest.mark.parametrize("seam", SEAMS)
@pytest.mark.parametrize("sizes", [(64,) * 3, (16,) * 10, (16, 64, 64, 64)], ids=str)
def test_steps_in_a_row_are_the_whole_decode(
    decoder: Decoder, codes: Tensor, seam: str, sizes: tuple[int, ...]
) -> None:
    with torch.no_grad():
        whole = decoder(codes)
        given = codes if seam == CODES else decoder.quantizer(codes)
        audio = walked(ReferenceStep(decoder, seam), given, sizes)
    assert 0.01 < float(whole.std()) < 0.9  # neither silent nor clipped throughout
    assert snr_db(whole, audio) >= 90


def test_a_step_that_forgets_its_cache_is_not_the_whole_decode(decoder: Decoder, codes: Tensor) -> None:
    with torch.no_grad():
        whole, given = decoder(codes), decoder.quantizer(codes)
        step = ReferenceStep(decoder)
        zeros = torch.zeros(reference_numel_walked(REDUCED))
        parts = [step(given[..., at : at + 75], *tables_at(REDUCED, at, 75), zeros)[0] for at in (0, 75)]
    assert snr_db(whole, torch.cat(parts, dim=-1)) < 40


@pytest.mark.parametrize("seam", SEAMS)
def test_the_export_has_the_operators_of_the_published_design(decoder: Decoder, seam: str) -> None:
    found = operators(exported(ReferenceStep(decoder, seam), 16, reference_numel_walked(REDUCED)))
    assert found["Sin"] == 29  # family-facts: one a SnakeBeta
    assert found["ConvTranspose"] == 6
    assert found["Exp"] == found["Pad"] == found["Shape"] == found["ConstantOfShape"] == 0
    assert found["Gather"] == (16 if seam == CODES else 0)


def walked(step: ReferenceStep, given: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Audio of `given` [1, C, N] in steps of `sizes`, the last one filled up."""
    config = step.config
    cache, position, parts = torch.zeros(reference_numel_walked(config)), 0, []
    for size in sizes:
        taken = given[..., position : position + size]
        count = taken.shape[-1]
        taken = torch.nn.functional.pad(taken, (0, size - count))
        audio, cache = step(taken, *tables_at(config, position, size), cache)
        parts.append(audio[..., : count * config.samples_per_code])
        position += count
    assert position == given.shape[-1]
    return torch.cat(parts, dim=-1)


def snr_db(wanted: Tensor, got: Tensor) -> float:
    error = float(((wanted - got).double() ** 2).sum())
    return 10 * log10(float((wanted.double() ** 2).sum()) / error) if error else float("inf")
