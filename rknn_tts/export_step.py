"""The proof of an exported checkpoint.

Each graph is compared with the one before it, and the last is walked over whole utterances, against the full-length
decode of the unpatched original. It stands apart from the export so that the toolkit can compile while the gates run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from contracts.contract import Contract, PassRecord
from contracts.errors import ToolFailure
from contracts.verdicts import Measurement, Verdict, failure
from converters.stages import Array, Expectation, FloatArray, OpenSession, Session, StageExport, WindowedDecode
from gates.padding import without_padding
from gates.snr import compare, compare_outputs, verdict_of, worst
from gates.windows import Thresholds, window_gates
from rknn_tts.carried import Feed
from rknn_tts.finished_graph import described
from rknn_tts.parity import followed_feeds, judge_passes
from rknn_tts.rewriting import refusals
from surgery.declaration import Pass, Rewritten

RunWithAdded = Callable[[Mapping[str, Array], Mapping[str, Array]], Mapping[str, Array]]
"""Runs the finished graph on inputs of the graph before the passes, and on those that passes add."""


@dataclass(frozen=True)
class Proof:
    """What the fp32 gates concluded of an export: pass by pass, and over whole utterances."""

    passes: tuple[PassRecord, ...]
    verdicts: tuple[Verdict, ...]
    measurements: tuple[Measurement, ...]


def finished_contract(
    export: StageExport, rewritten: Sequence[Rewritten], skipped: tuple[str, ...], target: str | None
) -> Contract:
    """The stage's contract of the graph behind the passes, which `rewritten` it.

    Args:
        export: the stage's part.
        rewritten: what the passes returned.
        skipped: names of those left out.
        target: whose cuts were among them.
    """
    contract = dataclasses.replace(export.contract, skipped=skipped, cuts_for=target)
    return described(contract, rewritten[-1].model, rewritten)


def with_added_inputs(followed: Sequence[Feed], added: Sequence[Mapping[str, Array]]) -> list[Feed]:
    """Feeds of a finished graph, the first of which have the inputs that passes `added`, too."""
    first = [{**feed, **more} for feed, more in zip(followed, added, strict=False)]
    return [*first, *followed[len(first) :]]


def prove(
    export: StageExport, passes: Sequence[Pass], rewritten: Sequence[Rewritten], open_session: OpenSession
) -> Proof:
    """Every fp32 gate on the finished graph; `rewritten` is what `passes` returned.

    Where these changed its inputs, the windows of the walk are fed as the finished graph takes them.
    """
    refused = refusals(passes, rewritten)
    if refused:  # the graph is not what the stage asked for, and may not even take its feeds
        return Proof((), tuple(refused), ())
    parity = judge_passes(
        passes,
        export.model,
        rewritten,
        open_session,
        export.feeds,
        export.padded_feeds,
        export.references,
        export.session,
    )
    verdicts = list(parity.verdicts)
    try:
        evidence = export.evidence()
    except ToolFailure as error:  # the comparisons are owed, so that they could not be made is a failure of theirs
        return Proof(parity.records, (*verdicts, failure("fp32.windows", f"it could not run: {error}", unit="dB")), ())
    if not evidence.equalities:
        verdicts.append(
            failure("fp32.cut", "nothing compares the cut with the original, so it is not proven", unit="dB")
        )
    verdicts += [failure(gate, reason, unit="dB") for gate, reason in evidence.unreached.items()]
    for item in evidence.equalities:
        verdicts.append(compare(item.gate, item.reference, item.measured, item.minimum_db, item.detail))
    verdicts += evidence.verdicts

    def run(feed: Mapping[str, Array], added: Mapping[str, Array] | None = None) -> dict[str, Array]:
        (followed,) = followed_feeds(export.model, rewritten, open_session, [feed])
        return parity.session({**followed, **(added or {})})

    verdicts += [_expected(owed, run) for owed in evidence.expectations]
    measurements = list(evidence.measurements)
    if evidence.decode is not None:
        walked, figures = _walk(export.contract, evidence.decode, run)
        verdicts += walked
        measurements += figures
    elif not evidence.expectations:
        verdicts.append(failure("fp32.windows", "nothing compares the finished graph with the original", unit="dB"))
    return Proof(parity.records, tuple(verdicts), tuple(measurements))


def _expected(owed: Expectation, run: Session) -> Verdict:
    """The verdict on the worst of an expectation's runs."""
    several = len(owed.runs) > 1
    compared = worst(
        compare_outputs(reference, without_padding(run(feed), reference)).at(f"run {number}" if several else "")
        for number, (feed, reference) in enumerate(owed.runs, start=1)
    )
    detail = f"{owed.detail}, the worst of {len(owed.runs)}" if several else owed.detail
    return verdict_of(owed.gate, compared, owed.minimum_db, detail)


def _walk(contract: Contract, decode: WindowedDecode, run: RunWithAdded) -> tuple[list[Verdict], list[Measurement]]:
    """The window gates on every utterance of the stage."""
    window, trim = contract.window, contract.trim
    if window is None:
        return [failure("fp32.windows", "the stage states no window, so nothing was compared")], []

    def run_window(
        given: Mapping[str, Array], latent: FloatArray, mask: FloatArray, place: FloatArray | None
    ) -> FloatArray:
        feed = {**given, decode.latent_input: latent, decode.mask_input: mask}
        added = {} if trim is None or place is None else {trim.input: place}
        return np.asarray(run(feed, added)[decode.output], np.float32)

    thresholds = Thresholds(whole_db=decode.whole_db, interior_db=decode.interior_db, short_db=decode.short_db)
    reports = [
        window_gates(
            f"fp32.{u.name}", partial(run_window, u.given), [u.latent, u.mask], u.reference, window, thresholds, trim
        )
        for u in decode.utterances
    ]
    verdicts = [v for report in reports for v in report.verdicts]
    if not any(verdict.gate.endswith(".whole") for verdict in verdicts):
        verdicts.append(failure("fp32.windows", "no utterance of a window or more was compared", unit="dB"))
    return verdicts, [m for report in reports for m in report.measurements]
