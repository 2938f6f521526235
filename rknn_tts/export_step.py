"""The export step: a checkpoint to its NPU-ready ONNX, with every figure the fp32 gates can give.

The passes run in the stage's order; each with hits is compared with the graph before it. The finished graph is then walked
over whole utterances, against the full-length decode of the unpatched original.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from contracts.contract import HostHalf, PassRecord
from contracts.verdicts import Measurement, Verdict, failure
from converters.stages import Checkpoint, FloatArray, OpenSession, Session, Stage, StageExport, StageOptions
from gates.session import Session as OrtSession
from gates.snr import compare, compare_outputs, verdict_of, worst
from gates.windows import Thresholds, window_gates
from rknn_tts.carried import Feed, carry
from rknn_tts.progress import Say
from surgery.declaration import EXACT_PARITY_DB, Bounded, Exact, Pass, check_order


@dataclass(frozen=True)
class Exported:
    """The result of the step.

    Attributes:
        stem: file stem.
        model: the NPU-ready graph, its contract and feeds inside.
        host: the host half, serialised; None where there is none.
        host_file: its file name.
        verdicts: of the fp32 gates.
        measurements: figures that decide nothing.
        notes: sentences for the user.
    """

    stem: str
    model: ir.Model
    host: bytes | None
    host_file: str
    verdicts: tuple[Verdict, ...]
    measurements: tuple[Measurement, ...]
    notes: tuple[str, ...]


def export_stage(stage: Stage, checkpoint: Checkpoint, options: StageOptions, say: Say) -> Exported:
    """Open `checkpoint` at `stage`'s seam, run the passes, and prove the result.

    Raises:
        UserInput, Refusal: the checkpoint is not one of this stage.
    """
    say.step(f"opening {checkpoint.path.name}")
    export = stage.open(checkpoint, options, _open)
    say.step("rewriting the graph for the NPU")
    model, records, verdicts = run_passes(export.model, export.passes, export.parity_feeds, _open)
    say.step("comparing with the full-length decode")
    for item in export.equalities:
        verdicts.append(compare(item.gate, item.reference, item.measured, item.minimum_db, item.detail))
    window_verdicts, measurements = _walk(export, _open(model))
    verdicts += window_verdicts
    host = ir.to_proto(export.host).SerializeToString(deterministic=True) if export.host is not None else None
    contract = dataclasses.replace(
        export.contract,
        passes=tuple(records),
        verdicts=tuple(verdicts),
        measurements=tuple(measurements),
        host=HostHalf(export.host_file, hashlib.sha256(host).hexdigest()) if host is not None else None,
    )
    carry(model, contract, export.simulator_feeds)
    return Exported(export.stem, model, host, export.host_file, tuple(verdicts), tuple(measurements), export.notes)


def run_passes(
    model: ir.Model, passes: Sequence[Pass], feeds: Sequence[Feed], open_session: OpenSession
) -> tuple[ir.Model, list[PassRecord], list[Verdict]]:
    """Run `passes` in order, each compared with the graph before it on `feeds`.

    Returns:
        The last graph, what each pass did, and a verdict for each pass (`pass.NAME`); a place that a pass refused
        although the stage asked for it fails.

    Raises:
        ValueError: the order of the passes breaks a declared constraint.
    """
    check_order(passes)
    before = [open_session(model)(feed) for feed in feeds]
    records, verdicts = [], []
    for bound in passes:
        rewritten = bound.rewrite(model)
        model, exactness = rewritten.model, bound.declaration.exactness
        session = open_session(model)
        after = [session(feed) for feed in feeds]
        comparison = worst(compare_outputs(b, a) for b, a in zip(before, after, strict=True))
        minimum_db = exactness.minimum_db if isinstance(exactness, Bounded) else EXACT_PARITY_DB
        gate = f"pass.{bound.name}"
        for refused in rewritten.refused:
            reason = f"{refused.node}: {refused.precondition}: {refused.limit} is needed, {refused.got}"
            verdicts.append(failure(gate, f"refused at {reason}"))
        verdicts.append(verdict_of(gate, comparison, minimum_db, f"{rewritten.hits} hits, after against before"))
        records.append(PassRecord(bound.name, rewritten.hits, isinstance(exactness, Exact), comparison.snr_db))
        before = after
    return model, records, verdicts


def _open(model: ir.Model) -> Session:
    return OrtSession(model).run


def _walk(export: StageExport, run: Session) -> tuple[list[Verdict], list[Measurement]]:
    """The window gates on every utterance of the stage."""
    decode, window = export.decode, export.contract.window
    if window is None:
        return [failure("fp32.windows", f"the stage of {export.stem} states no window, so nothing was compared")], []

    def run_window(latent: FloatArray, mask: FloatArray) -> FloatArray:
        return np.asarray(run({decode.latent_input: latent, decode.mask_input: mask})[decode.output], np.float32)

    thresholds = Thresholds(whole_db=decode.whole_db, interior_db=decode.interior_db, short_db=decode.short_db)
    reports = [
        window_gates(f"fp32.{u.name}", run_window, [u.latent, u.mask], u.reference, window, thresholds)
        for u in decode.utterances
    ]
    return [v for report in reports for v in report.verdicts], [m for report in reports for m in report.measurements]
