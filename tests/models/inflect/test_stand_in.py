from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cache

import numpy as np
import torch
from torch import Tensor, nn

from contracts.seed import SEED
from models.inflect.config import NANO
from models.inflect.layout import layout, normed
from models.inflect.model import Inflect, load
from models.inflect.stand_in import RECIPE, stand_in
from models.inflect.weights import folded
from tests.models.inflect.sizes import SMALL

HALF = 65504.0
"""The largest number of fp16."""

TOKENS = 60

DRAWN = {1: "4f4d55513c4bad6a1765b669a8047cba9b46202310cb6589b689d4fa99f163d5"}
"""What a recipe draws for a small model: the digest of names and numbers."""


@cache
def nano() -> Inflect:
    return load(stand_in(NANO, SEED), NANO, "nano")


def spoken() -> tuple[Tensor, Tensor, Tensor]:
    tokens = torch.from_numpy(np.random.default_rng(0).integers(0, NANO.n_vocab, (1, TOKENS)))
    with torch.no_grad():
        mean, deviation, mask = nano().prior(tokens, torch.tensor([TOKENS]), torch.tensor(1.0))
    noise = torch.from_numpy(np.random.default_rng(1).standard_normal(mean.shape).astype(np.float32))
    return mean, mean + torch.exp(deviation) * noise * 0.667, mask


def test_stand_in_has_a_checkpoints_names_and_shapes() -> None:
    made = stand_in(SMALL, SEED)
    within = normed(SMALL)
    assert made.keys() == (layout(SMALL).keys() - within) | {f"{name}_{part}" for name in within for part in "gv"}
    assert {name: array.shape for name, array in folded(made, "m").items()} == layout(SMALL)
    assert {str(array.dtype) for array in made.values()} == {"float32"}


def test_recipe_counts_what_is_drawn() -> None:
    """Where this fails, weights come out otherwise than those that engines were made of: raise `RECIPE`."""
    digest = hashlib.sha256()
    for name, array in sorted(stand_in(SMALL, SEED).items()):
        digest.update(name.encode() + array.tobytes())
    assert {RECIPE: digest.hexdigest()} == DRAWN


def test_stand_in_is_the_same_each_time_and_another_for_another_seed() -> None:
    one, again, other = stand_in(SMALL, SEED), stand_in(SMALL, SEED), stand_in(SMALL, SEED + 1)
    assert all(np.array_equal(one[name], again[name]) for name in one)
    assert not any(np.array_equal(one[name], other[name]) for name in one)


def test_stand_in_draws_a_tensor_alike_whatever_the_others_are() -> None:
    fewer = stand_in(replace(SMALL, n_layers=1), SEED)
    assert all(np.array_equal(array, stand_in(SMALL, SEED)[name]) for name, array in fewer.items())


def test_stand_in_leaves_nothing_neutral_and_no_two_tensors_alike() -> None:
    seen = set()
    for name, array in stand_in(SMALL, SEED).items():
        assert np.isfinite(array).all()
        assert array.size == 1 or array.std() > 0.01, name
        assert array.tobytes() not in seen, name
        seen.add(array.tobytes())


def test_stand_ins_tokens_last_one_to_six_frames() -> None:
    tokens = torch.arange(NANO.n_vocab)[None]
    with torch.no_grad():
        x, _, _, mask = nano().enc_p(tokens, torch.tensor([NANO.n_vocab]))
        frames = torch.ceil(torch.exp(nano().dp(x, mask)))
    assert frames.min() >= 1
    assert frames.max() <= 6
    assert len(set(frames.flatten().tolist())) >= 3


def test_stand_ins_prior_differs_from_frame_to_frame() -> None:
    mean, _, _ = spoken()
    assert mean.std(dim=2).mean() > 0.1


def test_stand_in_is_neither_silent_nor_clipped_and_stays_in_half_precision() -> None:
    largest = [0.0]

    def look(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        largest[0] = max(largest[0], float(output.abs().max()))

    _, z, mask = spoken()
    layers = [module for module in nano().modules() if isinstance(module, (nn.Conv1d, nn.ConvTranspose1d))]
    hooks = [layer.register_forward_hook(look) for layer in layers]
    try:
        with torch.no_grad():
            audio = nano().voiced(z, mask)
    finally:
        for hook in hooks:
            hook.remove()
    assert 0.05 < audio.std() < 0.4
    assert audio.abs().max() < 0.95
    assert abs(float(audio.mean())) < 0.01
    assert 1 < largest[0] < HALF / 100
