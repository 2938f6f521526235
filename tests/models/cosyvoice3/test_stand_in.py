"""Random weights: the same everywhere, and no block that comes to nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from models.cosyvoice3.config import TRUE_CONFIG
from models.cosyvoice3.dit import Block
from models.cosyvoice3.layout import INPUTS, input_shapes, layout
from models.cosyvoice3.runs import dit_of
from models.cosyvoice3.stand_in import stand_in

SIZES = replace(TRUE_CONFIG, width=192, depth=22, heads=3, inner=384, groups=3)


def test_the_published_estimator_has_331_142_224_numbers_and_its_angles() -> None:
    shapes = layout(TRUE_CONFIG)
    numbers = {name: int(np.prod(shape)) for name, shape in shapes.items()}
    assert len(shapes) == 323
    assert numbers.pop("rotary_embed.inv_freq") == 32
    assert sum(numbers.values()) == 331_142_224
    assert shapes["transformer_blocks.21.ff.ff.2.weight"] == (1024, 2048)
    assert shapes["input_embed.conv_pos_embed.conv2.0.weight"] == (1024, 64, 31)


def test_a_seed_gives_one_estimator_and_the_angles_are_fixed() -> None:
    one, again, other = (stand_in(replace(SIZES, depth=1), seed) for seed in (1, 1, 2))
    assert all(np.array_equal(one[name], again[name]) for name in one)
    changed = [name for name in one if not np.array_equal(one[name], other[name])]
    assert changed == [name for name in one if name != "rotary_embed.inv_freq"]
    np.testing.assert_allclose(one["rotary_embed.inv_freq"], 10000.0 ** (-np.arange(32) / 32), rtol=1e-6)


def power(x: torch.Tensor) -> float:
    return float(x.square().mean())


@pytest.fixture(scope="module")
def shares() -> list[tuple[float, float]]:
    """Of each block, the power that its two branches add, in shares of the stream's."""
    dit = dit_of(stand_in(SIZES, 7), SIZES)
    rng = np.random.default_rng(1)
    feed = {name: rng.standard_normal(shape, dtype=np.float32) for name, shape in input_shapes(SIZES, 60).items()}
    feed["mask"][:], feed["t"][:] = 1.0, 0.3
    given: dict[torch.nn.Module, float] = {}
    found: list[tuple[float, float]] = []

    def at_branch(branch: torch.nn.Module, _: object, output: torch.Tensor) -> None:
        given[branch] = power(output)

    def at_block(block: torch.nn.Module, inputs: tuple[torch.Tensor, ...], _: object) -> None:
        assert isinstance(block, Block)
        _, _, gate, _, _, ff_gate = block.attn_norm(inputs[1])
        stream = power(inputs[0])
        found.append((power(gate) * given[block.attn] / stream, power(ff_gate) * given[block.ff] / stream))

    for block in dit.blocks:
        block.attn.register_forward_hook(at_branch)
        block.ff.register_forward_hook(at_branch)
        block.register_forward_hook(at_block)
    with torch.inference_mode():
        dit(*(torch.from_numpy(feed[name]) for name in INPUTS))
    return found


def test_every_branch_of_every_block_counts(shares: list[tuple[float, float]]) -> None:
    assert len(shares) == 22
    assert min(map(min, shares)) >= 0.01
    assert max(map(max, shares)) <= 1.0
