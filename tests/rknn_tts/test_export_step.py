from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from contracts.contract import Source, TensorSpec
from contracts.errors import ToolFailure
from contracts.verdicts import Status, Verdict
from converters.piper.decoder import open_decoder
from converters.stages import Checkpoint, Equality, Evidence, StageExport, StageOptions
from rknn_tts.export_step import Proof, finished_contract, judge_passes, prove, refusals, rewrite
from surgery.declaration import Bounded, Declaration, Exact, Pass, Refused, Rewritten
from tests.gates.small_graphs import row, scale_proto
from tests.onnx_runs import open_session
from tests.vits_writer.voice import write_voice

FEEDS = ({"x": row(1, -2, 3, 4)},)


def model(factor: float = 2.0) -> ir.Model:
    return ir.from_proto(scale_proto(factor))


def claiming(name: str, result: ir.Model, exactness: Exact | Bounded, *refused: Refused, after: str = "") -> Pass:
    """A pass that returns `result`, whatever it claims of it."""
    declaration = Declaration(name, "", exactness, frozenset(filter(None, [after])))
    return Pass(declaration, lambda _: Rewritten(result, 1, refused))


def judged(*passes: Pass, feeds: Any = FEEDS, padded: Any = ()) -> list[Verdict]:
    done = rewrite(model(), passes)
    sessions = [open_session(m) for m in (model(), *(result.model for result in done))]
    return judge_passes(passes, done, sessions, feeds, padded)[1]


def statuses(verdicts: list[Verdict]) -> dict[str, str]:
    return {verdict.gate: verdict.status.value for verdict in verdicts}


@pytest.mark.parametrize(
    ("factor", "exactness", "wanted"),
    [
        (2.0, Exact(""), "passed"),
        (2.0 * (1 + 1e-7), Exact(""), "passed"),
        (2.0 * (1 + 1e-5), Exact(""), "failed"),  # 100 dB: near, and not exact
        (2.001, Exact(""), "failed"),
        (2.001, Bounded(60.0, ""), "passed"),  # an error of 1/2000 is 66 dB
        (2.001, Bounded(70.0, ""), "failed"),
        (0.0, Bounded(-10.0, ""), "failed"),  # all zero
        (math.inf, Exact(""), "failed"),
        (math.nan, Bounded(0.0, ""), "failed"),
    ],
)
def test_pass_is_judged_by_what_it_claims(factor: float, exactness: Exact | Bounded, wanted: str) -> None:
    assert statuses(judged(claiming("fold_x", model(factor), exactness))) == {"pass.fold_x": wanted}


def test_pass_that_lies_fails_alone_when_those_around_it_are_honest() -> None:
    passes = [
        claiming("fold_a", model(2.0), Exact("")),
        claiming("fuse_b", model(2.5), Exact("")),
        claiming("split_c", model(2.5), Exact("")),
    ]
    assert statuses(judged(*passes)) == {"pass.fold_a": "passed", "pass.fuse_b": "failed", "pass.split_c": "passed"}


def test_pass_that_refused_a_place_fails_and_says_where() -> None:
    passes = [claiming("rewrite_x", model(), Exact(""), Refused("conv_7", "stride", "at most 7", "15"))]
    found = refusals(passes, rewrite(model(), passes))
    assert [(v.gate, v.status, v.detail) for v in found] == [
        ("pass.rewrite_x", Status.FAILED, "refused at conv_7: stride: at most 7 is needed, 15")
    ]


def test_pass_is_not_proven_when_there_is_nothing_to_feed_it() -> None:
    assert statuses(judged(claiming("fold_x", model(), Exact("")), feeds=())) == {"pass.fold_x": "failed"}


def _dropping_sign(changes_padding: bool) -> Pass:
    """A pass that is right where x is positive, as a mask's loss is where the mask is one."""
    x = ir.val("x", ir.DataType.FLOAT, ir.Shape([1, 4]))
    absolute = ir.node("Abs", [x])
    two = ir.val("two", const_value=ir.tensor(np.full(1, 2.0, np.float32), name="two"))
    doubled = ir.node("Mul", [absolute.outputs[0], two], name="doubled")
    doubled.outputs[0].name, doubled.outputs[0].dtype = "y", ir.DataType.FLOAT
    graph = ir.Graph([x], doubled.outputs, nodes=[absolute, doubled], initializers=[two], opset_imports={"": 17})
    declaration = Declaration("mask_x", "", Exact(""), changes_padding=changes_padding)
    return Pass(declaration, lambda _: Rewritten(ir.Model(graph, ir_version=8), 1))


@pytest.mark.parametrize(("changes_padding", "wanted"), [(False, "failed"), (True, "passed")])
def test_pass_is_judged_on_padding_unless_it_changes_that_by_design(changes_padding: bool, wanted: str) -> None:
    feeds, padded = ({"x": row(1, 2, 3, 4)},), ({"x": row(1, 2, -3, 4)},)
    assert statuses(judged(_dropping_sign(changes_padding), feeds=feeds, padded=padded)) == {"pass.mask_x": wanted}


def test_records_say_what_each_pass_did() -> None:
    passes = [claiming("fold_a", model(2.0), Exact("")), claiming("fuse_b", model(2.002), Bounded(50.0, ""))]
    done = rewrite(model(), passes)
    sessions = [open_session(m) for m in (model(), *(result.model for result in done))]
    records, _ = judge_passes(passes, done, sessions, FEEDS, ())
    assert [(r.name, r.hits, r.exact) for r in records] == [("fold_a", 1, True), ("fuse_b", 1, False)]
    assert records[0].snr_db == math.inf
    assert records[1].snr_db == pytest.approx(60.0, abs=0.1)  # an error of a thousandth


def test_rewrite_runs_the_passes_in_order_on_each_others_results() -> None:
    seen: list[str] = []

    def noting(name: str) -> Pass:
        def work(given: ir.Model) -> Rewritten:
            seen.append(f"{name} after {given.producer_name}")
            made = given.clone()
            made.producer_name = name
            return Rewritten(made, 1)

        return Pass(Declaration(name, "", Exact("")), work)

    original = model()
    original.producer_name = "original"
    rewrite(original, [noting("fold_a"), noting("fuse_b")])
    assert seen == ["fold_a after original", "fuse_b after fold_a"]


def test_rewrite_raises_when_the_order_breaks_a_constraint() -> None:
    passes = [claiming("fold_a", model(), Exact(""), after="fuse_b"), claiming("fuse_b", model(), Exact(""))]
    with pytest.raises(ValueError, match="fold_a must run after fuse_b"):
        rewrite(model(), passes)


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> StageExport:
    path = write_voice(tmp_path_factory.mktemp("voice") / "voice.onnx")
    checkpoint = Checkpoint(path, Source("voice.onnx", "ab" * 32, "checkpoint"))
    return open_decoder(checkpoint, StageOptions(), open_session)


def proof_of(export: StageExport) -> Proof:
    return prove(export, rewrite(export.model, export.passes), open_session)


def test_finished_contract_has_the_shapes_of_the_finished_graph(export: StageExport) -> None:
    graph = rewrite(export.model, export.passes)[-1].model
    contract = finished_contract(export, graph)
    assert contract.outputs == (TensorSpec("audio", (1, 1, 1, 109 * 16)),)
    assert dataclasses.replace(contract, outputs=export.contract.outputs) == export.contract


def test_prove_passes_an_honest_export(export: StageExport) -> None:
    proof = proof_of(export)
    assert {verdict.status for verdict in proof.verdicts} == {Status.PASSED}
    assert [record.name for record in proof.passes] == [bound.name for bound in export.passes]
    assert [m.name for m in proof.measurements] == ["fp32.encoder_short.short"]


def _changed(export: StageExport, **evidence: Any) -> StageExport:
    return dataclasses.replace(export, evidence=lambda: dataclasses.replace(export.evidence(), **evidence))


def test_prove_fails_when_the_original_says_something_else(export: StageExport) -> None:
    decode = export.evidence().decode
    utterances = tuple(dataclasses.replace(u, reference=-u.reference) for u in decode.utterances)
    proof = proof_of(_changed(export, decode=dataclasses.replace(decode, utterances=utterances)))
    failed = {verdict.gate for verdict in proof.verdicts if verdict.status is Status.FAILED}
    assert failed == {
        "fp32.encoder_one_window.whole",
        "fp32.encoder_several_windows.whole",
        "fp32.encoder_several_windows.worst_interior",
        "fp32.noise_300_frames.whole",
        "fp32.noise_300_frames.worst_interior",
    }


def test_prove_fails_when_an_equality_does_not_hold(export: StageExport) -> None:
    wrong = Equality("fp32.cut", {"a": np.ones(4, np.float32)}, {"a": np.ones(5, np.float32)}, 120.0, "")
    proof = proof_of(_changed(export, equalities=(wrong,)))
    assert [v.gate for v in proof.verdicts if v.status is Status.FAILED] == ["fp32.cut"]


def test_prove_fails_when_the_stage_states_no_window(export: StageExport) -> None:
    without = dataclasses.replace(export, contract=dataclasses.replace(export.contract, window=None))
    failed = [verdict for verdict in proof_of(without).verdicts if verdict.status is Status.FAILED]
    assert [verdict.gate for verdict in failed] == ["fp32.windows"]


def test_evidence_is_not_gathered_before_it_is_owed(tmp_path: Path) -> None:
    path = write_voice(tmp_path / "voice.onnx")
    opened: list[ir.Model] = []

    def counting(given: ir.Model) -> Any:
        opened.append(given)
        return open_session(given)

    made = open_decoder(Checkpoint(path, Source("v", "ab" * 32, "checkpoint")), StageOptions(), counting)
    assert len(opened) == 1  # the host half, for a real latent
    assert isinstance(made.evidence(), Evidence)
    assert len(opened) > 1


def test_prove_fails_when_nothing_compares_the_cut(export: StageExport) -> None:
    failed = [v for v in proof_of(_changed(export, equalities=())).verdicts if v.status is Status.FAILED]
    assert [(v.gate, v.detail) for v in failed] == [
        ("fp32.cut", "nothing compares the cut with the original, so it is not proven")
    ]


@pytest.mark.parametrize("kept", [(), ("encoder_short",)])
def test_prove_fails_when_no_utterance_of_a_window_is_compared(export: StageExport, kept: tuple[str, ...]) -> None:
    decode = export.evidence().decode
    utterances = tuple(u for u in decode.utterances if u.name in kept)
    proof = proof_of(_changed(export, decode=dataclasses.replace(decode, utterances=utterances)))
    assert [v.gate for v in proof.verdicts if v.status is Status.FAILED] == ["fp32.windows"]


def test_prove_fails_when_a_gate_stays_without_material(export: StageExport) -> None:
    proof = proof_of(_changed(export, unreached={"fp32.encoder_short.short": "no such utterance"}))
    failed = [v for v in proof.verdicts if v.status is Status.FAILED]
    assert [(v.gate, v.detail) for v in failed] == [("fp32.encoder_short.short", "no such utterance")]


def test_prove_runs_nothing_when_a_pass_refused(export: StageExport) -> None:
    done = rewrite(export.model, export.passes)
    done[0] = dataclasses.replace(done[0], refused=(Refused("z", "the input is named", "once", "is not"),))

    def no_session(_: ir.Model) -> Any:
        raise AssertionError("a graph was opened")

    proof = prove(export, done, no_session)
    assert [(v.gate, v.status) for v in proof.verdicts] == [("pass.normalise_static_inputs", Status.FAILED)]


def test_prove_fails_with_the_passes_verdicts_when_the_original_does_not_run(export: StageExport) -> None:
    def evidence() -> Evidence:
        raise ToolFailure("voice.onnx: onnxruntime failed: no memory.")

    proof = proof_of(dataclasses.replace(export, evidence=evidence))
    assert [(v.gate, v.detail) for v in proof.verdicts if v.status is Status.FAILED] == [
        ("fp32.windows", "it could not run: voice.onnx: onnxruntime failed: no memory.")
    ]
    assert len(proof.passes) == len(export.passes)
