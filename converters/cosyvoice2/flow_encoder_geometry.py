"""What a user may choose about CosyVoice2's flow encoder, checked, and the names that follow from it. No torch."""

from __future__ import annotations

import re
from dataclasses import dataclass

from contracts.errors import UserInput
from converters.stages import StageOptions
from models.cosyvoice2.encoder_states import StepSizes

STEADY, FIRST = "steady", "first"
"""The step that a stream goes on with, and the one that it may begin with: it waits for fewer tokens (reference)."""

DEFAULT_CHUNK, DEFAULT_LOOK_AHEAD = 16, "1,3"
"""The reference's steps: 16 tokens and one ahead first, three ahead then."""

DEFAULT_HISTORY = 352
"""Tokens, of 25 a second, 22 steps of 16: a voice's 3 s (the reference's prompt) and 10 s of speech behind it, and the
step itself."""

MOST_CHUNK, MOST_HISTORY = 64, 1024
"""2.6 s and 41 s: longer sentences are cut (reference, Known limits), and the time of a step grows with both."""

_COUNT = re.compile(r"\d{1,2}")
_ENGINES = 2


@dataclass(frozen=True)
class Geometry:
    """The steps.

    Attributes:
        sizes: by role, of the engines that are asked for.
        steps: of all steps that a stream is proven with.
    """

    sizes: dict[str, StepSizes]
    steps: dict[str, StepSizes]

    def stem(self, role: str) -> str:
        """The file stem of the engine for `role`: a history that is not the default one is in it."""
        size = self.sizes[role]
        history = "" if size.history == DEFAULT_HISTORY else f"-h{size.history}"
        return f"cosyvoice2-flow_encoder-t{size.chunk}+{size.look_ahead}{history}"


def roles(options: StageOptions) -> tuple[str, ...]:
    """The engines that `options` ask for.

    Raises:
        UserInput: as `geometry_of`.
    """
    return tuple(geometry_of(options).sizes)


def geometry_of(options: StageOptions) -> Geometry:
    """The geometry that `options` ask for: steps of 16 tokens, with three ahead and with one, by default.

    Raises:
        UserInput: an option has no such value.
    """
    chunk = DEFAULT_CHUNK if options.chunk is None else options.chunk
    if not 1 <= chunk <= MOST_CHUNK:
        raise UserInput(f"--chunk {chunk}: a step takes 1 to {MOST_CHUNK} tokens.")
    history = DEFAULT_HISTORY if options.history is None else options.history
    if not chunk <= history <= MOST_HISTORY:
        raise UserInput(
            f"--history {history}: {chunk} to {MOST_HISTORY} tokens can be remembered, those of a step among them."
        )
    aheads = _aheads(DEFAULT_LOOK_AHEAD if options.look_ahead is None else options.look_ahead)
    made = (StepSizes(chunk, ahead, history) for ahead in aheads)
    steps = dict(zip((STEADY, FIRST), made, strict=False))
    if options.member is None:
        return Geometry(steps, steps)
    if options.member not in steps:
        raise UserInput(
            f"--member {options.member}: {' or '.join(steps)} is expected: --look-ahead 1,3 asks for first and steady."
        )
    return Geometry({options.member: steps[options.member]}, steps)


def _aheads(text: str) -> list[int]:
    """How many tokens ahead the steps see, the most first."""
    words = [word.strip() for word in text.split(",")]
    counts = [int(word) for word in words if _COUNT.fullmatch(word)]
    if len(counts) != len(words) or len(words) > _ENGINES or len(set(counts)) != len(counts):
        raise UserInput(
            f"--look-ahead {text:.40}: one number of tokens, or two different ones, are expected: {DEFAULT_LOOK_AHEAD}."
        )
    return sorted(counts, reverse=True)
