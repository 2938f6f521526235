"""What a user may choose about CosyVoice2's vocoder and its predictor of pitch, checked. No torch."""

from __future__ import annotations

from contracts.contract import Window
from contracts.errors import UserInput
from converters.number_lists import different_numbers
from converters.stages import StageOptions
from models.cosyvoice2.hift_config import CACHE_FRAMES, HOP, MOST_FRAMES, PITCH_FIELD, SAMPLE_RATE
from surgery.sine_forms import Form

DEFAULT_BUCKETS = "32,40"
"""The frames of a stream's first chunk, 16 tokens, and those of a later one with what is decoded again."""

LEAST_FRAMES = 2 * PITCH_FIELD + 1
"""Of a bucket: a pitch sees so many, and a window must be more than what it decodes again."""


def roles(options: StageOptions) -> tuple[str, ...]:
    """The engines that `options` ask for: `b32`, `b40`.

    Raises:
        UserInput: there are no such buckets.
    """
    return tuple(f"b{width}" for width in widths_of(options))


def widths_of(options: StageOptions) -> tuple[int, ...]:
    """The buckets in mel frames, the narrowest first.

    Raises:
        UserInput: there are no such buckets.
    """
    asked = DEFAULT_BUCKETS if options.buckets is None else options.buckets
    widths = different_numbers("buckets", asked, "mel frames", DEFAULT_BUCKETS)
    if widths[0] < LEAST_FRAMES:
        raise UserInput(f"--buckets {asked:.40}: a bucket has {LEAST_FRAMES} mel frames or more.")
    if widths[-1] > MOST_FRAMES:
        raise UserInput(
            f"--buckets {asked:.40}: a bucket has {MOST_FRAMES} mel frames or fewer: the NPU counts the columns of a "
            "layer, 120 for each, in 13 bits."
        )
    return widths


def width_of(role: str) -> int:
    """The mel frames of the engine for `role`."""
    return int(role.removeprefix("b"))


def hift_window(width: int) -> Window:
    """The geometry of the vocoder: the audio of its last frames is decoded again by the window behind it."""
    return Window(width, width - CACHE_FRAMES, 0, CACHE_FRAMES, HOP, SAMPLE_RATE)


def f0_window(width: int) -> Window:
    """The geometry of the predictor: what a pitch sees on each side."""
    return Window(width, width - 2 * PITCH_FIELD, PITCH_FIELD, PITCH_FIELD, HOP, SAMPLE_RATE)


def form_of(options: StageOptions) -> Form:
    """The form of the sines.

    Raises:
        UserInput: there is no such form.
    """
    try:
        return Form.TRIANGLE if options.sine is None else Form(options.sine)
    except ValueError:
        names = ", ".join(form.value for form in Form)
        raise UserInput(f"--sine {options.sine:.40}: one of {names} is expected.") from None


def hift_stem(role: str, form: Form) -> str:
    """The file stem of the vocoder for `role`: what differs from the defaults is in it."""
    return "-".join(["cosyvoice2-hift", role, *([form.value] if form is not Form.TRIANGLE else [])])


def f0_stem(role: str) -> str:
    """The file stem of the predictor for `role`."""
    return f"cosyvoice2-f0-{role}"
