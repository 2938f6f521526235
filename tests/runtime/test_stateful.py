"""Stateful walks: every code once, the cache handed on, padding only at the end; equal to the decode at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from rknn_tts_runtime import (
    CodeEvent,
    CodeStep,
    cache_slice,
    decode_event,
    plan_codes,
    stream_codes,
    walk_codes,
    walk_events,
    window_events,
    zero_cache,
)

Array = NDArray[Any]
Run = Callable[[Array, Array], tuple[Array, Array]]

SPC = 4
ROWS = 3
# Two causal filters with a rectifier and a bias between them: small whole numbers, so every sum in float32 is exact.
# The bias makes a padded column and a zeroed history differ from silence.
FIRST_TAPS = np.random.default_rng(1).integers(-2, 3, (ROWS, 5))
SECOND_TAPS = np.random.default_rng(2).integers(1, 4, (SPC, 7))
BIAS = 1
FIELD = FIRST_TAPS.shape[1] - 1 + SECOND_TAPS.shape[1] - 1  # codes before one that reach its audio
LAYOUT = [{"name": "first", "offset": 0, "shape": [ROWS, 4]}, {"name": "second", "offset": 12, "shape": [6]}]
CACHE = {"numel": 20, "layout": LAYOUT}
NUMEL = 20


def whole(latent: Array) -> Array:
    """The decode of a stream at once: `[1, ROWS, N]` to `[N * SPC]`."""
    codes = latent.shape[-1]
    hidden = sum(np.convolve(latent[0, row], FIRST_TAPS[row])[:codes] for row in range(ROWS))
    rectified = np.abs(hidden + BIAS)
    return np.stack([np.convolve(rectified, SECOND_TAPS[phase])[:codes] for phase in range(SPC)], axis=-1).reshape(-1)


def step(latent: Array, cache: Array) -> tuple[Array, Array]:
    """The decode of the next codes from a cache that holds the filters' histories, as an engine does it."""
    assert cache.shape == (NUMEL,)
    assert cache.dtype == np.float32
    following = np.zeros(NUMEL, np.float32)
    columns = np.concatenate([cache_slice(cache, LAYOUT[0]), latent[0]], axis=-1)
    cache_slice(following, LAYOUT[0])[...] = columns[:, -4:]
    hidden = sum(np.convolve(columns[row], FIRST_TAPS[row], "valid") for row in range(ROWS))
    rectified = np.concatenate([cache_slice(cache, LAYOUT[1]), np.abs(hidden + BIAS)])
    cache_slice(following, LAYOUT[1])[...] = rectified[-6:]
    audio = np.stack([np.convolve(rectified, taps, "valid") for taps in SECOND_TAPS], axis=-1)
    return audio.reshape(1, 1, -1).astype(np.float32), following.reshape(1, NUMEL)


def stream(codes: int) -> Array:
    return np.random.default_rng(codes).integers(-4, 5, (1, ROWS, codes)).astype(np.float32)


def sized(size: int, seen: list[int] | None = None) -> Run:
    """The step of one size, which notes in `seen` that it ran."""

    def run(latent: Array, cache: Array) -> tuple[Array, Array]:
        assert latent.shape == (1, ROWS, size)
        assert latent.dtype == np.float32
        if seen is not None:
            seen.append(size)
        return step(latent, cache)

    return run


STEPS = {64: sized(64), 16: sized(16)}


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        (1, [(16, 0, 1)]),
        (16, [(16, 0, 16)]),
        (17, [(16, 0, 16), (16, 16, 1)]),
        (48, [(16, 0, 16), (16, 16, 16), (16, 32, 16)]),
        (64, [(16, 0, 16), (16, 16, 16), (16, 32, 16), (16, 48, 16)]),
        (65, [(16, 0, 16), (64, 16, 49)]),
        (80, [(16, 0, 16), (64, 16, 64)]),
        (81, [(16, 0, 16), (64, 16, 64), (16, 80, 1)]),
        (192, [(16, 0, 16), (64, 16, 64), (64, 80, 64), (16, 144, 16), (16, 160, 16), (16, 176, 16)]),
    ],
)
def test_plan_codes_matches_hand_made_plan_when_sizes_are_64_and_16(
    codes: int, expected: list[tuple[int, int, int]]
) -> None:
    assert plan_codes(codes, 64, 16) == [CodeStep(*each) for each in expected]


@pytest.mark.parametrize(
    ("codes", "first", "expected"),
    [
        (1, None, [(64, 0, 1)]),
        (64, None, [(64, 0, 64)]),
        (65, None, [(64, 0, 64), (64, 64, 1)]),
        # 24 does not divide 64: two small steps hold 48, three hold more than one large.
        (72, 24, [(24, 0, 24), (24, 24, 24), (24, 48, 24)]),
        (73, 24, [(24, 0, 24), (64, 24, 49)]),
        # Two of 32 are as many codes as one of 64: one step.
        (65, 32, [(32, 0, 32), (64, 32, 33)]),
    ],
)
def test_plan_codes_matches_hand_made_plan_when_sizes_are_others(
    codes: int, first: int | None, expected: list[tuple[int, int, int]]
) -> None:
    assert plan_codes(codes, 64, first) == [CodeStep(*each) for each in expected]


def sizes_of_steps() -> st.SearchStrategy[tuple[int, int | None]]:
    return st.integers(1, 80).flatmap(
        lambda main: st.tuples(st.just(main), st.none() | st.integers(1, main - 1) if main > 1 else st.none())
    )


@given(codes=st.integers(1, 700), sizes=sizes_of_steps())
def test_plan_codes_decodes_every_code_once_and_never_continues_from_padding_when_sizes_are_valid(
    codes: int, sizes: tuple[int, int | None]
) -> None:
    main, first = sizes
    steps = plan_codes(codes, main, first)

    assert [code for each in steps for code in range(each.start, each.start + each.valid)] == list(range(codes))
    assert all(each.valid == each.size for each in steps[:-1])
    assert 1 <= steps[-1].valid <= steps[-1].size
    assert steps[0].size == (first or main)
    assert {each.size for each in steps} <= {main, first}


@given(codes=st.integers(1, 700), first=st.integers(1, 20), times=st.integers(2, 8))
def test_plan_codes_decodes_fewer_than_first_codes_of_padding_when_first_divides_main(
    codes: int, first: int, times: int
) -> None:
    decoded = sum(each.size for each in plan_codes(codes, first * times, first))
    assert 0 <= decoded - codes < first


@given(codes=st.integers(1, 700), sizes=sizes_of_steps())
def test_plan_codes_takes_small_steps_for_a_rest_only_when_a_large_one_decodes_more(
    codes: int, sizes: tuple[int, int | None]
) -> None:
    main, first = sizes
    steps = plan_codes(codes, main, first)
    tail = [each.size for each in steps[1:] if each.size == first]
    assert sum(tail) < main
    if first is not None and steps[-1].size == main:
        assert -(-steps[-1].valid // first) * first >= main


@pytest.mark.parametrize(
    ("codes", "main", "first", "says"),
    [
        (0, 64, 16, "at least one code, not 0"),
        (-3, 64, None, "at least one code, not -3"),
        (5, 0, None, "a step decodes at least one code, not 0"),
        (5, 64, 0, "from 1 to 63 codes, .* not 0"),
        (5, 64, 64, "from 1 to 63 codes, .* not 64"),
        (5, 16, 64, "from 1 to 15 codes, .* not 64"),
    ],
)
def test_plan_codes_raises_when_sizes_are_impossible(codes: int, main: int, first: int | None, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        plan_codes(codes, main, first)


@pytest.mark.parametrize(("main", "first"), [(64, 16), (16, None), (64, None), (7, 3), (2, 1), (1, None)])
def test_walk_codes_equals_the_whole_decode_when_stream_has_any_length(main: int, first: int | None) -> None:
    runs = {size: sized(size) for size in (main, first) if size is not None}
    for codes in range(1, 201):
        latent = stream(codes)
        samples = walk_codes(latent, runs, plan_codes(codes, main, first), NUMEL, SPC)
        np.testing.assert_array_equal(samples, whole(latent), err_msg=f"{codes} codes")


def test_toy_decoder_feels_cache_and_padding_when_either_is_wrong() -> None:
    """What makes the equalities above mean something."""
    latent = stream(32)
    with_padding = np.concatenate([latent[..., :10], np.zeros((1, ROWS, 6), np.float32)], axis=-1)
    empty = np.zeros(NUMEL, np.float32)
    for cache in (empty, step(with_padding, empty)[1], step(latent[..., 16:], empty)[1]):
        audio, _ = step(latent[..., 10:26], cache.reshape(-1))
        assert not np.array_equal(audio.reshape(-1)[:SPC], whole(latent)[10 * SPC : 11 * SPC])


def test_walk_codes_gives_each_step_the_cache_of_the_one_before_when_sizes_change() -> None:
    caches: list[Array] = []

    def counting(size: int) -> Run:
        def run(latent: Array, cache: Array) -> tuple[Array, Array]:
            caches.append(cache)
            return np.zeros(size, np.float32), np.full((1, 2, 3), size + cache[0], np.float64)

        return run

    walk_codes(stream(22), {8: counting(8), 3: counting(3)}, plan_codes(22, 8, 3), 6, 1)
    assert [cache.tolist() for cache in caches] == [[0] * 6, [3] * 6, [11] * 6, [19] * 6]
    assert {cache.dtype for cache in caches} == {np.dtype(np.float32)}


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_walk_codes_pads_codes_with_zeros_of_their_own_type_when_given_integers(dtype: type[np.signedinteger]) -> None:
    seen: list[Array] = []

    def run(codes: Array, cache: Array) -> tuple[Array, Array]:
        seen.append(codes)
        return codes[:, :1], cache

    codes = np.arange(1, 13, dtype=dtype).reshape(1, 2, 6)
    samples = walk_codes(codes, {4: run}, plan_codes(6, 4), 1, 1)
    assert samples.tolist() == [1, 2, 3, 4, 5, 6]
    assert [window.tolist() for window in seen] == [[[[1, 2, 3, 4], [7, 8, 9, 10]]], [[[5, 6, 0, 0], [11, 12, 0, 0]]]]
    assert {window.dtype for window in seen} == {np.dtype(dtype)}


def test_walk_codes_gives_steps_float32_when_latent_is_float64() -> None:
    latent = stream(20).astype(np.float64)
    np.testing.assert_array_equal(walk_codes(latent, STEPS, plan_codes(20, 16), NUMEL, SPC), whole(latent))


@pytest.mark.parametrize(
    ("plan", "says"),
    [
        ([(16, 0, 10), (16, 10, 10)], "continues from CodeStep\\(size=16, start=0, valid=10\\)"),
        ([(16, 0, 16)], "the plan decodes 16 codes, and the stream has 20"),
        ([], "the plan decodes 0 codes"),
        ([(16, 0, 16), (16, 16, 16)], "the plan decodes 32 codes"),
        ([(16, 0, 16), (16, 15, 4)], "where a step must start at code 16"),
        ([(16, 4, 16)], "where a step must start at code 0"),
        ([(16, 0, 20)], "valid=20\\) where a step must start at code 0 and hold 1 to its size"),
        ([(16, 0, 16), (64, 16, 4), (16, 20, 0)], "valid=0\\) where"),
        ([(32, 0, 20)], "nothing runs steps of \\[32\\] codes: there are steps of \\[16, 64\\]"),
    ],
)
def test_walk_codes_raises_when_plan_does_not_decode_the_stream(plan: list[tuple[int, int, int]], says: str) -> None:
    def never(latent: Array, cache: Array) -> tuple[Array, Array]:
        raise AssertionError("a step ran before the plan was checked")

    with pytest.raises(ValueError, match=says):
        walk_codes(stream(20), {64: never, 16: never}, [CodeStep(*each) for each in plan], NUMEL, SPC)


@pytest.mark.parametrize("shape", [(ROWS, 20), (2, ROWS, 20), (1, ROWS, 20, 1), (20,), ()])
def test_walk_codes_raises_when_latent_has_another_shape(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="a latent or codes must be \\[1, C, N\\], not"):
        walk_codes(np.zeros(shape, np.float32), STEPS, plan_codes(20, 64), NUMEL, SPC)


@pytest.mark.parametrize(
    ("samples", "cache", "says"),
    [
        (63, NUMEL, "step at code 16 gave 63 samples, expected 16 codes x 4"),
        (64, NUMEL - 1, "step at code 16 gave a cache of 19 elements, expected 20"),
    ],
)
def test_walk_codes_raises_when_a_later_step_returns_other_sizes(samples: int, cache: int, says: str) -> None:
    answers = iter([(64, NUMEL), (samples, cache)])

    def run(latent: Array, _: Array) -> tuple[Array, Array]:
        audio, state = next(answers)
        return np.zeros(audio, np.float32), np.zeros(state, np.float32)

    with pytest.raises(ValueError, match=says):
        walk_codes(stream(40), {16: run}, plan_codes(40, 16), NUMEL, SPC)


@pytest.mark.parametrize(("numel", "spc"), [(0, SPC), (-1, SPC), (NUMEL, 0)])
def test_walk_codes_raises_when_there_is_no_cache_or_no_samples(numel: int, spc: int) -> None:
    with pytest.raises(ValueError, match=f"not {numel} elements and {spc} samples"):
        walk_codes(stream(20), STEPS, plan_codes(20, 64), numel, spc)


@given(pieces=st.lists(st.integers(0, 90), max_size=12), sizes=st.sampled_from([(64, 16), (16, None), (7, 3)]))
def test_stream_codes_runs_the_planned_steps_and_equals_the_whole_decode_when_pieces_vary(
    pieces: list[int], sizes: tuple[int, int | None]
) -> None:
    main, first = sizes
    ran: list[int] = []
    runs = {size: sized(size, ran) for size in sizes if size is not None}
    latent = stream(sum(pieces))
    cut = np.split(latent, np.cumsum(pieces)[:-1], axis=-1) if pieces else []
    audio = list(stream_codes(cut, runs, main, first, NUMEL, SPC))

    plan = plan_codes(sum(pieces), main, first) if sum(pieces) else []
    assert ran == [each.size for each in plan]
    assert [samples.shape for samples in audio] == [(each.valid * SPC,) for each in plan]
    if plan:
        np.testing.assert_array_equal(np.concatenate(audio), whole(latent))


def test_stream_codes_yields_audio_before_it_reads_on_when_stream_never_ends() -> None:
    latent = stream(300)
    read = 0

    def arriving() -> Iterator[Array]:
        nonlocal read
        for code in count():
            read += 1
            yield latent[..., code : code + 1]

    audio = stream_codes(arriving(), STEPS, 64, 16, NUMEL, SPC)
    heard = []
    for samples, codes in zip(islice(audio, 4), (16, 80, 144, 208), strict=True):
        heard.append(samples)
        assert read == codes
    np.testing.assert_array_equal(np.concatenate(heard), whole(latent)[: 208 * SPC])


@pytest.mark.parametrize(
    ("main", "first", "says"),
    [
        (64, 64, "from 1 to 63 codes"),
        (0, None, "at least one code, not 0"),
        (32, 16, "nothing runs steps of \\[32\\] codes"),
        (64, 8, "nothing runs steps of \\[8\\] codes"),
    ],
)
def test_stream_codes_raises_before_it_reads_when_sizes_are_impossible(main: int, first: int | None, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        next(stream_codes(iter([stream(1)]), STEPS, main, first, NUMEL, SPC))


@pytest.mark.parametrize(
    ("piece", "says"),
    [
        (np.zeros((1, 2, 5), np.float32), "a piece of 2 float32 rows cannot follow one of 3 float32"),
        (np.zeros((1, 3, 5), np.int64), "a piece of 3 int64 rows cannot follow one of 3 float32"),
        (np.zeros((3, 5), np.float32), "must be \\[1, C, N\\], not \\[3, 5\\]"),
    ],
)
def test_stream_codes_raises_when_a_piece_differs_from_those_before(piece: Array, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        list(stream_codes([stream(5), piece], STEPS, 64, 16, NUMEL, SPC))


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        # Context 25, 12 new: 0 and 12 and 24 codes before the first three events, 25 from then on.
        (1, [(0, 0, 1)]),
        (12, [(0, 0, 12)]),
        (13, [(0, 0, 12), (0, 12, 1)]),
        (40, [(0, 0, 12), (0, 12, 12), (0, 24, 12), (11, 25, 4)]),
        (60, [(0, 0, 12), (0, 12, 12), (0, 24, 12), (11, 25, 12), (23, 25, 12)]),
    ],
)
def test_window_events_matches_hand_made_plan_when_given_length(
    codes: int, expected: list[tuple[int, int, int]]
) -> None:
    assert window_events(codes, 25, 12) == [CodeEvent(*each) for each in expected]


@pytest.mark.parametrize(
    ("codes", "context", "emitted", "says"),
    [(0, 25, 12, "at least one code, not 0"), (5, -1, 12, "not -1\\+12"), (5, 25, 0, "not 25\\+0")],
)
def test_window_events_raises_when_geometry_is_impossible(codes: int, context: int, emitted: int, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        window_events(codes, context, emitted)


def chunked(latent: Array, context: int, emitted: int) -> Array:
    """What each code sounds like when its chunk and at most `context` codes before it are decoded apart."""
    audio = []
    for code in range(latent.shape[-1]):
        chunk = code // emitted * emitted
        begin = max(0, chunk - context)
        audio.append(whole(latent[..., begin : chunk + emitted]).reshape(-1, SPC)[code - begin])
    return np.concatenate(audio)


@pytest.mark.parametrize(("context", "emitted", "size"), [(25, 12, 37), (12, 12, 24), (3, 5, 8), (0, 4, 4), (3, 5, 16)])
def test_walk_events_equals_chunks_decoded_apart_when_stream_has_any_length(
    context: int, emitted: int, size: int
) -> None:
    for codes in [*range(1, 42), 60, 61, 100]:
        latent = stream(codes)
        samples = walk_events(latent, sized(size), context, emitted, size, NUMEL, SPC)
        np.testing.assert_array_equal(samples, chunked(latent, context, emitted), err_msg=f"{codes} codes")


@pytest.mark.parametrize(("context", "equal"), [(FIELD, True), (FIELD - 1, False)])
def test_walk_events_equals_the_whole_decode_when_context_covers_what_the_decoder_remembers(
    context: int, equal: bool
) -> None:
    latent = stream(100)
    samples = walk_events(latent, sized(context + 6), context, 6, context + 6, NUMEL, SPC)
    assert np.array_equal(samples, whole(latent)) is equal


def test_walk_events_raises_when_step_cannot_hold_an_event() -> None:
    with pytest.raises(ValueError, match="a step of 36 codes cannot hold an event of 25\\+12"):
        walk_events(stream(5), sized(36), 25, 12, 36, NUMEL, SPC)


@pytest.mark.parametrize(("held", "context"), [(5, 5), (0, 0), (17, 4), (5, -1)])
def test_decode_event_raises_when_step_cannot_decode_it(held: int, context: int) -> None:
    with pytest.raises(ValueError, match=f"an event of {held} codes, {context} of them context"):
        decode_event(stream(held), sized(16), context, 16, NUMEL, SPC)


def test_zero_cache_is_as_large_as_the_manifest_says() -> None:
    cache = zero_cache(CACHE)
    assert cache.dtype == np.float32
    assert cache.tolist() == [0] * 20


@pytest.mark.parametrize("cache", [{}, {"numel": 0}, {"numel": -4}, {"numel": 2.0}, {"numel": True}, {"numel": "9"}])
def test_zero_cache_raises_when_size_is_no_positive_whole_number(cache: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="cache\\.numel must be a positive whole number"):
        zero_cache(cache)


def test_cache_slice_is_a_view_of_the_tensor_when_entry_fits() -> None:
    cache = np.arange(20, dtype=np.float32)
    tensor = cache_slice(cache, {"name": "tail", "offset": 4, "shape": [2, 3]})
    assert tensor.tolist() == [[4, 5, 6], [7, 8, 9]]
    tensor[...] = 0
    assert cache.tolist() == [0, 1, 2, 3, *[0] * 6, *range(10, 20)]


def test_cache_slice_reads_one_element_when_shape_is_empty() -> None:
    assert cache_slice(np.arange(3, dtype=np.float32), {"name": "steps", "offset": 2, "shape": []}) == 2


@pytest.mark.parametrize(
    ("offset", "shape", "says"),
    [
        (15, [2, 3], "'tail' of shape \\[2, 3\\] at 15 lies outside a cache of 20 elements"),
        (-1, [2], "'tail' of shape \\[2\\] at -1 lies outside"),
        (0, [-2, -3], "'tail' of shape \\[-2, -3\\] at 0 lies outside"),
        (None, [2], "'tail' needs a whole offset and a shape, not None"),
        (0, None, "'tail' needs a whole offset and a shape, not 0 and None"),
        (0, [2.0], "'tail' needs a whole offset"),
    ],
)
def test_cache_slice_raises_when_entry_does_not_fit(offset: object, shape: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        cache_slice(np.zeros(20, np.float32), {"name": "tail", "offset": offset, "shape": shape})


def test_cache_slice_raises_when_cache_is_not_flat() -> None:
    with pytest.raises(ValueError, match="a cache is flat, not \\[4, 5\\]"):
        cache_slice(np.zeros((4, 5), np.float32), LAYOUT[0])
