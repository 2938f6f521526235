"""What the gates compare an engine of the flow estimator with: the original's arithmetic on drawn frames.

    fp32.original             the original's arithmetic, whose weights were found in a graph, against that graph itself
    host.time                 the host half against the original's layers of time, at times of the solver
    fp32.export               the exported graph against the module that it was traced from, every output
    fp32.finished             the finished graph against the original: without padding, and with some
    fp32.padded_nN            the finished graph on N real frames and padding behind them, against the original on these
    fp32.stepwise             the exported step walked over a stream that is longer than its history, against the whole
                              stream, whose frames see their own chunk and that history
    fp32.short_nN             the finished step on a stream of N frames, against the original on these
    stepwise.past_history     that walk, behind what is remembered, against a memory of all: a measurement
    stepwise.chunks           frames that see their chunk and the past against frames that see everything: a measurement

Behind a stream's end stands what the mask has to keep out. Streams start from zeroed states.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from rknn_tts_runtime.carried_state import walk_states

from contracts.verdicts import Measurement
from converters.cosyvoice2.flow_estimator_drawn import Stream, drawn_stream
from converters.cosyvoice2.flow_estimator_geometry import STEP, StepSizes
from converters.cosyvoice2.flow_estimator_opening import EstimatorOpening
from converters.cosyvoice_solver import SOLVER_STEPS, time_of
from converters.measured_snr import snr_db
from converters.stages import Array, Equality, Evidence, Expectation, FloatArray
from models.cosyvoice2.estimator_config import PAIR
from models.cosyvoice2.estimator_graphs import COND, MASK, MU, OUT, SPKS, TIME, T, Time, X, state_shapes

GRAPH_DB = 100.0
"""Of one arithmetic in two programs, whose sums are in another order: 110 to 126 measured (docs/cosyvoice2.md)."""

HOST_DB = 90.0
"""Of sines of up to 1000 radians in fp32, of which a last bit is 6e-5 radians."""

FULL_STEP, PART_STEP, STREAM_STEP = 5, 2, 0
"""Of the solver: of a run without padding, of one with some, and of a stream, which a distilled flow makes in one."""

ORIGINAL_FRAMES, MEL_AXES = 48, 3
"""Of the run of a graph that takes any number, and axes of its mels."""

STEPS_PAST = 2
"""Full steps of the proof's stream behind a full history; a part of one follows."""


@dataclass(frozen=True)
class Run:
    """A graph's inputs, and what is compared with what it gives.

    Attributes:
        feed: the inputs.
        owed: the velocity as the original has it, of real frames alone, and states as the module has them.
    """

    feed: Mapping[str, Array]
    owed: Mapping[str, Array]


@dataclass(frozen=True)
class Walk:
    """The exported step along a stream.

    Attributes:
        stream: the stream, longer than the history.
        velocity: of its frames, by the steps.
        whole: the same by the original, whose frames see their chunk and the history.
        middle: the last full step, whose history is full.
        last: the last step, which is partly empty.
    """

    stream: Stream
    velocity: FloatArray
    whole: FloatArray
    middle: Run
    last: Run


def walk_of(opening: EstimatorOpening, sizes: StepSizes) -> Walk:
    """Walk the exported step of these sizes."""
    frames = sizes.frames
    fits = -(-sizes.history // frames)
    stream = drawn_stream(opening.config, (fits + STEPS_PAST) * frames + (frames + 1) // 2, STREAM_STEP)
    length = stream.x.shape[2]
    count = -(-length // frames)
    kept: dict[int, dict[str, Array]] = {}

    def run(inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        kept[len(kept)] = {name: np.array(array) for name, array in inputs.items()} if len(kept) >= count - 2 else {}
        return opening.session(STEP)(inputs)

    steps = (opening.feed(stream.part(at * frames, (at + 1) * frames), frames) for at in range(count))
    made = [np.asarray(outputs[OUT], np.float32) for outputs in walk_states(run, opening.states(), steps)]
    whole = opening.whole(stream, frames, sizes.history)

    def run_of(at: int) -> Run:
        feed = kept[at]
        return Run(feed, {**opening.ran(STEP, feed), OUT: whole[..., at * frames : (at + 1) * frames]})

    return Walk(stream, np.concatenate(made, axis=2)[..., :length], whole, run_of(count - 2), run_of(count - 1))


def step_evidence(opening: EstimatorOpening, sizes: StepSizes, walk: Walk) -> Evidence:
    """What the gates of the step compare."""
    frames, length = sizes.frames, walk.stream.x.shape[2]
    detail = (
        f"the export in onnxruntime, steps of {frames} frames over {length}, {length % frames or frames} of {frames} "
        f"in the last step, against the whole stream, whose frames see their chunk and {sizes.history} frames before it"
    )
    return Evidence(
        equalities=(
            *original_equality(opening),
            _host(opening),
            _export(opening, STEP, walk.middle.feed),
            Equality("fp32.stepwise", {OUT: walk.whole}, {OUT: walk.velocity}, GRAPH_DB, detail),
        ),
        expectations=(
            _finished((walk.middle, walk.last), "in the middle of a stream and at its end"),
            *(_short(opening, sizes, real) for real in sorted({1, max(1, frames - 1)})),
        ),
        measurements=_measured(opening, sizes, walk),
    )


def whole_runs(opening: EstimatorOpening, length: int) -> tuple[Run, Run]:
    """A run of an engine of `length` frames without padding, and one with padding in its last quarter."""
    part = max(1, length - length // 4)
    return _whole_run(opening, length, length, FULL_STEP), _whole_run(opening, length, part, PART_STEP)


def whole_evidence(opening: EstimatorOpening, role: str, length: int, runs: tuple[Run, Run]) -> Evidence:
    """What the gates of the engine for `length` frames compare; `runs` are its own (`whole_runs`)."""
    padded = {real: _whole_run(opening, length, real, PART_STEP) for real in (1, length - 1)} | {length: runs[0]}
    return Evidence(
        equalities=(*original_equality(opening), _host(opening), _export(opening, role, runs[1].feed)),
        expectations=(
            _finished(runs, "without padding and with a quarter of it"),
            *(
                Expectation(
                    f"fp32.padded_n{real}",
                    ((run.feed, run.owed),),
                    GRAPH_DB,
                    f"the finished graph with {real} of {length} frames real, against the original on these alone",
                )
                for real, run in padded.items()
            ),
        ),
    )


def _whole_run(opening: EstimatorOpening, length: int, real: int, solver_step: int) -> Run:
    stream = drawn_stream(opening.config, real, solver_step)
    return Run(opening.feed(stream, length), {OUT: opening.whole(stream)})


def original_equality(opening: EstimatorOpening) -> tuple[Equality, ...]:
    """The arithmetic against the graph that the weights were found in; nothing where they were in none."""
    if opening.graph is None:
        return ()
    (declared,) = (value.shape for value in opening.graph.graph.inputs if value.name == X)
    size = declared[2] if declared is not None and len(declared) == MEL_AXES else None
    frames = size if isinstance(size, int) else ORIGINAL_FRAMES
    stream = drawn_stream(opening.config, frames, PART_STEP)
    mask = np.ones((PAIR, 1, frames), np.float32)
    feed = {X: stream.x, MASK: mask, MU: stream.mu, T: stream.t, SPKS: stream.spks, COND: stream.cond}
    got = opening.open_session(opening.graph)(feed)
    detail = f"weights as they were found, in the original's arithmetic, against the graph itself, {frames} frames"
    return (Equality("fp32.original", got, {OUT: opening.whole(stream)}, GRAPH_DB, detail),)


def _host(opening: EstimatorOpening) -> Equality:
    """The host half at all times of the solver, two at once, against the original's layers."""
    session = opening.open_session(opening.host)
    original = Time({name: array.double() for name, array in opening.weights.items() if _of_time(name)}, opening.config)
    got, owed = [], []
    for step in range(0, SOLVER_STEPS, 2):
        t = np.array([time_of(step), time_of(step + 1)], np.float32)
        got.append(np.asarray(session({T: t})[TIME], np.float32))
        with torch.no_grad():
            owed.append(original(torch.from_numpy(t).double()).float().numpy())
    detail = (
        f"the host half at the {SOLVER_STEPS} times of the solver, against the original's layers in double precision"
    )
    return Equality("host.time", {TIME: np.concatenate(owed)}, {TIME: np.concatenate(got)}, HOST_DB, detail)


def _of_time(name: str) -> bool:
    return name.startswith("time_mlp.") or ".mlp." in name


def _export(opening: EstimatorOpening, role: str, feed: Mapping[str, Array]) -> Equality:
    owed, got = opening.ran(role, feed), opening.known(role)(feed)
    detail = "the export in onnxruntime against the torch module that it was traced from, every output"
    return Equality("fp32.export", owed, {name: got[name] for name in owed}, GRAPH_DB, detail)


def _finished(runs: tuple[Run, Run], where: str) -> Expectation:
    detail = f"the finished graph {where}, against the original on the real frames; states against the module"
    return Expectation("fp32.finished", tuple((run.feed, run.owed) for run in runs), GRAPH_DB, detail)


def _short(opening: EstimatorOpening, sizes: StepSizes, real: int) -> Expectation:
    stream = drawn_stream(opening.config, real, STREAM_STEP)
    zeros = {name: np.zeros(shape, np.float32) for name, shape in state_shapes(opening.config, sizes.history).items()}
    feed = {**opening.feed(stream, sizes.frames), **zeros}
    detail = f"the finished graph on a stream of {real} of {sizes.frames} frames, against the original on these alone"
    return Expectation(
        f"fp32.short_n{real}", ((feed, {**opening.ran(STEP, feed), OUT: opening.whole(stream)}),), GRAPH_DB, detail
    )


def _measured(opening: EstimatorOpening, sizes: StepSizes, walk: Walk) -> tuple[Measurement, ...]:
    chunks = opening.whole(walk.stream, sizes.frames)
    behind = (sizes.history // sizes.frames + 1) * sizes.frames  # from here on, chunks do not see all before them
    return (
        Measurement(
            name="stepwise.past_history",
            measured=snr_db(chunks[..., behind:], walk.velocity[..., behind:]),
            unit="dB",
            reason=f"the frames behind the first {behind} of a stream, of which {sizes.history} are remembered, "
            "against a memory of all: what forgetting costs, and no error",
        ),
        Measurement(
            name="stepwise.chunks",
            measured=snr_db(opening.whole(walk.stream), chunks),
            unit="dB",
            reason=f"frames that see their chunk of {sizes.frames} and the past against frames that see everything, "
            "the original both: what streaming costs, and no error",
        ),
    )
