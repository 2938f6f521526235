from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from converters.qwen3.layout import layout
from converters.qwen3.stand_in import stand_in, stand_in_source
from models.qwen3.config import TRUE_CONFIG
from tests.qwen3_configs import REDUCED
from tests.qwen3_reference import reference_decoder

SEED = 7
SCALE = "decoder.pre_transformer.layers.1.mlp_layer_scale.scale"


def test_stand_in_has_the_layouts_names_and_shapes() -> None:
    made = stand_in(REDUCED, SEED)
    assert {name: array.shape for name, array in made.items()} == layout(REDUCED)
    assert {array.dtype for array in made.values()} == {np.dtype(np.float32)}
    assert all(np.isfinite(array).all() for array in made.values())


def test_stand_in_is_the_same_each_time_and_another_for_another_seed() -> None:
    one, again, other = stand_in(REDUCED, SEED), stand_in(REDUCED, SEED), stand_in(REDUCED, SEED + 1)
    assert all(np.array_equal(one[name], again[name]) for name in one)
    assert not any(np.array_equal(one[name], other[name]) for name in one)


def test_stand_in_draws_a_tensor_alike_whatever_the_others_are() -> None:
    fewer = stand_in(replace(REDUCED, num_hidden_layers=1), SEED)
    name = "decoder.pre_transformer.layers.0.mlp.up_proj.weight"
    assert np.array_equal(fewer[name], stand_in(REDUCED, SEED)[name])


def test_stand_in_draws_the_stream_of_pcg64() -> None:
    """Computed as its paper has it (XSL-RR 128/64, O'Neill 2014), from the state that numpy's SeedSequence makes of
    the first half of the SHA-256 of "7 NAME": what engines were measured with does not change with numpy."""
    state, increment = 136541689702377490131529721371287348604, 43711201991883521174764423616439074585
    wanted: list[float] = []
    while len(wanted) < 56:
        state = (state * 0x2360ED051FC65DA44385DF649FCCF645 + increment) % 2**128
        mixed, turn = (state >> 64) ^ (state % 2**64), state >> 122
        drawn = (mixed >> turn | mixed << (64 - turn)) % 2**64
        wanted += [0.05 + 0.35 * (half >> 9) / 2**23 for half in (drawn % 2**32, drawn >> 32)]
    assert stand_in(REDUCED, SEED)[SCALE].tolist() == pytest.approx(wanted, abs=1e-7)


def test_stand_in_leaves_nothing_neutral_and_nothing_alike_over_channels() -> None:
    for name, array in stand_in(REDUCED, SEED).items():
        values = np.unique(array)
        assert len(values) > 0.9 * array.size, name
        if name.endswith(("scale", "gamma", "norm.weight")):
            assert array.min() > 0, name


def test_stand_ins_codebooks_have_an_entry_below_the_usage_floor() -> None:
    made = stand_in(REDUCED, SEED)
    for name, usage in made.items():
        if name.endswith("cluster_usage"):
            entries = (
                made[name.replace("cluster_usage", "embedding_sum")] / np.maximum(usage, np.float32(1e-5))[:, None]
            )
            size = np.sqrt((entries**2).mean(axis=1))
            assert usage[0] < 1e-5 < usage[1:].min()
            assert 0.5 < size[0] / size.mean() < 1.5


def test_the_reference_decodes_a_stand_in_in_range() -> None:
    """Activations of about one to ten, sound that is heard, hardly clipped, and has hardly a mean."""
    import torch

    decoder = reference_decoder(REDUCED)
    made = stand_in(REDUCED, SEED)
    decoder.load_state_dict({name.removeprefix("decoder."): torch.from_numpy(made[name]) for name in made})
    largest: list[float] = []
    for module in decoder.modules():
        if isinstance(module, (torch.nn.Linear, torch.nn.Conv1d, torch.nn.ConvTranspose1d)):
            module.register_forward_hook(lambda _m, _i, out: largest.append(float(out.abs().max())))
    codes = np.random.default_rng(0).integers(0, REDUCED.codebook_size, (1, 16, 80))
    audio = decoder(torch.from_numpy(codes)).numpy()
    assert 0.1 < audio.std() < 0.3
    assert abs(audio.mean()) < 0.1
    assert (abs(audio) >= 1).mean() < 1e-3
    assert 1 < max(largest) < 20


@pytest.mark.parametrize(
    "ending",
    ["self_attn.q_proj.weight", "self_attn_layer_scale.scale", "mlp_layer_scale.scale", "gamma", "conv2.conv.weight"],
)
def test_every_part_of_a_stand_in_is_heard(ending: str) -> None:
    """Without it the sound changes by more than a tenth of its power."""
    import torch

    codes = torch.from_numpy(np.random.default_rng(0).integers(0, REDUCED.codebook_size, (1, 16, 20)))
    decoder = reference_decoder(REDUCED)
    made = stand_in(REDUCED, SEED)
    sounds = []
    for zeroed in (False, True):
        weights = {n: np.zeros_like(w) if zeroed and n.endswith(ending) else w for n, w in made.items()}
        decoder.load_state_dict({name.removeprefix("decoder."): torch.from_numpy(w) for name, w in weights.items()})
        sounds.append(decoder(codes).numpy())
    assert ((sounds[0] - sounds[1]) ** 2).mean() > 0.1 * sounds[0].var()


def test_stand_in_source_is_random_and_another_for_other_sizes_and_seeds() -> None:
    one = stand_in_source(TRUE_CONFIG, 0)
    assert (one.name, one.kind, len(one.sha256)) == ("random", "random", 64)
    assert len({one.sha256, stand_in_source(TRUE_CONFIG, 1).sha256, stand_in_source(REDUCED, 0).sha256}) == 3
