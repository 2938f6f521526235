"""The numbers of frames that a user may ask the speaker encoder for, checked. No torch."""

from __future__ import annotations

from contracts.errors import UserInput
from converters.number_lists import different_numbers
from converters.stages import StageOptions
from models.cosyvoice2.speaker_config import SEGMENT

DEFAULT_LENGTHS = "200,400"
"""2 and 4 s of speech at 100 frames a second, about the reference's flow prompt of 3 s."""

FRAMES_PER_SEGMENT = 2 * SEGMENT
"""Lengths are whole numbers of a gate's segments: of a shorter last one torch divides the sum by what there is, and
onnxruntime, which runs the published file, by a whole segment below opset 19 (onnxruntime, issue 16203): the same
encoder at 250 frames, 32 dB apart on a small one."""

MOST_FRAMES = 1000
"""Of an engine: 10 s."""


def lengths_of(options: StageOptions) -> tuple[int, ...]:
    """The lengths in frames, ascending.

    Raises:
        UserInput: they are no different whole numbers within the limits.
    """
    asked = DEFAULT_LENGTHS if options.lengths is None else options.lengths
    lengths = different_numbers("lengths", asked, "frames", DEFAULT_LENGTHS)
    if any(length % FRAMES_PER_SEGMENT for length in lengths) or not 0 < lengths[0] <= lengths[-1] <= MOST_FRAMES:
        raise UserInput(
            f"--lengths {asked:.60}: an engine of the speaker encoder takes {FRAMES_PER_SEGMENT} frames or a multiple "
            f"of that, up to {MOST_FRAMES}, 100 a second; longer speech is cropped, and shorter repeated."
        )
    return lengths


def roles(options: StageOptions) -> tuple[str, ...]:
    """The engines that `options` ask for, one a length: `t200`, `t400`.

    Raises:
        UserInput: there are no such lengths.
    """
    return tuple(f"t{length}" for length in lengths_of(options))


def length_of(role: str) -> int:
    """The frames of the engine for `role`."""
    return int(role.removeprefix("t"))
