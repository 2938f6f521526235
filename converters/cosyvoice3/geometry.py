"""The lengths that a user may ask for of CosyVoice3's flow, checked, and the names that follow from them. No torch."""

from __future__ import annotations

from contracts.errors import UserInput
from converters.number_lists import ascending_numbers
from converters.stages import StageOptions

DEFAULT_LENGTHS = "110,200,250,400"
"""Mel frames, of 50 a second, of the reference's ladder: 2.2, 4, 5 and 8 s, a voice's prompt among them."""

SHORTEST, LONGEST = 16, 2000
"""Frames: a third of a second, and the longest that the reference compiled."""

LOADED_FRAMES, REFUSED_FRAMES = 500, 900
"""The longest engine of the reference that a board loads, and the shortest that it does not (reference, The IOVA
ceiling)."""

BEYOND = (
    f"on the reference's board engines of {REFUSED_FRAMES} frames and more did not load: the driver has 4 GB of "
    "addresses for one mapping, and those asked for 4.7 and more"
)
"""What a person should know of long engines (the same)."""


def roles(options: StageOptions) -> tuple[str, ...]:
    """The engines that `options` ask for, one a length: "s110" takes 110 frames.

    Raises:
        UserInput: as `lengths_of`.
    """
    return tuple(f"s{length}" for length in lengths_of(options))


def lengths_of(options: StageOptions) -> tuple[int, ...]:
    """The lengths that `options` ask for, in frames.

    Raises:
        UserInput: they are no ascending whole numbers within the limits.
    """
    asked = DEFAULT_LENGTHS if options.lengths is None else options.lengths
    lengths = ascending_numbers("lengths", asked, "frames", DEFAULT_LENGTHS)
    if lengths[0] < SHORTEST:
        raise UserInput(f"--lengths {asked:.60}: an engine takes {SHORTEST} frames or more; what is shorter is padded.")
    if lengths[-1] > LONGEST:
        raise UserInput(f"--lengths {asked:.60}: an engine takes {LONGEST} frames at most, for {BEYOND}.")
    return lengths


def stem_of(length: int) -> str:
    """The file stem of the engine for so many frames."""
    return f"cosyvoice3-flow-s{length}"


def notes_on(length: int) -> tuple[str, ...]:
    """What a person should know of an engine for so many frames."""
    return (f"An engine of {length} frames may not load: {BEYOND}.",) if length > LOADED_FRAMES else ()
