"""Decodes codes while they arrive by the window role: each event from a zeroed cache, with a left context before it.

It is `walk_events` for a stream whose end is not known. Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from typing import Any, Iterable, Iterator

import numpy as np
import numpy.typing as npt

from rknn_tts_runtime.stateful import CodeArray, RunStep, decode_event


def stream_events(
    latents: Iterable[CodeArray],
    run: RunStep,
    context: int,
    emitted: int,
    size: int,
    cache_numel: int,
    samples_per_code: int,
) -> Iterator[npt.NDArray[Any]]:
    """Decode codes event by event, yielding the audio of each as soon as it is decoded.

    The first audio needs `emitted` codes, and no more of `latents` is read before it is yielded. Of what came before,
    `context` codes are kept.

    Args:
        latents: pieces of the stream, latents `[1, C, n]` or codes `[1, Q, n]` of any n, also 0; may never end.
        run: runs a step of `size` codes.
        context: codes decoded before the new ones of an event; the first events have as many as there are.
        emitted: new codes of an event; the last has what is left.
        size: codes that the step decodes: at least `context + emitted`.
        cache_numel: elements of the cache.
        samples_per_code: samples per code.

    Yields:
        The samples of each event; nothing for a stream without codes.

    Raises:
        ValueError: the geometry is wrong, a piece has another shape than the ones before, or `run` returns another
            number of samples or of cache elements.
    """
    if context < 0 or emitted < 1 or context + emitted > size:
        raise ValueError(f"a step of {size} codes cannot hold an event of {context}+{emitted}")
    held: CodeArray | None = None
    before = 0  # codes of `held` that are context
    for piece in latents:
        held = np.asarray(piece) if held is None else np.concatenate([held, piece], axis=-1)
        while held.shape[-1] - before >= emitted:
            event = held[..., : before + emitted]
            yield decode_event(event, run, before, size, cache_numel, samples_per_code)
            before_next = min(context, before + emitted)
            held = held[..., before + emitted - before_next :]
            before = before_next
    if held is not None and held.shape[-1] > before:
        yield decode_event(held, run, before, size, cache_numel, samples_per_code)
