"""What the gates compare a step of the flow encoder with: the original's arithmetic on whole streams of drawn tokens.

    host.embedded             the host half against the table, and the speaker's layer in numpy
    fp32.export               the exported step against the module it was traced from, the mean and every state
    fp32.stepwise             the exported step walked over a stream, against the whole stream, attention in chunks
    fp32.stepwise_first       the step with fewer tokens ahead and then the others, likewise
    fp32.fewer_ahead          the one with more ahead, those masked that the other does not see, against that one
    fp32.finished             the finished graph in the middle of a stream, against the whole stream
    fp32.short_N              the finished graph on a stream of N tokens, the rest of its step empty, likewise
    stepwise.past_history     a stream that is longer than what is remembered, against the whole: a measurement
    stepwise.fewer_ahead      what the frames of a stream's first step lose by fewer tokens ahead: a measurement
    stepwise.chunks           attention in chunks against attention to everything: a measurement

Streams start from zeroed states. Behind a stream's end stands what the mask has to keep out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from contracts.verdicts import Measurement
from converters.cosyvoice2.flow_encoder_geometry import FIRST, STEADY
from converters.cosyvoice2.flow_encoder_opening import EncoderOpening
from converters.measured_snr import snr_db
from converters.stages import Array, Equality, Evidence, Expectation
from models.cosyvoice2.encoder_config import SPEAKER, UPSAMPLING
from models.cosyvoice2.encoder_host import SPEAKER_INPUT, SPEAKERS, TOKENS
from models.cosyvoice2.encoder_states import EMBEDDED, MASK, MEAN, StepSizes

STEPWISE_DB = GRAPH_DB = FINISHED_DB = 100.0
"""Of one arithmetic in two programs, whose sums are in another order, and of which one has distances shifted and the
root of the width folded into weights: 114 to 121 measured at the published sizes, 131 of small ones."""

HOST_DB = 120.0
"""The same for a table and one small layer."""

PAST_STEPS = 2
"""Full steps behind what is remembered, of the stream that goes past it."""

MIDDLE = 2
"""Steps in front of the one that stands for the middle of a stream."""


@dataclass(frozen=True)
class Run:
    """A step's inputs, and what is compared with what it gives.

    Attributes:
        feed: the inputs.
        owed: the mean as the whole stream has it, of the real frames alone, and states as the module has them.
        module: what the step's module gives.
    """

    feed: Mapping[str, Array]
    owed: Mapping[str, Array]
    module: Mapping[str, Array]


def runs_of(opening: EncoderOpening, role: str) -> tuple[Run, Run]:
    """A full step in the middle of the stream, and its last one, which is partly empty; all steps have one size."""
    sizes = opening.geometry.sizes[role]
    length = opening.tokens.shape[1]
    last = -(-length // sizes.chunk) - 1
    aheads = [sizes.look_ahead] * (last + 1)
    whole = opening.whole(opening.tokens, sizes.chunk, aheads)
    middle = min(MIDDLE, max(0, length // sizes.chunk - 1))
    return _run(opening, sizes, whole, middle), _run(opening, sizes, whole, last)


def _run(opening: EncoderOpening, sizes: StepSizes, whole: Array, number: int) -> Run:
    start = number * sizes.chunk
    feed = {**opening.inputs(opening.tokens, start, sizes), **opening.behind(sizes, number)}
    module = opening.stepped(sizes, feed)
    frames = whole[..., UPSAMPLING * start : UPSAMPLING * (start + sizes.chunk)]
    return Run(feed, {**module, MEAN: frames}, module)


def evidence_of(opening: EncoderOpening, role: str, runs: tuple[Run, Run]) -> Evidence:
    """What the gates of the engine for `role` compare; `runs` are its steps (`runs_of`)."""
    sizes = opening.geometry.sizes[role]
    return Evidence(
        equalities=(_host(opening), _export(opening, sizes, runs[0]), *_stepwise(opening, role)),
        expectations=(
            Expectation(
                "fp32.finished",
                tuple((run.feed, run.owed) for run in runs),
                FINISHED_DB,
                "the finished graph in the middle of a stream and at its end, against the whole stream; states against "
                "the step's module",
            ),
            *(_short(opening, sizes, count) for count in sorted({1, max(1, sizes.chunk - 1)})),
        ),
        measurements=_measurements(opening, role),
    )


def _host(opening: EncoderOpening) -> Equality:
    weights, config = opening.weights, opening.config
    speaker = np.random.default_rng(0).standard_normal((1, config.speaker)).astype(np.float32)
    unit = speaker.astype(np.float64) / np.sqrt(np.square(speaker, dtype=np.float64).sum())
    spks = unit @ np.float64(weights[f"{SPEAKER}.weight"]).T + weights[f"{SPEAKER}.bias"]
    got = opening.open_session(opening.host)({TOKENS: opening.tokens, SPEAKER_INPUT: speaker})
    reference = {EMBEDDED: opening.embedded(opening.tokens), SPEAKERS: spks.astype(np.float32)}
    detail = f"the host half on {opening.tokens.shape[1]} tokens and a speaker, against table and layer in numpy"
    return _equality("host.embedded", reference, got, HOST_DB, detail)


def _export(opening: EncoderOpening, sizes: StepSizes, run: Run) -> Equality:
    detail = "the export in onnxruntime against the torch module that it was traced from, the mean and every state"
    return _equality("fp32.export", run.module, opening.known(sizes)(run.feed), GRAPH_DB, detail)


def _stepwise(opening: EncoderOpening, role: str) -> tuple[Equality, ...]:
    """Each step by itself; and with the steady one, the first one before it."""
    sizes, first = opening.geometry.sizes[role], opening.first
    found = [_walked(opening, "fp32.stepwise", sizes, sizes)]
    if first is not None:
        if role == STEADY:
            found.append(_walked(opening, "fp32.stepwise_first", first, sizes))
        found.append(_fewer_ahead(opening, first))
    return tuple(found)


def _walked(opening: EncoderOpening, gate: str, first: StepSizes, others: StepSizes) -> Equality:
    tokens, chunk = opening.tokens, others.chunk
    length = tokens.shape[1]
    plan = opening.plan(length, first, others)
    aheads = [sizes.look_ahead for sizes in plan]
    filled = length - (len(plan) - 1) * chunk
    detail = (
        f"the export in onnxruntime, steps of {chunk} tokens with {', '.join(map(str, dict.fromkeys(aheads)))} ahead "
        f"over {length} tokens, {filled} of {chunk} in the last step, against the whole stream with attention in chunks"
    )
    reference = {MEAN: opening.whole(tokens, chunk, aheads)}
    return _equality(gate, reference, {MEAN: opening.walked(tokens, plan)}, STEPWISE_DB, detail)


def _fewer_ahead(opening: EncoderOpening, first: StepSizes) -> Equality:
    steady = opening.sizes
    feed = {**opening.inputs(opening.tokens, 0, steady), **opening.behind(steady, 0)}
    feed[MASK] = feed[MASK] * (np.arange(steady.seen) < first.seen)
    own = {**opening.inputs(opening.tokens, 0, first), **opening.behind(first, 0)}
    detail = (
        f"a step with {steady.look_ahead} tokens ahead, all but {first.look_ahead} masked, against the one with "
        f"{first.look_ahead}"
    )
    reference = {MEAN: opening.known(first)(own)[MEAN]}
    return _equality("fp32.fewer_ahead", reference, opening.known(steady)(feed), GRAPH_DB, detail)


def _short(opening: EncoderOpening, sizes: StepSizes, count: int) -> Expectation:
    tokens = opening.tokens[:, :count]
    feed = {**opening.inputs(tokens, 0, sizes), **opening.behind(sizes, 0)}
    owed = {**opening.stepped(sizes, feed), MEAN: opening.whole(tokens, None)}
    detail = f"the finished graph on a stream of {count} of {sizes.chunk} tokens, against the original on those alone"
    return Expectation(f"fp32.short_{count}", ((feed, owed),), FINISHED_DB, detail)


def _measurements(opening: EncoderOpening, role: str) -> tuple[Measurement, ...]:
    if role == FIRST:
        return ()
    sizes, first, tokens = opening.sizes, opening.first, opening.tokens
    whole = opening.whole(tokens, sizes.chunk)
    found = [
        _measured(
            "stepwise.chunks",
            opening.whole(tokens, None),
            whole,
            f"attention in chunks of {sizes.chunk} against attention to everything, the original both: what streaming "
            "costs, and no error",
        ),
        _past_history(opening),
    ]
    if first is not None:
        frames = UPSAMPLING * first.chunk
        fewer = opening.whole(tokens, sizes.chunk, [first.look_ahead])
        found.append(
            _measured(
                "stepwise.fewer_ahead",
                whole[..., :frames],
                fewer[..., :frames],
                f"a stream's first {frames} frames with {first.look_ahead} tokens ahead, against all that there are, "
                "the original both: what beginning earlier costs, and no error",
            )
        )
    return tuple(found)


def _past_history(opening: EncoderOpening) -> Measurement:
    """The frames of the steps behind what is remembered; all steps before them forget nothing."""
    sizes = opening.sizes
    fits = sizes.history // sizes.chunk
    tokens = opening.drawn((fits + PAST_STEPS) * sizes.chunk)
    walked = opening.walked(tokens, opening.plan(tokens.shape[1], sizes, sizes))
    behind = UPSAMPLING * fits * sizes.chunk
    return _measured(
        "stepwise.past_history",
        opening.whole(tokens, sizes.chunk)[..., behind:],
        walked[..., behind:],
        f"the last {PAST_STEPS * sizes.chunk} tokens of a stream of {tokens.shape[1]}, of which {sizes.history} are "
        "remembered, against a memory of all: what forgetting costs, and no error",
    )


def _measured(name: str, reference: Array, measured: Array, reason: str) -> Measurement:
    figure = snr_db(np.asarray(reference, np.float32), np.asarray(measured, np.float32))
    return Measurement(name=name, measured=figure, unit="dB", reason=reason)


def _equality(
    gate: str, reference: Mapping[str, Array], measured: Mapping[str, Array], minimum_db: float, detail: str
) -> Equality:
    return Equality(gate, reference, {name: measured[name] for name in reference}, minimum_db, detail)
