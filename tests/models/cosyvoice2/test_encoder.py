"""The flow encoder in the original's arithmetic, against the original's module."""

from __future__ import annotations

import pytest
import torch

from models.cosyvoice2.encoder import chunks_of
from tests.cosyvoice2_encoder import SMALL, UPSTREAM, drawn, encoder, original, snr, weights_of

EXACT_DB = 105.0
"""Two orders of one float32 arithmetic, through five blocks; the original has its angles in float32 too (113 to 125
measured)."""

LENGTH, CHUNK = 21, 8


@pytest.mark.parametrize("chunk", [None, CHUNK])
def test_a_whole_stream_is_the_originals_with_and_without_chunks(chunk: int | None) -> None:
    embedded = drawn(LENGTH, UPSTREAM)
    with torch.no_grad():
        signal, _ = original(CHUNK)(embedded, torch.tensor([LENGTH]), streaming=chunk is not None)
    weights = weights_of(UPSTREAM)
    wanted = signal @ torch.from_numpy(weights["encoder_proj.weight"]).t() + torch.from_numpy(
        weights["encoder_proj.bias"]
    )
    assert snr(wanted.transpose(1, 2), encoder(UPSTREAM)(embedded, chunk)) >= EXACT_DB


def test_fewer_tokens_ahead_are_what_the_original_gives_a_stream_that_ends_there() -> None:
    embedded = drawn(20)
    # The first chunk sees one token behind it: as in a stream of 9 tokens, of whose last nobody asks.
    got = encoder()(embedded, 8, [1])[..., :16]
    alone = encoder()(embedded[:, :9], 8)[..., :16]
    assert snr(alone, got) >= EXACT_DB
    assert snr(got, encoder()(embedded, 8)[..., :16]) < 40


def test_a_chunk_sees_no_later_one() -> None:
    embedded = drawn(20)
    changed = embedded.clone()
    changed[:, 16:] = 5.0
    one, other = encoder()(embedded, 8), encoder()(changed, 8)
    # Frames of the first chunk; the second one's look-ahead reaches into what was changed.
    assert torch.equal(one[..., :16], other[..., :16])
    assert not torch.allclose(one[..., 16:32], other[..., 16:32])


def test_chunks_cover_the_stream_and_see_ahead_what_they_are_told() -> None:
    assert chunks_of(10, 4, [1], 3) == [(0, 4, 1), (4, 8, 3), (8, 10, 3)]
    assert chunks_of(5, None, (), 3) == [(0, 5, 3)]
    assert encoder()(drawn(5)).shape == (1, SMALL.mel, 10)
