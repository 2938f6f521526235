"""What is swept of a stage: its one knob, and the values that are tried.

A stage with ladders of windows is swept over widths, each plain, masked and trimmed, and over contexts; one with a
single window over widths and contexts; one that goes along codes over the codes of a step. What takes an utterance
whole, in the shortest engine that holds it, has nothing to choose but how long utterances are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from contracts.errors import UserInput
from converters.number_lists import different_numbers
from converters.stages import Stage
from converters.vits_ladder import MASKED, TRIMMED
from rknn_tts.request import Request

WINDOWS, WINDOW, CODES = "windows", "window", "codes"
"""Options of stages by which an engine of another size is asked for: the knobs."""

PLAIN = "p"
"""The letter of a window that is neither masked nor trimmed, where a width alone stands for all three."""

FORMS = {PLAIN: "plain", MASKED: "masked", TRIMMED: "trimmed"}

DEFAULT_VALUES = {
    WINDOWS: "112,128,160,192,224,256,320,384,448,512,640",
    WINDOW: "64,96,128",
    CODES: "16,32,64",
}
"""What is swept where the user names nothing: of windows, 1.3 to 7.4 s of a Piper voice."""

MOST = 16
"""Widths of one sweep, each built up to three times a context."""

_WIDTH = re.compile(rf"(\d{{1,9}})([{''.join(FORMS)}]?)")

_WHOLE = frozenset({"lengths", "widths", "buckets", "chunk"})
"""Options of stages whose engines take an utterance, or a step of a fixed length, whole."""


@dataclass(frozen=True)
class Candidate:
    """One value of the knob.

    Attributes:
        name: what it is called in tables: `256t`, `256t c28` where contexts are swept too, `96`.
        knob: the option.
        value: what it is given.
        form: "plain", "masked" or "trimmed"; "" where the stage has no such choice.
        context: frames of context; None: the stage's own.
    """

    name: str
    knob: str
    value: str
    form: str
    context: int | None

    def request(self, asked: Request) -> Request:
        """The request that builds it, of the one that asks for a sweep."""
        return replace(
            asked,
            command="engine",
            output=None,
            window=int(self.value) if self.knob == WINDOW else None,
            windows=self.value if self.knob == WINDOWS else None,
            codes=self.value if self.knob == CODES else None,
            context=self.context,
        )


def knob_of(stage: Stage) -> str:
    """The option that `stage` is swept over.

    Raises:
        UserInput: it has none.
    """
    for knob in (WINDOWS, WINDOW, CODES):
        if knob in stage.options:
            return knob
    if stage.options & _WHOLE:
        raise UserInput(
            f"{stage.family} {stage.name} takes what it is given whole, in the shortest engine that holds it, so it "
            "has no window to tune: name the sizes that you need (`rknn-tts engine --help`)."
        )
    raise UserInput(f"{stage.family} {stage.name} has one engine of one size, so it has nothing to tune.")


def candidates_of(stage: Stage, request: Request) -> tuple[Candidate, ...]:
    """What `request` sweeps of `stage`, in the order in which it is told.

    Raises:
        UserInput: a list is none, or the stage has no such knob.
    """
    knob = knob_of(stage)
    for option, belongs in ((WINDOWS, (WINDOWS, WINDOW)), (CODES, (CODES,)), ("contexts", (WINDOWS, WINDOW))):
        if getattr(request, option) is not None and knob not in belongs:
            raise UserInput(f"{stage.family} {stage.name} is tuned over --{_list_of(knob)}, and takes no --{option}.")
    given = request.codes if knob == CODES else request.windows
    text = DEFAULT_VALUES[knob] if given is None else given
    if knob == CODES:
        sizes = different_numbers("codes", text, "codes", DEFAULT_VALUES[CODES])
        return tuple(Candidate(f"{size}", knob, f"{size}", "", None) for size in sizes)
    contexts: Sequence[int | None] = (None,)
    if request.contexts is not None:
        contexts = different_numbers("contexts", request.contexts, "frames", "28,32")
    return tuple(
        Candidate(_name(width, form, context), knob, _value(width, form), FORMS.get(form, ""), context)
        for width, form in _widths(text, forms=knob == WINDOWS)
        for context in contexts
    )


def _widths(text: str, *, forms: bool) -> list[tuple[int, str]]:
    """Widths and letters, narrowest first; a width without a letter stands for all forms."""
    words = [word.strip() for word in text.split(",")]
    found = [_WIDTH.fullmatch(word) for word in words]
    read = [(int(match[1]), match[2]) for match in found if match is not None]
    if len(read) < len(words) or len(words) > MOST or len(set(read)) < len(read):
        letters = f", each alone or with {', '.join(FORMS)} behind it" if forms else ""
        raise UserInput(
            f"--windows {text:.60}: different widths in frames are expected, at most {MOST} of them{letters}, as in "
            f"{'128m,256,448t' if forms else DEFAULT_VALUES[WINDOW]}."
        )
    if not forms:
        if any(letter for _, letter in read):
            raise UserInput(f"--windows {text:.60}: this stage has one form of a window, so a width has no letter.")
        return sorted(read)
    every = [(width, form) for width, letter in read for form in ([letter] if letter else FORMS)]
    order = list(FORMS)
    return sorted(dict.fromkeys(every), key=lambda one: (one[0], order.index(one[1])))


def _name(width: int, form: str, context: int | None) -> str:
    return f"{width}{form}" + ("" if context is None else f" c{context}")


def _value(width: int, form: str) -> str:
    return f"{width}" if form == PLAIN else f"{width}{form}"


def _list_of(knob: str) -> str:
    return CODES if knob == CODES else WINDOWS
