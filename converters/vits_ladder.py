"""Ladders of windows: what one decoder is built as, of which the board takes what costs an utterance least.

    --windows 128m,256t,448t

A rung is a width in latent frames and, behind it, what is made of that window: `m` masks the decoder behind every
convolution, so that an utterance shorter than the window ends exactly; `t` drops context on the way through the graph,
where no emitted sample needs it any more; no letter does neither. Where the user asks for no window at all, a stage has
a ladder for each target (`default_windows.json`). No torch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from rknn_tts_runtime.window_cover import Rung as CoverRung

from contracts.contract import Trim, Window
from contracts.errors import UserInput
from converters.number_lists import MOST
from converters.stages import StageOptions
from converters.vits_windows import PLACE, UsualWindow, window_of

MASKED, TRIMMED = "m", "t"
"""The letters of rungs."""

EXAMPLE = f"128{MASKED},256{TRIMMED},448{TRIMMED}"

DEFAULTS_FILE = Path(__file__).with_name("default_windows.json")
"""Stage to target to ladder; the key `default` is for targets that are not named, and for an export for none."""

_DEFAULT = "default"

_RUNG = re.compile(rf"(\d{{1,9}})([{MASKED}{TRIMMED}]?)")

_OF_ONE = ("window", "decoder_mask", "no_decoder_mask")
"""Options of a single window, which a rung's width and letter say."""


@dataclass(frozen=True)
class Rung:
    """One engine of a ladder.

    Attributes:
        frames: its width.
        letter: `MASKED`, `TRIMMED` or "".
    """

    frames: int
    letter: str

    @property
    def role(self) -> str:
        """What it is called among the engines of its stage."""
        return f"w{self.frames}"

    @property
    def text(self) -> str:
        """As the user writes it."""
        return f"{self.frames}{self.letter}"


@dataclass(frozen=True)
class DecoderWindow:
    """The window that one engine is built for.

    Attributes:
        window: geometry.
        masked: whether the decoder is masked, so that a short utterance ends exactly.
        trim: the context that it drops on the way; such an engine takes no utterance shorter than its window.
        takes_short: whether the board may run it on an utterance shorter than the window: of a ladder with masked
            rungs, those alone.
    """

    window: Window
    masked: bool
    trim: Trim | None
    takes_short: bool

    def rung(self, cost: float = 1.0) -> CoverRung:
        """It as the board's walk takes it, where a run costs so much."""
        frames = None if self.trim is None else self.trim.frames
        return CoverRung(self.window.frames, self.window.left, self.window.right, frames, self.masked, cost)


def rungs_of(windows: str) -> tuple[Rung, ...]:
    """The rungs of `windows`, narrowest first.

    Raises:
        UserInput: it is no list of widths with at most one of the letters, has too many, or two of one width.
    """
    found = [_RUNG.fullmatch(word.strip()) for word in windows.split(",")]
    rungs = [Rung(int(match[1]), match[2]) for match in found if match is not None]
    if len(rungs) != len(found) or len(rungs) > MOST:
        raise UserInput(
            f"--windows {windows:.60}: widths in frames are expected, at most {MOST} of them, each alone or with "
            f"{MASKED} (masked) or {TRIMMED} (trimmed) behind it, as in {EXAMPLE}."
        )
    widths = [rung.frames for rung in rungs]
    if alike := next((width for width in widths if widths.count(width) > 1), None):
        raise UserInput(f"--windows {windows:.60}: two engines of {alike} frames are asked for; leave one of them out.")
    return tuple(sorted(rungs, key=lambda rung: rung.frames))


def roles_of(options: StageOptions) -> tuple[str, ...]:
    """The engines that `options` ask for: one a rung, or a single one that needs no name.

    Raises:
        UserInput: see `rungs_of`; or a ladder and a single window are both asked for.
    """
    if options.windows is None:
        return ("",)
    if both := next((name for name in _OF_ONE if getattr(options, name) not in (None, False)), None):
        raise UserInput(
            f"--{both.replace('_', '-')} and --windows both say which window is built: give one of them. A mask is "
            f"the letter {MASKED} in --windows, as in {EXAMPLE}."
        )
    return tuple(rung.role for rung in rungs_of(options.windows))


def with_default_windows(stage: str, options: StageOptions, target: str | None) -> StageOptions:
    """`options`, with the ladder of `stage` ("piper.decoder") for `target` where they ask for no window at all."""
    asked = (options.windows, options.context, *(getattr(options, name) for name in _OF_ONE))
    if any(value is not None and value is not False for value in asked):  # 0 is a window, which is refused
        return options
    ladders = default_windows()[stage]
    return replace(options, windows=ladders.get(target or _DEFAULT, ladders[_DEFAULT]))


@cache
def default_windows() -> Mapping[str, Mapping[str, str]]:
    """The default ladders: stage to target to `--windows`."""
    data = json.loads(DEFAULTS_FILE.read_text(encoding="utf-8"))
    return {stage: ladders for stage, ladders in data.items() if isinstance(ladders, dict)}


def windows_of(
    options: StageOptions,
    usual: UsualWindow,
    masked: bool,
    hop: int,
    sample_rate: int | None,
    trimmed_frames: Callable[[Window], int],
) -> dict[str, DecoderWindow]:
    """The windows that `options` ask for, by role.

    Args:
        options: the user's.
        usual: the stage's single window.
        masked: whether that is masked.
        hop: samples per frame.
        sample_rate: samples per second.
        trimmed_frames: how many frames come out of a window that is trimmed.

    Raises:
        UserInput: see `roles_of` and `window_of`; or there is nothing to trim, or windows that are trimmed leave a gap.
    """
    roles_of(options)
    if options.windows is None:
        window = window_of(usual, options.window, options.context, hop, sample_rate)
        return {"": DecoderWindow(window, masked, None, takes_short=True)}
    rungs = rungs_of(options.windows)
    for_short = MASKED if any(rung.letter == MASKED for rung in rungs) else ""
    found = {}
    for rung in rungs:
        asked = f"--windows {rung.text}"
        window = window_of(usual, rung.frames, options.context, hop, sample_rate, asked)
        trim = _trim(asked, window, trimmed_frames(window)) if rung.letter == TRIMMED else None
        found[rung.role] = DecoderWindow(window, rung.letter == MASKED, trim, takes_short=rung.letter == for_short)
    return found


def _trim(asked: str, window: Window, frames: int) -> Trim:
    """What a window drops of which the samples of `frames` come out.

    Raises:
        UserInput: nothing, or the first window and the last one of an utterance as long as the window do not meet.
    """
    if frames >= window.frames:
        raise UserInput(
            f"{asked}: there is nothing to trim: {window.left} frames of context are no more than the last stages of "
            f"this decoder need; write {window.frames}, without {TRIMMED}."
        )
    outer = window.emitted + (frames - window.emitted) // 2
    if 2 * outer < window.frames:
        least = 4 * window.left - (frames - window.emitted)
        raise UserInput(
            f"{asked}: a trimmed window emits {outer} frames of its {window.frames} where an utterance begins or ends, "
            f"and these do not meet in one that is as long: {least}{TRIMMED} or wider, or {window.frames} without "
            f"{TRIMMED}."
        )
    return Trim(PLACE, frames)
