"""A step takes hidden [1, codebook_dim, 1, B] and a cache of rows, and gives audio [1, 1, 1920 B, 1] and a cache alike.

The arithmetic is compared in double precision, where what is wrong shows far below what float32 rounds away. Weights
that a step folds are rounded to float32, which bounds the comparison.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from math import inf, prod

import pytest
import torch
from torch import Tensor

from contracts.contract import Cache
from models.qwen3.cache import COPIED, KINDS, MINIMAL, REFERENCE, SPARE, VALID, WAVE, cache_layout, row_width
from models.qwen3.config import DecoderConfig
from models.qwen3.decoder import Decoder
from models.qwen3.step import CodesStep, Step, cache_shape
from tests.models.qwen3.originals import original, random_codes, random_decoder, snr
from tests.qwen3_configs import REDUCED

DOUBLE_DB, SINGLE_DB = 130.0, 110.0
"""Least agreement with the whole decode, in double precision (but for folded weights) and in float32."""

CODES = 200
"""At least 192 (issue, Gates); more than two windows of attention, and no multiple of any step."""

NARROW = replace(REDUCED, decoder_dim=32)
"""The published rates; what costs time is the samples, each times its channels."""

OTHERS = {
    "other heads and constants": replace(
        NARROW, num_attention_heads=3, num_key_value_heads=3, head_dim=12, rope_theta=300.0, rms_norm_eps=0.1
    ),
    "other window": replace(NARROW, sliding_window=20, num_hidden_layers=3),
    "three blocks": replace(NARROW, upsample_rates=(6, 5, 2), upsampling_ratios=(3, 2)),
    "five blocks": replace(NARROW, upsample_rates=(8, 5, 2, 2, 2)),
}


@cache
def decoder_of(config: DecoderConfig, dtype: torch.dtype) -> Decoder:
    return copy.deepcopy(random_decoder(config)).to(dtype)


@cache
def seam(config: DecoderConfig, dtype: torch.dtype, count: int = CODES) -> tuple[Tensor, Tensor]:
    """The hidden state of `count` codes, and the whole decode of it."""
    decoder = decoder_of(config, dtype)
    with torch.no_grad():
        hidden = decoder.quantizer(random_codes(count, config))
        return hidden, decoder.voiced(hidden)


@cache
def module_of(codes: int, config: DecoderConfig, dtype: torch.dtype, kind: str) -> Step:
    return Step(decoder_of(config, dtype), cache_layout(config, kind), codes).eval().to(dtype)


def step_of(
    codes: int, config: DecoderConfig, dtype: torch.dtype, kind: str
) -> Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Takes hidden [1, C, B] and a flat cache, and gives a flat one."""
    module, shape = module_of(codes, config, dtype, kind), cache_shape(config, cache_layout(config, kind))

    def run(hidden: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        audio, out = module(hidden.unsqueeze(2), state.reshape(shape))
        return audio, out.reshape(-1)

    return run


def streamed(
    sizes: Iterable[int],
    config: DecoderConfig = NARROW,
    dtype: torch.dtype = torch.float64,
    kind: str = REFERENCE,
    count: int = CODES,
    state: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Audio of the codes, in steps of these sizes, the last filled up with zeros; and the last cache."""
    hidden, state = seam(config, dtype)[0], zeros(config, dtype, kind) if state is None else state
    audio, done = [], 0
    for size in sizes:
        present = hidden[..., done : min(done + size, count)]
        group = torch.nn.functional.pad(present, (0, size - present.shape[-1]))
        with torch.no_grad():
            got, state = step_of(size, config, dtype, kind)(group, state)
        audio.append(got.reshape(1, 1, -1)[..., : present.shape[-1] * config.samples_per_code])
        done += present.shape[-1]
    assert done == count
    return torch.cat(audio, dim=-1), state


def zeros(config: DecoderConfig, dtype: torch.dtype, kind: str) -> Tensor:
    return torch.zeros(cache_layout(config, kind).numel, dtype=dtype)


def part(state: Tensor, name: str, layout: Cache) -> Tensor:
    """The slice of that name: a view."""
    (found,) = (each for each in layout.layout if each.name == name)
    return state.reshape(-1)[found.offset : found.offset + prod(found.shape)]


SIZES = {
    "64": [64] * 4,
    "16": [16] * 13,
    "3": [3] * 67,
    "16, then 64s": [16, 64, 64, 64],
    "any": [1, 2, 64, 16, 1, 1, 3, 16, 64, 3, 16, 16],
}


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES.keys())
def test_steps_give_the_whole_decode(sizes: list[int]) -> None:
    for dtype, least in ((torch.float64, DOUBLE_DB), (torch.float32, SINGLE_DB)):
        assert snr(seam(NARROW, dtype)[1], streamed(sizes, dtype=dtype)[0]) >= least


def test_steps_of_one_code_give_the_whole_decode() -> None:
    got, _ = streamed([1] * 100, count=100)
    assert snr(seam(NARROW, torch.float64)[1][..., : 100 * 1920], got) >= DOUBLE_DB


@pytest.mark.parametrize("config", OTHERS.values(), ids=OTHERS.keys())
def test_steps_of_a_decoder_of_other_sizes_give_the_whole_decode(config: DecoderConfig) -> None:
    """Two codes at least: one gives the five blocks 32 frames behind the first, of which a step keeps more."""
    wanted = seam(config, torch.float64)[1][..., : 110 * config.samples_per_code]
    assert snr(wanted, streamed([2, 3, 64, 16, 16, 16], config, count=110)[0]) >= DOUBLE_DB


def test_steps_give_what_the_references_module_decodes() -> None:
    with torch.no_grad():
        wanted = original(NARROW)(random_codes(CODES, NARROW))
    assert snr(wanted, streamed([16, 64, 64, 64], dtype=torch.float32)[0]) >= SINGLE_DB


def test_both_kinds_of_cache_give_the_same() -> None:
    first, second = (streamed([16, 64, 64, 64], kind=kind)[0] for kind in KINDS)
    assert torch.equal(first, second)


@pytest.mark.parametrize("kind", KINDS)
def test_the_next_cache_has_the_shape_of_the_one_before(kind: str) -> None:
    state = streamed([16, 64], kind=kind, count=80)[1]
    assert state.numel() == cache_layout(NARROW, kind).numel
    assert torch.isfinite(state).all()


def test_valid_tells_how_many_of_the_last_71_codes_there_were() -> None:
    layout = cache_layout(NARROW, MINIMAL)
    for sizes, known in (([3], 3), ([3, 16], 19), ([3, 64], 67), ([16, 64], 71), ([64, 64], 71)):
        _, state = streamed(sizes, kind=MINIMAL, count=sum(sizes))
        rows = part(state, VALID, layout).reshape(-1, row_width(NARROW))
        assert rows[-71:].tolist() == [[told] * row_width(NARROW) for told in [0.0] * (71 - known) + [1.0] * known]


def test_a_step_of_codes_is_the_step_of_their_hidden_state() -> None:
    """Entries are summed in another order; nothing else differs."""
    codes = random_codes(CODES, NARROW)[..., :16]
    step, hidden = module_of(16, NARROW, torch.float64, MINIMAL), seam(NARROW, torch.float64)[0][..., :16]
    state = midstream().reshape(cache_shape(NARROW, cache_layout(NARROW, MINIMAL)))
    with torch.no_grad():
        of_codes = CodesStep(step, decoder_of(NARROW, torch.float64).quantizer)(codes, state)
        of_hidden = step(hidden.unsqueeze(2), state)
    for got, wanted in zip(of_codes, of_hidden, strict=True):
        assert snr(wanted, got) >= 250


# What is in the cache counts.

BEFORE = 80
"""Codes of the stream whose cache is changed below."""


def after(state: Tensor, kind: str = MINIMAL, codes: int = 16) -> Tensor:
    """The audio of the next codes."""
    hidden = seam(NARROW, torch.float64)[0][..., BEFORE : BEFORE + codes]
    audio: Tensor = step_of(codes, NARROW, torch.float64, kind)(hidden, state)[0].reshape(1, 1, -1)
    return audio


@cache
def midstream(kind: str = MINIMAL) -> Tensor:
    return streamed([64, 16], kind=kind, count=BEFORE)[1]


def test_a_stream_goes_on_as_in_the_whole_decode() -> None:
    wanted = seam(NARROW, torch.float64)[1][..., BEFORE * 1920 : (BEFORE + 16) * 1920]
    assert snr(wanted, after(midstream())) >= DOUBLE_DB


@pytest.mark.parametrize("name", [each.name for each in cache_layout(NARROW, MINIMAL).layout if each.name != SPARE])
def test_every_slice_counts(name: str) -> None:
    """Zeros in its place are heard: the gate on steps (90 dB) fails by far."""
    changed = midstream().clone()
    part(changed, name, cache_layout(NARROW, MINIMAL)).zero_()
    with torch.no_grad():
        assert snr(after(midstream()), after(changed)) < 60


def test_no_number_of_the_minimal_cache_is_unused_but_what_makes_whole_groups() -> None:
    """The next audio has a slope by each that any step can see.

    Beyond: 3 of the 26 frames of `wave`; of `valid`, whose rows tell the same in each of their numbers, the row that
    makes 72 of 71, and what stands beside the first of a row; the rows behind the last slice.
    """
    state = midstream().clone().requires_grad_()
    (slope,) = torch.autograd.grad((after(state) * torch.linspace(1, 2, 16 * 1920, dtype=torch.float64)).sum(), state)
    layout = cache_layout(NARROW, MINIMAL)
    seen = {each.name: part(slope, each.name, layout).reshape(each.shape) != 0 for each in layout.layout}
    valid, spare = seen.pop(VALID), seen.pop(SPARE, torch.zeros(0))
    assert valid[-71:, 0].all()
    assert not valid[:-71].any()
    assert not valid[:, 1:].any()
    assert not spare.any()
    assert len(spare) < COPIED
    assert not seen[WAVE][:3].any()
    seen[WAVE] = seen[WAVE][3:]
    assert seen[WAVE].shape == (23, NARROW.block_channels(1))
    assert [name for name, used in seen.items() if not used.all()] == []


@pytest.mark.parametrize("filling", [1.0, -3e4])
def test_what_is_spare_does_not_count(filling: float) -> None:
    layout, changed = cache_layout(NARROW, REFERENCE), midstream(REFERENCE).clone()
    part(changed, SPARE, layout).fill_(filling)
    with torch.no_grad():
        assert torch.equal(after(midstream(REFERENCE), REFERENCE), after(changed, REFERENCE))


def test_a_cache_of_zeros_is_the_start_of_a_stream_however_many_went_before() -> None:
    sizes = [16, 64]
    first, ended = streamed(sizes, count=80)
    again, _ = streamed(sizes, count=80, state=torch.zeros_like(ended))
    assert torch.equal(first, again)
    continued, _ = streamed(sizes, count=80, state=ended)
    assert snr(first, continued) < 60


def test_keys_and_values_that_are_not_valid_are_not_seen() -> None:
    """Whatever an earlier stream has left in them, as long as `valid` and the tails are zeros."""
    layout, state = cache_layout(NARROW, REFERENCE), torch.zeros_like(midstream(REFERENCE))
    for each in layout.layout:
        if each.name.endswith((".keys", ".values")):
            part(state, each.name, layout).copy_(part(midstream(REFERENCE), each.name, layout))
    got, _ = streamed([16, 64], count=80, state=state)
    assert snr(seam(NARROW, torch.float64)[1][..., : 80 * 1920], got) >= DOUBLE_DB


def test_audio_of_a_step_does_not_depend_on_what_fills_it_up() -> None:
    """The last group of a stream: its first 5 codes are real."""
    hidden = seam(NARROW, torch.float64)[0][..., BEFORE : BEFORE + 16].clone()
    step, samples = step_of(16, NARROW, torch.float64, MINIMAL), 5 * 1920
    with torch.no_grad():
        wanted = step(hidden, midstream())[0].reshape(-1)[:samples]
        hidden[..., 5:] = 7.0
        assert snr(wanted, step(hidden, midstream())[0].reshape(-1)[:samples]) == inf
