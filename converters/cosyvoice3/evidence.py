"""What the gates compare an engine of CosyVoice3's flow with: upstream's arithmetic on the real frames alone.

    fp32.original     weights found in a graph, in our arithmetic, against that graph itself
    fp32.export       the exported graph, before any pass, against the estimator
    fp32.finished     the finished graph against the estimator, without padding and with a quarter of it
    fp32.padded_nN    the finished graph with N real frames and padding behind them, against the estimator on these
                      N frames alone, which is without padding: one frame, all but one, all

Numbers are drawn; of two rows one is guidance's, without conditions. Times are those of the solver, rounded to fp16.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from converters.cosyvoice3.opening import FlowOpening
from converters.cosyvoice3.solving import shown
from converters.stages import Array, Equality, Evidence, Expectation, Session
from models.cosyvoice3.layout import input_shapes

PADDED_DB = 100.0
"""Of padding against none (the issue's bound). Two programs round a time's angles of up to 1000 radians
otherwise: 118 dB at the solver's second time, 110 at its sixth, 103 at its tenth (22 blocks, torch)."""

FULL_STEP, PART_STEP = 5, 3
"""Of the solver: of the run without padding, which the simulator makes too, and of the one with some."""

PADDED_STEPS = (1, 3)
"""Of the runs with one frame and with one frame too few."""


@dataclass(frozen=True)
class Run:
    """Inputs, and what the estimator gives for their real frames."""

    feed: Mapping[str, Array]
    owed: Mapping[str, Array]


def run_of(opening: FlowOpening, length: int, real: int, step: int) -> Run:
    """A run of an engine of `length` frames of which `real` are real."""
    feed = shown(input_shapes(opening.config, length), real, step)
    return Run(feed, opening.owed(feed, real))


def runs_of(opening: FlowOpening, length: int) -> tuple[Run, Run]:
    """A run without padding, and one with padding in its last quarter."""
    part = max(1, length - length // 4)
    return run_of(opening, length, length, FULL_STEP), run_of(opening, length, part, PART_STEP)


def evidence_of(opening: FlowOpening, length: int, session: Session, runs: tuple[Run, Run]) -> Evidence:
    """What the gates of the engine for `length` frames compare.

    Args:
        opening: its checkpoint.
        length: in frames.
        session: the exported graph, opened.
        runs: its own (`runs_of`).
    """
    padded = {
        real: run_of(opening, length, real, step) for real, step in zip((1, length - 1), PADDED_STEPS, strict=True)
    }
    padded[length] = runs[0]
    return Evidence(
        equalities=(*opening.original, _export(session, runs[0])),
        expectations=(
            Expectation(
                "fp32.finished",
                tuple((run.feed, run.owed) for run in runs),
                PADDED_DB,
                "the finished graph against the estimator on the real frames, without padding and with a quarter of it",
            ),
            *(
                Expectation(
                    f"fp32.padded_n{real}",
                    ((run.feed, run.owed),),
                    PADDED_DB,
                    f"{real} of {length} frames real, against the estimator on these alone",
                )
                for real, run in padded.items()
            ),
        ),
    )


def _export(session: Session, run: Run) -> Equality:
    detail = "the export in onnxruntime, in an NPU's forms, against the estimator in upstream's arithmetic"
    return Equality("fp32.export", run.owed, session(run.feed), PADDED_DB, detail)
