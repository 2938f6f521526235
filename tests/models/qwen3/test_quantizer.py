from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from models.qwen3.config import DecoderConfig
from models.qwen3.quantizer import Codebook, JoinedTable, Quantizer
from tests.models.qwen3.originals import EXACT_DB, original, random_codes, random_decoder, snr
from tests.qwen3_configs import REDUCED


@pytest.mark.parametrize(
    "config", [REDUCED, replace(REDUCED, num_quantizers=2), replace(REDUCED, codebook_dim=48, codebook_size=9)]
)
def test_the_quantizer_and_its_joined_table_give_what_the_references_gives(config: DecoderConfig) -> None:
    codes, ours = random_codes(90, config), random_decoder(config).quantizer
    for quantizer in (ours, JoinedTable(ours)):
        with torch.no_grad():
            got, wanted = quantizer(codes), original(config).quantizer.decode(codes)
        assert got.shape == (1, config.codebook_dim, 90)
        assert snr(wanted, got) >= EXACT_DB


def test_an_entry_is_the_mean_of_what_was_assigned_to_it_and_a_rare_ones_sum_is_divided_by_the_floor() -> None:
    book = Codebook(3, 2)
    book.embedding_sum.copy_(torch.tensor([[6.0, 2.0], [3.0, 0.0], [2e-5, -1e-5]]))
    book.cluster_usage.copy_(torch.tensor([2.0, 0.5, 1e-9]))
    torch.testing.assert_close(book(torch.tensor([2, 0, 1, 0])), torch.tensor([[2, -1], [3, 1], [6, 0], [3, 1.0]]))


def test_semantic_and_acoustic_entries_have_projections_of_their_own() -> None:
    config = replace(REDUCED, codebook_dim=4, codebook_size=2, num_quantizers=3)
    made = Quantizer(config)
    for parameter in made.parameters():
        parameter.requires_grad_(False).zero_()
    for name, buffer in made.named_parameters():
        if name.endswith("cluster_usage"):
            buffer.fill_(1)
    books = [made.rvq_first.vq.layers[0], *made.rvq_rest.vq.layers]
    for number, book in enumerate(books):
        book.get_parameter("_codebook.embedding_sum")[1] = torch.tensor([10.0**number, 0])
    made.rvq_first.output_proj.weight[0, 0] = 1
    made.rvq_rest.output_proj.weight[3, 0] = 2
    got = made(torch.tensor([[[1, 0], [1, 0], [0, 1]]]))
    # Codebook 0 -> channel 0; codebooks 1 (10) and 2 (100), doubled -> channel 3.
    assert got[0].t().tolist() == [[1, 0, 0, 20], [0, 0, 0, 200]]
