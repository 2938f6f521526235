from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from contracts.contract import Source, TensorSpec
from contracts.contract_faults import contract_fault
from contracts.errors import ToolFailure
from contracts.verdicts import Measurement, Status, failure, passed
from converters.piper.decoder import open_decoder
from converters.stages import Checkpoint, Equality, Evidence, Expectation, StageExport, StageOptions, WindowedDecode
from rknn_tts.export_step import Proof, finished_contract, prove, with_added_inputs
from rknn_tts.rewriting import rewrite
from surgery.declaration import Declaration, Exact, Interface, Pass, Recast, Refused, Rewritten
from surgery.preflight import preflight
from tests.onnx_runs import open_session
from tests.vits_writer.voice import write_voice


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> StageExport:
    path = write_voice(tmp_path_factory.mktemp("voice") / "voice.onnx")
    checkpoint = Checkpoint(path, Source("voice.onnx", "ab" * 32, "checkpoint"))
    return open_decoder(checkpoint, StageOptions(), open_session)("")


def proof_of(export: StageExport) -> Proof:
    return prove(export, every_pass(export), rewrite(export.model, every_pass(export)), open_session)


def every_pass(export: StageExport) -> tuple[Pass, ...]:
    """The stage's own passes, and those of every graph."""
    return (*export.passes, *preflight("rk3588"))


def test_finished_contract_has_the_shapes_of_the_finished_graph(export: StageExport) -> None:
    contract = finished_contract(export, rewrite(export.model, every_pass(export)), ("mask_decoder",), "rk3588")
    assert contract.outputs == (TensorSpec("audio", (1, 1, 1, 109 * 16)),)
    assert contract.skipped == ("mask_decoder",)
    assert contract.cuts_for == "rk3588"
    assert contract.inputs == (TensorSpec("z", (1, 8, 1, 109)), TensorSpec("y_mask", (1, 1, 1, 109)))
    stated = dataclasses.replace(
        contract, inputs=export.contract.inputs, outputs=export.contract.outputs, skipped=(), cuts_for=None
    )
    assert stated == export.contract


def flat_mask(model: ir.Model) -> Rewritten:
    """The frame mask as an input of rank 2, where it has rank 3."""
    model = model.clone()
    (mask,) = [value for value in model.graph.inputs if value.name == "y_mask"]
    assert mask.shape is not None
    shape = (1, int(str(mask.shape[2])))
    wide = ir.node("Unsqueeze", [mask, ir.Value(name="wide_axis", const_value=ir.tensor([1]))], name="wide")
    wide.outputs[0].name = "wide_mask"
    ir.convenience.replace_all_uses_with(mask, wide.outputs[0])
    wide.replace_input_with(0, mask)
    axis = wide.inputs[1]
    assert axis is not None
    model.graph.register_initializer(axis)
    model.graph.insert_before(model.graph[0], wide)
    mask.shape = ir.Shape(shape)
    return Rewritten(model, 1, interface=Interface(inputs=(Recast("y_mask", shape, "float32"),)))


def test_windows_are_walked_when_a_pass_gives_an_input_another_shape(export: StageExport) -> None:
    flat = Pass(Declaration("rewrite_mask", "a flat mask", Exact("the same numbers")), flat_mask)
    pinned = tuple(bound for bound in export.passes if bound.name != "rewrite_interface_axes")
    passes = (*pinned, flat)
    done = rewrite(export.model, passes)
    proof = prove(export, passes, done, open_session)
    assert {verdict.status for verdict in proof.verdicts} == {Status.PASSED}
    assert "fp32.noise_300_frames.whole" in {verdict.gate for verdict in proof.verdicts}
    assert TensorSpec("y_mask", (1, 109)) in finished_contract(export, done, (), None).inputs


def test_prove_passes_an_honest_export(export: StageExport) -> None:
    proof = proof_of(export)
    assert {verdict.status for verdict in proof.verdicts} == {Status.PASSED}
    assert [record.name for record in proof.passes] == [bound.name for bound in every_pass(export)]
    assert [m.name for m in proof.measurements] == ["fp32.encoder_short.short"]


def test_prove_walks_a_trimmed_window_at_each_place(tmp_path: Path) -> None:
    checkpoint = Checkpoint(write_voice(tmp_path / "voice.onnx"), Source("voice.onnx", "ab" * 32, "checkpoint"))
    trimmed = open_decoder(checkpoint, StageOptions(windows="124t"), open_session)("w124")
    proof = proof_of(trimmed)
    assert [verdict for verdict in proof.verdicts if verdict.status is not Status.PASSED] == []
    walked = {verdict.gate for verdict in proof.verdicts if "noise" in verdict.gate}
    # The first window and the last one of 124 frames; of 300 also those between.
    assert walked == {
        "fp32.noise_300_frames.whole",
        "fp32.noise_300_frames.worst_interior",
        "fp32.noise_124_frames.whole",
    }
    contract = finished_contract(trimmed, rewrite(trimmed.model, every_pass(trimmed)), (), "rk3588")
    assert contract.inputs[-1] == TensorSpec("place", (1, 3, 1, 1))
    assert contract_fault(contract) is None


def test_first_feeds_have_what_passes_added_and_the_others_are_as_they_were() -> None:
    followed = [{"z": np.full(1, number), "place": np.full(1, 7)} for number in range(3)]
    added = [{"place": np.full(1, 8)}, {"place": np.full(1, 9)}]
    told = with_added_inputs(followed, added)
    assert [(int(feed["z"][0]), int(feed["place"][0])) for feed in told] == [(0, 8), (1, 9), (2, 7)]
    assert with_added_inputs(followed, ()) == followed


def decode_of(export: StageExport) -> WindowedDecode:
    decode = export.evidence().decode
    assert decode is not None
    return decode


def _changed(export: StageExport, **evidence: Any) -> StageExport:
    return dataclasses.replace(export, evidence=lambda: dataclasses.replace(export.evidence(), **evidence))


def test_prove_fails_when_the_original_says_something_else(export: StageExport) -> None:
    decode = decode_of(export)
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

    made = open_decoder(Checkpoint(path, Source("v", "ab" * 32, "checkpoint")), StageOptions(), counting)("")
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
    decode = decode_of(export)
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

    proof = prove(export, export.passes, done, no_session)
    assert [(v.gate, v.status) for v in proof.verdicts] == [("pass.normalise_static_inputs", Status.FAILED)]


def test_prove_fails_with_the_passes_verdicts_when_the_original_does_not_run(export: StageExport) -> None:
    def evidence() -> Evidence:
        raise ToolFailure("voice.onnx: onnxruntime failed: no memory.")

    proof = proof_of(dataclasses.replace(export, evidence=evidence))
    assert [(v.gate, v.detail) for v in proof.verdicts if v.status is Status.FAILED] == [
        ("fp32.windows", "it could not run: voice.onnx: onnxruntime failed: no memory.")
    ]
    assert len(proof.passes) == len(every_pass(export))


def expecting(export: StageExport, scale: float, minimum_db: float, steps: int | None = None) -> Expectation:
    """The finished graph on the stage's own feed against `scale` times what the original gives, cut to `steps`."""
    (feed,) = export.feeds
    audio = open_session(export.model)(feed)["audio"] * np.float32(scale)
    return Expectation("fp32.owed", ((feed, {"audio": audio[..., :steps]}),), minimum_db, "on the stage's feed")


@pytest.mark.parametrize(
    ("scale", "minimum_db", "steps", "status"),
    [
        (1.0, 90.0, None, Status.PASSED),
        (1.0, 90.0, 1000, Status.PASSED),
        (1 / 1.1, 19.0, 1000, Status.PASSED),  # off by a tenth: 20 dB
        (1 / 1.1, 21.0, 1000, Status.FAILED),
        (-1.0, 0.0, None, Status.FAILED),
    ],
)
def test_prove_runs_the_finished_graph_on_what_is_expected_of_it(
    export: StageExport, scale: float, minimum_db: float, steps: int | None, status: Status
) -> None:
    proof = proof_of(_changed(export, decode=None, expectations=(expecting(export, scale, minimum_db, steps),)))
    (verdict,) = [verdict for verdict in proof.verdicts if verdict.gate == "fp32.owed"]
    assert (verdict.status, verdict.threshold) == (status, minimum_db)
    assert {v.gate for v in proof.verdicts if v.status is Status.FAILED} == (
        {"fp32.owed"} if status is Status.FAILED else set()
    )


def test_prove_fails_when_the_original_has_steps_that_the_graph_lacks(export: StageExport) -> None:
    owed = expecting(export, 1.0, 90.0)
    ((feed, given),) = owed.runs
    longer = {"audio": np.concatenate([given["audio"]] * 2, axis=-1)}
    proof = proof_of(_changed(export, decode=None, expectations=(dataclasses.replace(owed, runs=((feed, longer),)),)))
    (failed,) = [verdict for verdict in proof.verdicts if verdict.status is Status.FAILED]
    assert (failed.gate, "shape" in failed.detail) == ("fp32.owed", True)


def test_prove_judges_an_expectation_by_the_worst_of_its_runs(export: StageExport) -> None:
    runs = tuple(expecting(export, scale, 0.0).runs[0] for scale in (1.0, 1 / 1.1, 1 / 1.01))  # inf, 20 and 40 dB
    owed = Expectation("fp32.owed", runs, 30.0, "on the stage's feed")
    (failed,) = [
        verdict
        for verdict in proof_of(_changed(export, decode=None, expectations=(owed,))).verdicts
        if verdict.status is Status.FAILED
    ]
    assert failed.gate == "fp32.owed"
    assert failed.measured == pytest.approx(20.0, abs=0.1)
    assert "the worst of 3 (run 2, output 'audio')" in failed.detail


def test_prove_fails_when_an_expectation_runs_nothing(export: StageExport) -> None:
    owed = Expectation("fp32.owed", (), 30.0, "on nothing")
    proof = proof_of(_changed(export, decode=None, expectations=(owed,)))
    (failed,) = [verdict for verdict in proof.verdicts if verdict.status is Status.FAILED]
    assert (failed.gate, "nothing to compare" in failed.detail) == ("fp32.owed", True)


def test_prove_walks_windows_beside_what_is_expected(export: StageExport) -> None:
    gates = {v.gate for v in proof_of(_changed(export, expectations=(expecting(export, 1.0, 90.0),))).verdicts}
    assert {"fp32.owed", "fp32.noise_300_frames.whole"} <= gates


def test_prove_fails_when_nothing_runs_the_finished_graph(export: StageExport) -> None:
    failed = [v for v in proof_of(_changed(export, decode=None)).verdicts if v.status is Status.FAILED]
    assert [(v.gate, v.detail) for v in failed] == [
        ("fp32.windows", "nothing compares the finished graph with the original")
    ]


def test_prove_tells_what_the_stage_judged_and_measured_itself(export: StageExport) -> None:
    own = (passed("host.tokens"), failure("host.voices", "there are none"))
    figure = Measurement(name="whole.word", measured=26.5, unit="dB", reason="of one voice")
    proof = proof_of(_changed(export, verdicts=own, measurements=(figure,)))
    assert [verdict for verdict in proof.verdicts if verdict.gate.startswith("host.")][-2:] == list(own)
    assert [m.name for m in proof.measurements] == ["whole.word", "fp32.encoder_short.short"]
