"""The stand-in's weights keep every part at work."""

from __future__ import annotations

import numpy as np
import torch

from models.cosyvoice2.encoder import Block
from models.cosyvoice2.encoder_config import layout
from models.cosyvoice2.encoder_stand_in import stand_in
from tests.cosyvoice2_encoder import SMALL, drawn, encoder


def test_weights_have_the_layout_and_depend_on_the_seed() -> None:
    made = stand_in(SMALL, 0)
    assert {name: array.shape for name, array in made.items()} == layout(SMALL)
    assert all(array.dtype == np.float32 and np.isfinite(array).all() and array.std() > 0 for array in made.values())
    again, other = stand_in(SMALL, 0), stand_in(SMALL, 1)
    assert all(np.array_equal(made[name], again[name]) for name in made)
    assert not any(np.array_equal(made[name], other[name]) for name in made)


def test_signal_is_of_about_one_and_each_block_adds_to_it() -> None:
    parts = encoder().encoder
    seen = torch.ones(30, 30, dtype=torch.bool)
    with torch.no_grad():
        x = parts.pre_lookahead_layer(parts.embed(drawn(30)), [(0, 30, 3)])
        assert 0.5 < x.std() < 2
        for block in parts.encoders:
            assert isinstance(block, Block)
            mixed = block.self_attn(block.norm_mha(x), seen)
            added = block.feed_forward(block.norm_ff(x + mixed))
            assert mixed.std() > x.std() / 10
            assert added.std() > x.std() / 10
            x = x + mixed + added
        assert x.std() < 20
