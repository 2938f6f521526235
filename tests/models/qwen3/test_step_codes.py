"""The seam `codes` of a step, against rows that are looked up one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from models.qwen3.config import DecoderConfig
from models.qwen3.quantizer import Quantizer
from models.qwen3.step_codes import EXACT_SIZE, TOGETHER, LookedUp, OneHotTable, codes_table, one_hot
from tests.models.qwen3.originals import EXACT_DB, random_codes, random_decoder, snr
from tests.qwen3_configs import REDUCED

COUNTS = [2, 3, TOGETHER, TOGETHER + 1, TOGETHER + 2, 16]
"""Codebooks: one convolution of one, of several, of as many as there may be; two; the published number."""


def hidden_of(codes: Tensor, quantizer: Quantizer) -> Tensor:
    """[1, codebook_dim, 1, N]: each code's entry by itself, in double precision, from the checkpoint's numbers."""
    columns = np.zeros((quantizer.rvq_first.output_proj.out_channels, codes.shape[-1]))
    for place, time in np.ndindex(*codes.shape[1:]):
        semantic = place < quantizer.semantic
        group, within = (quantizer.rvq_first, place) if semantic else (quantizer.rvq_rest, place - quantizer.semantic)
        book, entry = group.vq.layers[within].get_submodule("_codebook"), int(codes[0, place, time])
        usage = max(float(book.get_parameter("cluster_usage")[entry]), 1e-5)
        row = book.get_parameter("embedding_sum")[entry].double().numpy() / usage
        columns[:, time] += group.output_proj.weight[:, :, 0].double().numpy() @ row
    return torch.from_numpy(columns)[None, :, None]


@pytest.mark.parametrize("table", [OneHotTable, LookedUp])
@pytest.mark.parametrize(
    "config",
    [
        *(replace(REDUCED, num_quantizers=count) for count in COUNTS),
        replace(REDUCED, num_quantizers=9, n_q_semantic=2),
        replace(REDUCED, codebook_dim=48, codebook_size=9),
    ],
)
def test_hidden_state_is_the_projected_sum_of_each_codes_entry(
    config: DecoderConfig, table: type[OneHotTable] | type[LookedUp]
) -> None:
    codes, quantizer = random_codes(40, config), random_decoder(config).quantizer
    with torch.no_grad():
        got = table(quantizer)(codes)
    assert snr(hidden_of(codes, quantizer), got) >= EXACT_DB


def test_every_code_is_told_from_all_others_in_fp16() -> None:
    """The published 2048 entries: the largest code, and what is subtracted from it, are integers of fp16."""
    codes = torch.arange(EXACT_SIZE, dtype=torch.float16)[None, None, None]
    got = one_hot(codes, EXACT_SIZE)
    assert got.dtype == torch.float16
    assert torch.equal(got[0, :, 0], torch.eye(EXACT_SIZE, dtype=torch.float16))


def test_a_size_that_fp16_would_mistake_is_looked_up() -> None:
    """4097 entries: fp16 has no 2049."""
    config = replace(REDUCED, num_quantizers=2, codebook_dim=4)
    assert torch.equal(torch.tensor(2049).half(), torch.tensor(2048).half())
    assert isinstance(codes_table(Quantizer(replace(config, codebook_size=EXACT_SIZE))), OneHotTable)
    assert isinstance(codes_table(Quantizer(replace(config, codebook_size=EXACT_SIZE + 1))), LookedUp)


@pytest.mark.parametrize("wrong", [-1, -100, REDUCED.codebook_size, 5000])
def test_a_code_without_an_entry_adds_zeros(wrong: int) -> None:
    quantizer, codes = random_decoder().quantizer, random_codes(8)
    codes[0, 3] = wrong
    others = torch.cat((codes[:, :3], codes[:, 4:]), dim=1)
    without = Quantizer(replace(REDUCED, num_quantizers=15))
    without.load_state_dict(
        {
            name.replace(f"rest.vq.layers.{place}.", f"rest.vq.layers.{place - (place > 2)}."): value
            for name, value in quantizer.state_dict().items()
            for place in [int(name.split("layers.")[1].split(".")[0]) if "rest.vq" in name else -1]
            if place != 2  # of the acoustic ones, which follow the semantic one
        }
    )
    with torch.no_grad():
        assert snr(without(others)[:, :, None], OneHotTable(quantizer)(codes)) >= EXACT_DB
