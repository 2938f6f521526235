"""At which times CosyVoice's flows are solved, of both families. No torch."""

from __future__ import annotations

from math import cos, pi

SOLVER_STEPS = 10
"""Upstream's Euler steps, at the times 1 - cos(pi k / 20)."""


def time_of(step: int) -> float:
    """The time of a step of the solver, from 0."""
    return 1 - cos(pi / 2 * step / SOLVER_STEPS)
