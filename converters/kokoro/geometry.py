"""What a user may choose about Kokoro's generator, checked, and the names that follow from it. No torch."""

from __future__ import annotations

from dataclasses import dataclass

from contracts.contract import Window
from contracts.errors import UserInput
from converters.stages import StageOptions
from models.kokoro.config import SAMPLE_RATE, GeneratorConfig, receptive_frames
from surgery.sine_forms import Form

FULL, SHORT = "full", "short"
"""The engine for utterances of at least a window, whose windows hold no padding, and the one for shorter ones."""

NATIVE, GAP = "native", "gap"
"""How `full` normalises: by the NPU's own norm, or by means that the pooling engine computes."""

WINDOW_FRAMES = 128
"""The widest power of two whose longest axis fits (reference, Kokoro generator)."""

LONGEST_AXIS = 8191
"""Steps of the longest axis: the NPU encodes it in 13 bits (reference, Kokoro generator)."""


@dataclass(frozen=True)
class Geometry:
    """The window, and how it is computed.

    Attributes:
        window: frames, context, hop.
        inner: frames of the windows inside the graph; None: it is computed as one.
        padding: context of those.
        seen: frames of context that a frame depends on, the default of both contexts.
        norm: NATIVE or GAP, of `full`.
        form: of the sines.
    """

    window: Window
    inner: int | None
    padding: int
    seen: int
    norm: str
    form: Form

    def stem(self, role: str) -> str:
        """The file stem of the engine for `role`: what differs from the defaults is in it."""
        parts = [f"kokoro-generator-w{self.window.frames}"]
        parts += [f"c{self.window.left}"] if self.window.left != self.seen else []
        parts += [f"walk{self.inner}"] if self.inner is not None else []
        parts += [f"p{self.padding}"] if self.inner is not None and self.padding != self.seen else []
        parts += [self.norm] if role == FULL and self.norm != NATIVE else []
        parts += [self.form.value] if self.form is not Form.TRIANGLE else []
        return "-".join([*parts, role])


def roles(options: StageOptions) -> tuple[str, ...]:
    """The engines that `options` ask for.

    Raises:
        UserInput: there is no such one.
    """
    if options.member not in (None, FULL, SHORT):
        raise UserInput(f"--member {options.member}: kokoro generator has full and short.")
    if options.max_axis is not None:
        if options.member == SHORT:
            raise UserInput("--max-axis walks windows without padding: it makes the engine full, and none for short.")
        return (FULL,)
    return (FULL, SHORT) if options.member is None else (options.member,)


def geometry_of(options: StageOptions, config: GeneratorConfig) -> Geometry:
    """The geometry that `options` ask for: 9 + 110 + 9 frames by default.

    Raises:
        UserInput: an option has no such value, the context leaves nothing to emit, or an axis gets too long.
    """
    seen = receptive_frames(config)
    context = seen if options.context is None else options.context
    frames = WINDOW_FRAMES if options.window is None else options.window
    emitted = frames - 2 * context
    if context < 0:
        raise UserInput(
            f"--context {context}: is less than none; {seen} frames, the default, are all that a frame sees."
        )
    if emitted < 1:
        raise UserInput(
            f"--window {frames} --context {context}: a window needs room for the context on both sides and "
            f"at least one frame to emit: --window {2 * context + 1} or more."
        )
    padding = seen if options.padding is None else options.padding
    inner = _inner_frames(frames, options, padding, config.columns_per_frame)
    window = Window(frames, emitted, context, context, config.hop, SAMPLE_RATE)
    return Geometry(window, inner, padding, seen, _norm(options), _form(options))


def _inner_frames(frames: int, options: StageOptions, padding: int, rate: int) -> int | None:
    widest = (LONGEST_AXIS - 1) // rate
    if options.max_axis is None:
        if options.padding is not None:
            raise UserInput("--padding is the context of windows inside the graph: it needs --max-axis.")
        if rate * frames + 1 > LONGEST_AXIS:
            raise UserInput(
                f"--window {frames}: the spectrogram axis would have {rate} x {frames} + 1 = {rate * frames + 1} "
                f"columns, and the NPU encodes an axis in 13 bits, {LONGEST_AXIS} at most: --window {widest} or less, "
                f"or --max-axis {LONGEST_AXIS} to walk windows inside the graph."
            )
        return None
    inner = (options.max_axis - 1) // rate
    if options.max_axis > LONGEST_AXIS:
        raise UserInput(f"--max-axis {options.max_axis}: the NPU encodes an axis in 13 bits, {LONGEST_AXIS} at most.")
    if padding < 0:
        raise UserInput(f"--padding {padding}: is less than none; without it, it is all that a frame sees.")
    if inner - 2 * padding < 1:
        least = rate * (2 * padding + 1) + 1
        remedy = (
            f"--max-axis {least} or more"
            if least <= LONGEST_AXIS
            else f"--padding {(widest - 1) // 2} or less, with --max-axis {LONGEST_AXIS}"
        )
        raise UserInput(
            f"--max-axis {options.max_axis} --padding {padding}: windows of ({options.max_axis} - 1) / {rate} = "
            f"{inner} frames leave nothing to emit: {remedy}."
        )
    return inner if frames > inner else None


def _norm(options: StageOptions) -> str:
    if options.norm not in (None, NATIVE, GAP):
        raise UserInput(f"--norm {options.norm}: {NATIVE} or {GAP} is expected.")
    return options.norm or NATIVE


def _form(options: StageOptions) -> Form:
    try:
        return Form.TRIANGLE if options.sine is None else Form(options.sine)
    except ValueError:
        names = ", ".join(form.value for form in Form)
        raise UserInput(f"--sine {options.sine}: one of {names} is expected.") from None
