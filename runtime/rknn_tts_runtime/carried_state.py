"""A walk over steps whose states are tensors of their own, each given on to the next step.

A state is either replaced whole by what a step gives, or kept by the host, who writes what a step gives along one axis
of it: behind what is there, and from the first place on again where the end is reached. A stream starts with zeros.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

Array = Any
"""A numpy array."""

Run = Callable[[Mapping[str, Array]], Mapping[str, Array]]
"""One step: inputs by name to outputs by name."""

_IMAGE_AXES = 4
"""Only tensors of so many axes, N, C, H, W, are another order to the NPU (npu/attributes.py)."""


@dataclass(frozen=True)
class State:
    """One tensor that goes from step to step.

    Attributes:
        input: the name of the step's input, and its shape and dtype.
        output: the name of the output that belongs to it.
        shape: of the input.
        axis: None where the output is the next input. Or the axis of the input that the output is written along.
        dtype: of the input.
    """

    input: str
    output: str
    shape: tuple[int, ...]
    axis: int | None = None
    dtype: str = "float32"


def zero_states(states: Sequence[State]) -> dict[str, Array]:
    """What a stream starts with, by the input's name.

    A state of four axes that is written to lies in memory as N, H, W, C, which the NPU takes as it is. Turned in each
    step, those of CosyVoice2's flow (117 MB) took a PC 30 ms, and the step's engine is modelled at 71.6 ms.
    """
    return {state.input: _zeros(state) for state in states}


def written(kept: Array, new: Array, axis: int, start: int) -> tuple[Array, int]:
    """`kept` with `new` written along `axis` from place `start` on, and the place behind it.

    The place behind the last one is the first. `kept` itself is changed.

    Raises:
        ValueError: `new` has more places than `kept`, or differs in another axis.
    """
    places, count = kept.shape[axis], new.shape[axis]
    others = [tuple(np.delete(array.shape, axis)) for array in (kept, new)]
    if count > places or others[0] != others[1]:
        raise ValueError(f"{new.shape} cannot be written along axis {axis} of {kept.shape}")
    before = (slice(None),) * axis
    start %= places
    fitting = min(count, places - start)  # the others go on from the first place
    for to, of in (
        (slice(start, start + fitting), slice(fitting)),
        (slice(count - fitting), slice(fitting, count)),
    ):
        there, here = (*before, to), (*before, of)
        kept[there] = new[here]
    return kept, (start + count) % places


def walk_states(run: Run, states: Sequence[State], steps: Iterable[Mapping[str, Array]]) -> Iterator[dict[str, Array]]:
    """The outputs of each of `steps`, which go along one stream.

    Args:
        run: does one step; it gets the states among its inputs, and must not change them.
        states: what goes from step to step.
        steps: the other inputs of each step.

    Yields:
        The outputs of a step by name, those of states among them.

    Raises:
        ValueError: a state's output has another shape than it should.
    """
    kept = zero_states(states)
    places = {state.input: 0 for state in states}
    for inputs in steps:
        given = dict(run({**inputs, **kept}))
        for state in states:
            new = np.asarray(given[state.output])
            name = state.input
            if state.axis is not None:
                kept[name], places[name] = written(kept[name], new, state.axis, places[name])
            elif new.shape == tuple(state.shape):
                kept[name] = new
            else:
                raise ValueError(f"the state {name!r} is {tuple(state.shape)} and {state.output!r} {new.shape}")
        yield given


def _zeros(state: State) -> Array:
    if state.axis is None or len(state.shape) != _IMAGE_AXES:
        return np.zeros(state.shape, state.dtype)
    batch, channels, height, width = state.shape
    return np.zeros((batch, height, width, channels), state.dtype).transpose(0, 3, 1, 2)
