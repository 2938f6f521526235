"""Which families speak, and how a voice of each is opened.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import importlib
from typing import Callable, Mapping

from rknn_tts_runtime.backends.engine import Backend
from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.plans.plan import Plan
from rknn_tts_runtime.speaking.speaker import Asked, Speaker

OpenSpeaker = Callable[[Plan, Backend], Speaker]

QWEN3 = "qwen3"
"""The family that voices codes."""

SPEAKERS: Mapping[str, tuple[str, str]] = {
    "piper": ("rknn_tts_runtime.speaking.piper", "open_piper"),
    "kokoro": ("rknn_tts_runtime.speaking.kokoro", "open_kokoro"),
    "inflect": ("rknn_tts_runtime.speaking.inflect", "open_inflect"),
    QWEN3: ("rknn_tts_runtime.speaking.codes_speaker", "open_codes_speaker"),
}
"""Family to the module and function that open a voice of it; imported when it is asked for."""


def open_speaker(plan: Plan, backend: Backend) -> Speaker:
    """The voice of `plan`, its engines open on `backend`.

    Raises:
        BadInput: the plan's family does not speak, or a file of the plan is not what it should be.
        RunFault: an engine cannot be loaded.
    """
    if plan.family not in SPEAKERS:
        raise BadInput(
            f"{plan.path}: {plan.family} does not speak here, only {', '.join(SPEAKERS)} do; its engines run "
            "under a program of yours that calls the walks (README of the runtime)."
        )
    module, function = SPEAKERS[plan.family]
    open_voice: OpenSpeaker = getattr(importlib.import_module(module), function)
    return open_voice(plan, backend)


def the_plan(plans: Mapping[str, Plan], path: object) -> Plan:
    """The one of `plans`, which are those of the file `path`: the only one, or the only one that speaks.

    Raises:
        BadInput: there is none, or several speak.
    """
    speaking = [name for name in plans if name in SPEAKERS] or list(plans)
    if len(speaking) != 1:
        raise BadInput(f"{path}: has plans of {', '.join(plans) or 'nothing'}; --family says which is meant.")
    return plans[speaking[0]]


def check_asked(family: str, asked: Asked) -> None:
    """Check that a voice of `family` takes what `asked` gives: words, or codes.

    Raises:
        BadInput: it does not.
    """
    if asked.codes is not None and family != QWEN3:
        raise BadInput(f"--codes: {family} speaks words; give --text, --phonemes or --ids.")
