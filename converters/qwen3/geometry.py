"""What a user may choose about Qwen3's streaming step, checked, and the names that follow from it. No torch."""

from __future__ import annotations

import re
from dataclasses import dataclass

from contracts.errors import UserInput
from converters.stages import StageOptions
from models.qwen3.cache import KINDS, REFERENCE
from surgery.sine_forms import Form

MAIN, FIRST, WINDOW = "main", "first", "window"
"""The execution plan's artifacts (reference, Component execution plans): the large step, the small one that makes the
first audio come early, and the one that voices a left context anew for each event."""

ROLES = (MAIN, FIRST, WINDOW)

HIDDEN, CODES = "hidden", "codes"
"""The seams: the state behind the quantizer, which the host half looks up, or the codes themselves."""

SEAMS = (HIDDEN, CODES)

DEFAULT_CODES = "64,16"
"""The reference's two steps."""

MOST_CODES = 128
"""Of a step: twice the reference's, whose longest axis has 122,880 samples already."""

_EVENT = re.compile(r"(\d{1,4})\+(\d{1,4})")
_COUNT = re.compile(r"\d{1,4}")


@dataclass(frozen=True)
class Size:
    """One engine's step.

    Attributes:
        codes: how many it takes, B.
        context: of those, how many are there to be heard again and dropped; 0 where the cache has the past.
    """

    codes: int
    context: int = 0

    @property
    def emitted(self) -> int:
        """Codes whose audio is kept."""
        return self.codes - self.context


@dataclass(frozen=True)
class Geometry:
    """The steps, by role, and how they are computed.

    Attributes:
        sizes: by role, of the engines that are asked for.
        steps: of `main` and `first`, whichever are asked for: a stream is proven with both.
        seam: HIDDEN or CODES.
        cache: one of `models.qwen3.cache.KINDS`.
        form: of the sines.
    """

    sizes: dict[str, Size]
    steps: dict[str, Size]
    seam: str
    cache: str
    form: Form

    def stem(self, role: str) -> str:
        """The file stem of the engine for `role`: what differs from the defaults is in it."""
        size = self.sizes[role]
        taken = f"b{size.codes}" if role != WINDOW else f"b{size.context}+{size.emitted}"
        parts = ["qwen3-speech_decoder", taken]
        parts += [self.seam] if self.seam != HIDDEN else []
        parts += [self.cache] if self.cache != REFERENCE else []
        parts += [self.form.value] if self.form is not Form.SOFT else []
        return "-".join([*parts, role])


def roles(options: StageOptions) -> tuple[str, ...]:
    """The engines that `options` ask for.

    Raises:
        UserInput: as `geometry_of`.
    """
    return tuple(geometry_of(options).sizes)


def geometry_of(options: StageOptions) -> Geometry:
    """The geometry that `options` ask for: steps of 64 and of 16 codes by default.

    Raises:
        UserInput: an option has no such value.
    """
    steps = _steps(options.codes)
    sizes = {**steps, **_window(options.window_role)}
    if options.member is not None:
        if options.member not in sizes:
            raise UserInput(f"--member {options.member}: {' or '.join(sizes)} is expected: {_WHERE_FROM}.")
        sizes = {options.member: sizes[options.member]}
    return Geometry(
        sizes,
        steps,
        _one_of("--seam", options.seam, SEAMS, HIDDEN),
        _one_of("--cache", options.cache, KINDS, REFERENCE),
        Form(_one_of("--sine", options.sine, [form.value for form in Form], Form.SOFT.value)),
    )


_WHERE_FROM = "--codes 64,16 asks for main and first, --window-role 25+12 for window"


def _steps(text: str | None) -> dict[str, Size]:
    asked = DEFAULT_CODES if text is None else text
    counts = [int(word) for word in asked.split(",") if _COUNT.fullmatch(word.strip())]
    if len(counts) != len(asked.split(",")) or len(counts) > len((MAIN, FIRST)) or len(set(counts)) != len(counts):
        raise UserInput(f"--codes {asked:.40}: one number of codes, or two different ones, are expected: 64,16.")
    if not all(1 <= count <= MOST_CODES for count in counts):
        raise UserInput(f"--codes {asked:.40}: a step takes 1 to {MOST_CODES} codes.")
    return dict(zip((MAIN, FIRST), map(Size, sorted(counts, reverse=True)), strict=False))


def _window(text: str | None) -> dict[str, Size]:
    if text is None:
        return {}
    found = _EVENT.fullmatch(text)
    if found is None:
        raise UserInput(f"--window-role {text:.40}: codes of context and new ones are expected: 25+12.")
    context, emitted = map(int, found.groups())
    if emitted < 1 or context + emitted > MOST_CODES:
        raise UserInput(
            f"--window-role {text:.40}: at least one new code is expected, and at most {MOST_CODES} with the context."
        )
    return {WINDOW: Size(context + emitted, context)}


def _one_of(option: str, value: str | None, choices: tuple[str, ...] | list[str], default: str) -> str:
    if value is not None and value not in choices:
        raise UserInput(f"{option} {value:.40}: one of {', '.join(choices)} is expected.")
    return value or default
