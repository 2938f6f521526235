"""What a user calls the chips an engine can be built for."""

from __future__ import annotations

from contracts.errors import UserInput
from contracts.targets import TARGETS

ALIASES = {"rk3588s": "rk3588"}
"""Other names of the same NPU: an engine for the one runs on the other."""

TOOLKIT_ONLY = ("rv1103", "rv1103b", "rv1106", "rv1106b", "rv1126b", "rk2118")
"""Accepted by rknn-toolkit2 2.3.2 (toolkit-facts, Operators), but cameras' and audio chips, not built for here."""


def resolve_target(name: str) -> str:
    """The name in `TARGETS` that `name` means, in whatever case it is written.

    Raises:
        UserInput: no engine can be built for `name`; the message lists what there is.
    """
    wanted = name.strip().lower()
    target = ALIASES.get(wanted, wanted)
    if target in TARGETS:
        return target
    choices = f"choose one of {', '.join(TARGETS)} (rk3588s is rk3588's alias)"
    if target in TOOLKIT_ONLY:
        raise UserInput(
            f"The target {name!r} is one that the toolkit knows, but rknn-tts has neither built nor checked an engine "
            f"for it; {choices}."
        )
    raise UserInput(f"The target {name!r} is unknown; {choices}.")
