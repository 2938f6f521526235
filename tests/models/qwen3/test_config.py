from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from models.qwen3.config import SAMPLE_RATE, TRUE_CONFIG


def test_a_code_of_the_published_decoder_is_80_milliseconds() -> None:
    assert TRUE_CONFIG.samples_per_code == 1920
    assert SAMPLE_RATE / TRUE_CONFIG.samples_per_code == 12.5


def test_the_published_decoders_keys_and_values_have_the_references_size() -> None:
    """1,163,264 of the reference's cache of 1,303,424."""
    heads = TRUE_CONFIG.num_key_value_heads * TRUE_CONFIG.head_dim
    assert TRUE_CONFIG.kv_len == 71
    assert TRUE_CONFIG.num_hidden_layers * 2 * heads * TRUE_CONFIG.kv_len == 1_163_264


def test_the_rvq_of_the_published_decoder_has_one_semantic_and_15_acoustic_codebooks_of_256() -> None:
    assert (TRUE_CONFIG.n_q_semantic, TRUE_CONFIG.n_q_acoustic, TRUE_CONFIG.rvq_dim) == (1, 15, 256)


def test_the_attention_is_wider_than_the_hidden_state() -> None:
    """head_dim is stated, not hidden_size over the heads."""
    assert (TRUE_CONFIG.attention_width, TRUE_CONFIG.hidden_size) == (1024, 512)


def test_block_channels_halve_at_every_block() -> None:
    assert [TRUE_CONFIG.block_channels(block) for block in range(5)] == [1536, 768, 384, 192, 96]


def test_a_config_is_not_to_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        TRUE_CONFIG.head_dim = 32  # type: ignore[misc]
