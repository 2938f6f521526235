"""What a user may choose about CosyVoice2's flow estimator, checked, and the names that follow from it. No torch."""

from __future__ import annotations

from dataclasses import dataclass

from contracts.errors import UserInput
from converters.number_lists import ascending_numbers
from converters.stages import StageOptions

STEP = "step"
"""The engine that goes along a stream; others take so many frames at once: `s200`."""

FRAMES_PER_TOKEN = 2
"""Mel frames that the flow encoder makes of a speech token."""

DEFAULT_CHUNK = 16
"""Tokens of a step, the reference's: 32 frames, 0.64 s."""

DEFAULT_HISTORY = 128
"""Tokens whose keys and values a step sees: 5.1 s, a voice's 3 s (the reference's prompt) and more behind it than the
one second to which upstream cuts its cache."""

MOST_CHUNK, MOST_HISTORY = 64, 1024
"""2.6 s and 41 s: as of the flow encoder."""

SHORTEST, LONGEST = 16, 1500
"""Frames of an engine that takes all at once: a third of a second, and half a minute, beyond which sentences are cut
(the reference, Known limits)."""


@dataclass(frozen=True)
class StepSizes:
    """Sizes of a step.

    Attributes:
        frames: that it takes.
        history: frames before them whose keys and values it takes, too.
    """

    frames: int
    history: int


@dataclass(frozen=True)
class Geometry:
    """The engines that are asked for.

    Attributes:
        step: of the step; None where none is asked for.
        lengths: frames of the others, by role.
    """

    step: StepSizes | None
    lengths: dict[str, int]

    @property
    def roles(self) -> tuple[str, ...]:
        """All of them."""
        return (*([STEP] if self.step is not None else []), *self.lengths)

    def stem(self, role: str) -> str:
        """The file stem of the engine for `role`: a history that is not the default one is in it."""
        if role != STEP or self.step is None:
            return f"cosyvoice2-flow_estimator-{role}"
        history = self.step.history // FRAMES_PER_TOKEN
        kept = "" if history == DEFAULT_HISTORY else f"-h{history}"
        return f"cosyvoice2-flow_estimator-t{self.step.frames // FRAMES_PER_TOKEN}{kept}"


def roles(options: StageOptions) -> tuple[str, ...]:
    """The engines that `options` ask for.

    Raises:
        UserInput: as `geometry_of`.
    """
    return geometry_of(options).roles


def geometry_of(options: StageOptions) -> Geometry:
    """The engines that `options` ask for: a step by default, and one for each of `lengths` instead; both, where the
    step's sizes are given too.

    Raises:
        UserInput: an option has no such value.
    """
    stepwise = options.lengths is None or options.chunk is not None or options.history is not None
    step = _step(options) if stepwise else None
    lengths = {} if options.lengths is None else {f"s{length}": length for length in _lengths(options.lengths)}
    made = Geometry(step, lengths)
    if options.member is None:
        return made
    if options.member not in made.roles:
        raise UserInput(
            f"--member {options.member}: {' or '.join(made.roles)} is expected: --chunk 16 asks for {STEP}, --lengths "
            "200 for s200."
        )
    if options.member == STEP:
        return Geometry(step, {})
    return Geometry(None, {options.member: lengths[options.member]})


def _step(options: StageOptions) -> StepSizes:
    chunk = DEFAULT_CHUNK if options.chunk is None else options.chunk
    if not 1 <= chunk <= MOST_CHUNK:
        raise UserInput(f"--chunk {chunk}: a step takes 1 to {MOST_CHUNK} tokens.")
    history = DEFAULT_HISTORY if options.history is None else options.history
    if not chunk <= history <= MOST_HISTORY:
        raise UserInput(f"--history {history}: {chunk} to {MOST_HISTORY} tokens can be remembered, a step's at least.")
    return StepSizes(FRAMES_PER_TOKEN * chunk, FRAMES_PER_TOKEN * history)


def _lengths(text: str) -> tuple[int, ...]:
    lengths = ascending_numbers("lengths", text, "frames", "200,400")
    if not SHORTEST <= lengths[0] <= lengths[-1] <= LONGEST:
        raise UserInput(f"--lengths {text:.60}: an engine takes {SHORTEST} to {LONGEST} frames.")
    return lengths
