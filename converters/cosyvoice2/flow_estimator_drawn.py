"""What a flow's solver hands to its estimator, in drawn numbers: noise, and conditions for one row of two."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from contracts.seed import SEED
from converters.cosyvoice_solver import time_of
from models.cosyvoice2.estimator_config import PAIR, EstimatorConfig

FloatArray = NDArray[np.float32]

PROMPT_FRAMES = 24
"""At a stream's start, whose mel the estimator is given: about half a second."""


@dataclass(frozen=True)
class Stream:
    """What stands for a stream of mel frames; row 0 has conditions, row 1, of guidance, has none.

    Attributes:
        x, mu, cond: [2, mel, N].
        t: [2].
        spks: [2, mel].
    """

    x: FloatArray
    mu: FloatArray
    cond: FloatArray
    t: FloatArray
    spks: FloatArray

    def part(self, start: int, stop: int) -> Stream:
        """Its frames from `start` up to `stop`."""
        x, mu, cond = (np.ascontiguousarray(array[..., start:stop]) for array in (self.x, self.mu, self.cond))
        return replace(self, x=x, mu=mu, cond=cond)


def drawn_stream(config: EstimatorConfig, frames: int, solver_step: int) -> Stream:
    """So many frames at a step of the solver, from 0: a longer stream begins with a shorter one."""
    x, mu, cond = (_rows(config.mel, frames, number) for number in range(3))
    x[1] = x[0]
    mu[1], cond[1] = 0, 0
    cond[..., PROMPT_FRAMES:] = 0
    spks = np.random.default_rng((SEED, PAIR)).standard_normal((PAIR, config.mel)).astype(np.float32)
    spks /= sqrt(config.mel)  # of a unit vector behind a layer, each number is about so much
    spks[1] = 0
    t = np.full(PAIR, time_of(solver_step), np.float32)
    return Stream(x, mu, cond, t, spks)


def _rows(mel: int, frames: int, number: int) -> FloatArray:
    """Normal numbers [2, mel, frames], frame by frame."""
    drawn = np.random.default_rng((SEED, number)).standard_normal((frames, PAIR, mel)).astype(np.float32)
    return np.ascontiguousarray(drawn.transpose(1, 2, 0))
