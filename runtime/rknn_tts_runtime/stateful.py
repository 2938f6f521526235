"""Walks an engine whose state is a flat cache over a stream of codes of any length (Qwen3's speech decoder).

A step decodes B codes from the cache that the step before left; a zeroed cache is the start of a stream. The decoder is
causal: what stands to the right of a code does not change its audio. So the last group of a stream is padded on the
right with zeros and the padding's audio dropped, and nothing else differs from decoding the whole at once. A padded
step's cache has taken the padding in, and no step ever continues from it.

Steps of two sizes share one cache: a small one gives the first audio early, a large one costs less per code.

The window role does without a cache that lives on: each event decodes some codes before the new ones as well, from a
zeroed cache, and drops their audio.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from math import prod
from typing import Any, Callable, Iterable, Iterator, Mapping, NamedTuple

import numpy as np
import numpy.typing as npt

from rknn_tts_runtime.windows import FloatArray

CodeArray = npt.NDArray[Any]
"""What a decoder reads: a latent `[1, C, N]` of floats or codes `[1, Q, N]` of integers, one column a code."""

RunStep = Callable[[CodeArray, FloatArray], "tuple[npt.NDArray[Any], npt.NDArray[Any]]"]
"""Runs one step: takes B columns (floats as float32, integers as they came) and the cache `[numel]` float32, returns
`B * samples_per_code` samples and the next cache of `numel` elements, of any shape, in arrays that later calls leave
alone."""


class CodeStep(NamedTuple):
    """One step of a walk.

    Attributes:
        size: codes that the step decodes, B; there is one engine for each size.
        start: the code on which it starts.
        valid: how many codes of the stream it holds, from its start on; the rest of its size is padding.
    """

    size: int
    start: int
    valid: int


class CodeEvent(NamedTuple):
    """One event of the window role, in codes.

    Attributes:
        start: the first code that it decodes.
        context: how many codes it decodes only for what they leave behind; their audio is dropped.
        emitted: how many codes after these it emits.
    """

    start: int
    context: int
    emitted: int


def plan_codes(codes: int, main: int, first: int | None = None) -> list[CodeStep]:
    """The steps that decode a stream of so many codes, in order.

    The first step is a small one where there is one, so that audio starts early. Large ones follow while they are full.
    The rest goes to whichever decodes fewer codes, padding included: as many small steps as hold it, or one large step,
    and the large one where both decode as many. The cost of a step is taken to grow with its size.

    Every step but the last is full.

    Args:
        codes: codes of the stream.
        main: size of the large step.
        first: size of the small step, if there is one.

    Raises:
        ValueError: `codes` or a size is not positive, or `first` is not smaller than `main`.
    """
    if codes < 1:
        raise ValueError(f"a stream needs at least one code, not {codes}")
    _check_sizes(main, first)
    sizes = [] if first is None else [first]
    full, rest = divmod(max(0, codes - sum(sizes)), main)
    steps = []
    start = 0
    for size in [*sizes, *[main] * full, *_rest_sizes(rest, main, first)]:
        steps.append(CodeStep(size, start, min(size, codes - start)))
        start += size
    return steps


def walk_codes(
    latent: CodeArray,
    steps_by_size: Mapping[int, RunStep],
    plan: Iterable[CodeStep],
    cache_numel: int,
    samples_per_code: int,
) -> npt.NDArray[Any]:
    """Decode a whole stream step by step, from a zeroed cache.

    Args:
        latent: latent `[1, C, N]` or codes `[1, Q, N]` of the stream.
        steps_by_size: what runs a step of each size in the plan.
        plan: the steps, as `plan_codes` gives them.
        cache_numel: elements of the cache.
        samples_per_code: samples per code.

    Returns:
        The samples `[N * samples_per_code]`, of the type that the steps return.

    Raises:
        ValueError: `latent` has another shape; the plan leaves out codes or repeats them, continues from a padded step
            or needs a size that nothing runs; or a step returns another number of samples or of cache elements.
    """
    stream = _columns(latent)
    steps = list(plan)
    _check_plan(steps, stream.shape[-1])
    _check_runs({step.size for step in steps}, steps_by_size)
    groups = ((step.size, stream[..., step.start : step.start + step.valid]) for step in steps)
    return np.concatenate(list(_decode_groups(groups, steps_by_size, cache_numel, samples_per_code)))


def stream_codes(
    latents: Iterable[CodeArray],
    steps_by_size: Mapping[int, RunStep],
    main: int,
    first: int | None,
    cache_numel: int,
    samples_per_code: int,
) -> Iterator[npt.NDArray[Any]]:
    """Decode codes while they arrive, yielding the audio of each step as soon as it is decoded.

    The steps are those of `plan_codes` for as many codes as arrive. The first audio needs `first` codes (`main` where
    there is no small step), and no more of `latents` is read before it is yielded.

    Args:
        latents: pieces of the stream, latents `[1, C, n]` or codes `[1, Q, n]` of any n, also 0; may never end.
        steps_by_size: what runs a step of each size.
        main: size of the large step.
        first: size of the small step, if there is one.
        cache_numel: elements of the cache.
        samples_per_code: samples per code.

    Yields:
        The samples `[valid * samples_per_code]` of each step; nothing for a stream without codes.

    Raises:
        ValueError: a size is not positive or nothing runs it, `first` is not smaller than `main`, a piece has another
            shape than the ones before, or a step returns another number of samples or of cache elements.
    """
    _check_sizes(main, first)
    _check_runs({main} if first is None else {main, first}, steps_by_size)
    yield from _decode_groups(_group(latents, main, first), steps_by_size, cache_numel, samples_per_code)


def window_events(codes: int, context: int, emitted: int) -> list[CodeEvent]:
    """The events of the window role that emit every code of a stream once, in order.

    Each emits `emitted` codes, the last what is left, and decodes the `context` codes before them as well, the first
    events as many as there are.

    Args:
        codes: codes of the stream.
        context: codes decoded before the new ones.
        emitted: new codes of an event.

    Raises:
        ValueError: `codes` or `emitted` is not positive, or `context` is negative.
    """
    if codes < 1:
        raise ValueError(f"a stream needs at least one code, not {codes}")
    if context < 0 or emitted < 1:
        raise ValueError(f"an event needs a context of 0 or more codes and emits at least one, not {context}+{emitted}")
    return [
        CodeEvent(new - min(context, new), min(context, new), min(emitted, codes - new))
        for new in range(0, codes, emitted)
    ]


def walk_events(
    latent: CodeArray, run: RunStep, context: int, emitted: int, size: int, cache_numel: int, samples_per_code: int
) -> npt.NDArray[Any]:
    """Decode a whole stream event by event, each from a zeroed cache.

    This is `chunked_decode(codes, chunk_size=emitted, left_context_size=context)` of Qwen3's own module.

    Args:
        latent: latent `[1, C, N]` or codes `[1, Q, N]` of the stream.
        run: runs a step of `size` codes.
        context: codes decoded before the new ones of an event.
        emitted: new codes of an event.
        size: codes that the step decodes: at least `context + emitted`.
        cache_numel: elements of the cache.
        samples_per_code: samples per code.

    Returns:
        The samples `[N * samples_per_code]`, of the type that `run` returns.

    Raises:
        ValueError: `latent` has another shape, the geometry is wrong, or `run` returns another number of samples or of
            cache elements.
    """
    if context + emitted > size:
        raise ValueError(f"a step of {size} codes cannot hold an event of {context}+{emitted}")
    stream = _columns(latent)
    pieces = [
        decode_event(
            stream[..., event.start : event.start + event.context + event.emitted],
            run,
            event.context,
            size,
            cache_numel,
            samples_per_code,
        )
        for event in window_events(stream.shape[-1], context, emitted)
    ]
    return np.concatenate(pieces)


def decode_event(
    latent: CodeArray, run: RunStep, context: int, size: int, cache_numel: int, samples_per_code: int
) -> npt.NDArray[Any]:
    """Decode one event of the window role from a zeroed cache and drop the audio of its context.

    Args:
        latent: latent `[1, C, context + n]` or codes `[1, Q, context + n]`: the context, then n new codes.
        run: runs a step of `size` codes.
        context: how many of the codes are context.
        size: codes that the step decodes; the event is padded on the right up to it.
        cache_numel: elements of the cache.
        samples_per_code: samples per code.

    Returns:
        The samples `[n * samples_per_code]` of the new codes.

    Raises:
        ValueError: `latent` has another shape, holds no new code or more than `size`, or `run` returns another number
            of samples or of cache elements.
    """
    event = _columns(latent)
    held = event.shape[-1]
    if not 0 <= context < held <= size:
        raise ValueError(f"a step of {size} codes cannot decode an event of {held} codes, {context} of them context")
    (samples,) = _decode_groups([(size, event)], {size: run}, cache_numel, samples_per_code)
    return samples[context * samples_per_code :]


def zero_cache(cache: Mapping[str, Any]) -> FloatArray:
    """The cache at the start of a stream.

    Args:
        cache: `cache` of the engine's manifest: `numel`, the elements in all.

    Returns:
        Zeros `[numel]`, float32.

    Raises:
        ValueError: `numel` is missing or not a positive whole number.
    """
    numel: Any = cache.get("numel")
    if not _whole(numel) or numel < 1:
        raise ValueError(f"cache.numel must be a positive whole number, not {numel!r}")
    return np.zeros(numel, np.float32)


def cache_slice(cache: FloatArray, entry: Mapping[str, Any]) -> FloatArray:
    """One tensor of a cache, as a view: what is written to it is written to the cache.

    Args:
        cache: the cache `[numel]`.
        entry: one entry of `cache.layout` of the engine's manifest: `name`, `offset` in elements, `shape`.

    Returns:
        The tensor, of the entry's shape.

    Raises:
        ValueError: the cache is not flat, the entry says no offset or no shape, or lies outside the cache.
    """
    name, shape = entry.get("name"), entry.get("shape")
    offset: Any = entry.get("offset")
    if cache.ndim != 1:
        raise ValueError(f"a cache is flat, not {list(cache.shape)}")
    if not _whole(offset) or not isinstance(shape, (list, tuple)) or not all(_whole(length) for length in shape):
        raise ValueError(f"the cache slice {name!r} needs a whole offset and a shape, not {offset!r} and {shape!r}")
    if min(offset, *shape, 0) < 0 or offset + prod(shape) > cache.size:
        raise ValueError(
            f"the cache slice {name!r} of shape {list(shape)} at {offset} lies outside a cache of {cache.size} elements"
        )
    return cache[offset : offset + prod(shape)].reshape(shape)


def _rest_sizes(rest: int, main: int, first: int | None) -> list[int]:
    """The steps for the last codes of a stream, fewer than `main`: see `plan_codes`."""
    if rest == 0:
        return []
    small = [] if first is None else [first] * -(-rest // first)
    return small if 0 < sum(small) < main else [main]


def _group(latents: Iterable[CodeArray], main: int, first: int | None) -> Iterator[tuple[int, CodeArray]]:
    """Cuts the pieces of a stream into groups, each with the size of its step; only the last may be shorter."""
    held: CodeArray | None = None
    size = first or main
    for piece in latents:
        columns = _columns(piece)
        if held is not None and (held.shape[1], held.dtype) != (columns.shape[1], columns.dtype):
            raise ValueError(
                f"a piece of {columns.shape[1]} {columns.dtype} rows cannot follow one of {held.shape[1]} {held.dtype}"
            )
        held = columns if held is None else np.concatenate([held, columns], axis=-1)
        while held.shape[-1] >= size:
            yield size, held[..., :size]
            held = held[..., size:]
            size = main
    if held is not None:
        start = 0
        for last in _rest_sizes(held.shape[-1], main, first):
            yield last, held[..., start : start + last]
            start += last


def _decode_groups(
    groups: Iterable[tuple[int, CodeArray]],
    steps_by_size: Mapping[int, RunStep],
    cache_numel: int,
    samples_per_code: int,
) -> Iterator[npt.NDArray[Any]]:
    """Runs a step on each group, from a zeroed cache on, and yields the samples of its codes."""
    if cache_numel < 1 or samples_per_code < 1:
        raise ValueError(
            f"a step needs a cache and samples for each code, not {cache_numel} elements and {samples_per_code} samples"
        )
    cache = np.zeros(cache_numel, np.float32)
    start = 0
    for size, group in groups:
        valid = group.shape[-1]
        window = np.zeros((*group.shape[:-1], size), group.dtype)
        window[..., :valid] = group
        audio, cache_out = steps_by_size[size](window, cache)
        samples = np.asarray(audio).reshape(-1)
        cache = np.asarray(cache_out, np.float32).reshape(-1)
        if samples.size != size * samples_per_code:
            raise ValueError(
                f"the step at code {start} gave {samples.size} samples, expected {size} codes x {samples_per_code}"
            )
        if cache.size != cache_numel:
            raise ValueError(
                f"the step at code {start} gave a cache of {cache.size} elements, expected {cache_numel} as it took"
            )
        yield samples[: valid * samples_per_code]
        start += valid


def _columns(latent: CodeArray) -> CodeArray:
    """The latent or codes as the steps take them: `[1, C, N]`, floats as float32."""
    columns = np.asarray(latent)
    if columns.ndim != 3 or columns.shape[0] != 1:
        raise ValueError(f"a latent or codes must be [1, C, N], not {list(columns.shape)}")
    return columns.astype(np.float32, copy=False) if columns.dtype.kind == "f" else columns


def _check_sizes(main: int, first: int | None) -> None:
    if main < 1:
        raise ValueError(f"a step decodes at least one code, not {main}")
    if first is not None and not 1 <= first < main:
        raise ValueError(
            f"the first step decodes from 1 to {main - 1} codes, fewer than the {main} of the main, not {first}"
        )


def _check_runs(sizes: set[int], steps_by_size: Mapping[int, RunStep]) -> None:
    missing = sorted(sizes - set(steps_by_size))
    if missing:
        raise ValueError(f"nothing runs steps of {missing} codes: there are steps of {sorted(steps_by_size)}")


def _check_plan(steps: list[CodeStep], codes: int) -> None:
    """Every code once and in order; no step continues from a cache that has taken padding in."""
    start = 0
    for step in steps:
        if step.start != start or not 1 <= step.valid <= step.size:
            raise ValueError(f"the plan has {step} where a step must start at code {start} and hold 1 to its size")
        start += step.valid
    if start != codes:
        raise ValueError(f"the plan decodes {start} codes, and the stream has {codes}")
    for step in steps[:-1]:
        if step.valid < step.size:
            raise ValueError(f"the plan continues from {step}, whose cache has taken its padding in")


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
