"""The export of a checkpoint: the rewritten graph, and the proof of it.

`rewrite` runs the stage's passes in order. `prove` then compares each graph with the one before it, and walks the last
over whole utterances, against the full-length decode of the unpatched original. The two are apart so that the toolkit
can compile while the gates run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from contracts.contract import Contract, PassRecord, TensorSpec, Window
from contracts.errors import ToolFailure
from contracts.verdicts import Measurement, Verdict, failure
from converters.stages import FloatArray, OpenSession, Session, StageExport, WindowedDecode
from gates.snr import compare, compare_outputs, verdict_of, worst
from gates.windows import Thresholds, window_gates
from rknn_tts.carried import Feed
from surgery.declaration import EXACT_PARITY_DB, Bounded, Exact, Pass, Rewritten, check_order


@dataclass(frozen=True)
class Proof:
    """What the fp32 gates concluded of an export: pass by pass, and over whole utterances."""

    passes: tuple[PassRecord, ...]
    verdicts: tuple[Verdict, ...]
    measurements: tuple[Measurement, ...]


def rewrite(model: ir.Model, passes: Sequence[Pass]) -> list[Rewritten]:
    """Run `passes` on `model` in order; what each returned.

    Raises:
        ValueError: the order of the passes breaks a declared constraint.
    """
    check_order(passes)
    done = []
    for bound in passes:
        done.append(bound.rewrite(model))
        model = done[-1].model
    return done


def finished_contract(export: StageExport, graph: ir.Model) -> Contract:
    """The stage's contract with the output shapes of the finished `graph`."""
    shapes = {value.name: value.shape for value in graph.graph.outputs}
    outputs = []
    for spec in export.contract.outputs:
        shape = shapes[spec.name]
        sizes = tuple(int(size) for size in shape if isinstance(size, int)) if shape is not None else ()
        outputs.append(TensorSpec(spec.name, sizes, spec.dtype))
    return dataclasses.replace(export.contract, outputs=tuple(outputs))


def prove(export: StageExport, rewritten: Sequence[Rewritten], open_session: OpenSession) -> Proof:
    """Every fp32 gate on the finished graph; `rewritten` is what the stage's passes returned."""
    refused = refusals(export.passes, rewritten)
    if refused:  # the graph is not what the stage asked for, and may not even take its feeds
        return Proof((), tuple(refused), ())
    sessions = [open_session(model) for model in (export.model, *(result.model for result in rewritten))]
    records, verdicts = judge_passes(export.passes, rewritten, sessions, export.feeds, export.padded_feeds)
    try:
        evidence = export.evidence()
    except ToolFailure as error:  # the comparisons are owed, so that they could not be made is a failure of theirs
        return Proof(tuple(records), (*verdicts, failure("fp32.windows", f"it could not run: {error}", unit="dB")), ())
    if not evidence.equalities:
        verdicts.append(
            failure("fp32.cut", "nothing compares the cut with the original, so it is not proven", unit="dB")
        )
    verdicts += [failure(gate, reason, unit="dB") for gate, reason in evidence.unreached.items()]
    for item in evidence.equalities:
        verdicts.append(compare(item.gate, item.reference, item.measured, item.minimum_db, item.detail))
    walked, measurements = _walk(export.contract.window, evidence.decode, sessions[-1])
    return Proof(tuple(records), (*verdicts, *walked), tuple(measurements))


def refusals(passes: Sequence[Pass], rewritten: Sequence[Rewritten]) -> list[Verdict]:
    """A failed verdict for every place that a pass refused although the stage asked for it."""
    return [
        failure(
            f"pass.{bound.name}",
            f"refused at {refused.node}: {refused.precondition}: {refused.limit} is needed, {refused.got}",
        )
        for bound, result in zip(passes, rewritten, strict=True)
        for refused in result.refused
    ]


def judge_passes(
    passes: Sequence[Pass],
    rewritten: Sequence[Rewritten],
    sessions: Sequence[Session],
    feeds: Sequence[Feed],
    padded_feeds: Sequence[Feed],
) -> tuple[list[PassRecord], list[Verdict]]:
    """Each pass against the graph before it.

    Args:
        passes: the passes.
        rewritten: what each returned.
        sessions: the graph before the first pass, and the graph after each.
        feeds: real inputs without padding.
        padded_feeds: real inputs with padding; a pass that changes them by design is not compared on them.

    Returns:
        What each pass did, and a verdict for each (`pass.NAME`).
    """
    outputs = [[session(feed) for feed in (*feeds, *padded_feeds)] for session in sessions]
    records, verdicts = [], []
    for bound, result, before, after in zip(passes, rewritten, outputs, outputs[1:], strict=False):
        gate, exactness = f"pass.{bound.name}", bound.declaration.exactness
        compared = len(feeds) if bound.declaration.changes_padding else len(before)
        comparison = worst(compare_outputs(b, a) for b, a in zip(before[:compared], after[:compared], strict=True))
        minimum_db = exactness.minimum_db if isinstance(exactness, Bounded) else EXACT_PARITY_DB
        hits = f"{result.hits} hit{'s' * (result.hits != 1)}"
        verdicts.append(verdict_of(gate, comparison, minimum_db, f"{hits}, after against before"))
        records.append(PassRecord(bound.name, result.hits, isinstance(exactness, Exact), comparison.snr_db))
    return records, verdicts


def _walk(window: Window | None, decode: WindowedDecode, run: Session) -> tuple[list[Verdict], list[Measurement]]:
    """The window gates on every utterance of the stage."""
    if window is None:
        return [failure("fp32.windows", "the stage states no window, so nothing was compared")], []

    def run_window(latent: FloatArray, mask: FloatArray) -> FloatArray:
        return np.asarray(run({decode.latent_input: latent, decode.mask_input: mask})[decode.output], np.float32)

    thresholds = Thresholds(whole_db=decode.whole_db, interior_db=decode.interior_db, short_db=decode.short_db)
    reports = [
        window_gates(f"fp32.{u.name}", run_window, [u.latent, u.mask], u.reference, window, thresholds)
        for u in decode.utterances
    ]
    verdicts = [v for report in reports for v in report.verdicts]
    if not any(verdict.gate.endswith(".whole") for verdict in verdicts):
        verdicts.append(failure("fp32.windows", "no utterance of a window or more was compared", unit="dB"))
    return verdicts, [m for report in reports for m in report.measurements]
