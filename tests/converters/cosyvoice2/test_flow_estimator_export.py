"""The estimator's exports on a small checkpoint: what the gates are given, against the original."""

from __future__ import annotations

import numpy as np
import pytest

from converters.cosyvoice2.flow_estimator import STAGE
from converters.cosyvoice2.flow_estimator_drawn import drawn_stream
from converters.stages import Evidence, Opened, StageExport, StageOptions
from tests.converters.hubs import no_hub
from tests.cosyvoice2_estimator import CHUNK, HISTORY, SMALL, by_original, write_flow
from tests.finished_exports import finished_model, reshaped
from tests.onnx_runs import open_session, run, snr_db

OUT = "estimator_out"
FRAMES = 24
STEPS = 6
"""Three fill the history of 20 frames; two follow, and half of one."""


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Opened:
    path = write_flow(tmp_path_factory.mktemp("small") / "flow.pt")
    assert STAGE.locate is not None
    options = StageOptions(chunk=CHUNK // 2, history=HISTORY // 2, lengths=str(FRAMES))
    assert STAGE.roles(options) == ("step", "s24")
    return STAGE.open(STAGE.locate(str(path), no_hub), options, open_session)


@pytest.fixture(scope="module")
def step(opened: Opened) -> StageExport:
    return opened("step")


@pytest.fixture(scope="module")
def whole(opened: Opened) -> StageExport:
    return opened("s24")


def check(proof: Evidence, export: StageExport) -> None:
    """Every comparison holds, those of the finished graph on what the toolkit sees."""
    bounds = [each.minimum_db for each in proof.equalities] + [each.minimum_db for each in proof.expectations]
    assert min(bounds) >= 90
    for item in proof.equalities:
        for name, reference in item.reference.items():
            assert snr_db(np.asarray(reference), np.asarray(item.measured[name])) >= item.minimum_db, (item.gate, name)
    model = finished_model(export)
    session = open_session(model)
    for expected in proof.expectations:
        for feed, owed in expected.runs:
            got = session(reshaped(model, feed))
            for name, reference in owed.items():
                cut = got[name].reshape(*reference.shape[:-1], -1)[..., : reference.shape[-1]]
                assert snr_db(np.asarray(reference), cut) >= expected.minimum_db, (expected.gate, name)


@pytest.mark.parametrize("role", ["step", "s24"])
def test_either_owes_what_the_reference_reports(opened: Opened, role: str) -> None:
    contract = opened(role).contract
    assert contract.thresholds == {"simulator": 40.0}
    bounds = {item.figure: item.bound for item in contract.quality if (item.output, item.mask) == (OUT, "mask")}
    assert bounds == {"mel_cosine": 0.999989, "mel_l1_relative": 0.004, "mel_l1": None}


def test_step_is_declared_as_it_is(step: StageExport) -> None:
    contract = step.contract
    assert step.stem == "cosyvoice2-flow_estimator-t4-h10"
    assert (contract.role, step.host_file) == ("step", "cosyvoice2-flow_estimator-host.onnx")
    shapes = {spec.name: spec.shape for spec in contract.inputs}
    assert (shapes["x"], shapes["valid"]) == ((2, SMALL.mel, CHUNK), (1, 1, 1, HISTORY))
    outputs = {spec.name for spec in contract.outputs}
    assert outputs == {OUT, *(state.output for state in contract.state)}
    assert {state.input for state in contract.state} == shapes.keys() - {"x", "mask", "mu", "time", "spks", "cond"}


def test_every_comparison_of_the_step_holds(step: StageExport) -> None:
    proof = step.evidence()
    assert [item.gate for item in proof.equalities] == ["host.time", "fp32.export", "fp32.stepwise"]
    assert [item.gate for item in proof.expectations] == ["fp32.finished", "fp32.short_n1", "fp32.short_n7"]
    check(proof, step)
    past, chunks = proof.measurements
    assert (past.name, chunks.name) == ("stepwise.past_history", "stepwise.chunks")
    assert isinstance(past.measured, float)
    assert isinstance(chunks.measured, float)
    assert 0 < chunks.measured < 40
    assert 0 < past.measured < 40


def test_walk_is_the_original_where_the_history_holds_all(step: StageExport) -> None:
    (stepwise,) = (item for item in step.evidence().equalities if item.gate == "fp32.stepwise")
    stream = drawn_stream(SMALL, STEPS * CHUNK - CHUNK // 2, 0)
    owed = by_original(stream, streaming=True)
    walked = np.asarray(stepwise.measured[OUT])
    assert walked.shape == owed.shape
    fits = HISTORY // CHUNK * CHUNK + CHUNK
    assert snr_db(owed[..., :fits], walked[..., :fits]) > 115


def test_steps_feeds_have_a_full_history_and_a_part_of_a_chunk(step: StageExport) -> None:
    (middle,), (last,) = step.feeds, step.padded_feeds
    assert np.all(middle["valid"] == 1)
    assert np.all(middle["mask"] == 1)
    assert last["mask"][0, 0].tolist() == [1.0] * 4 + [0.0] * 4
    assert step.references[1][OUT].shape == (2, SMALL.mel, CHUNK // 2)


def test_every_comparison_of_the_whole_holds(whole: StageExport) -> None:
    proof = whole.evidence()
    gates = [item.gate for item in proof.expectations]
    assert gates == ["fp32.finished", "fp32.padded_n1", "fp32.padded_n23", "fp32.padded_n24"]
    check(proof, whole)


def test_whole_is_the_original(whole: StageExport) -> None:
    model = finished_model(whole)
    for feeds, real, solver_step in ((whole.feeds, FRAMES, 5), (whole.padded_feeds, 18, 2)):
        got = run(model, reshaped(model, feeds[0]))[OUT].reshape(2, SMALL.mel, FRAMES)
        assert snr_db(by_original(drawn_stream(SMALL, real, solver_step)), got[..., :real]) > 110


def test_whole_takes_and_gives_what_the_published_graph_does_but_for_the_time(whole: StageExport) -> None:
    names = [spec.name for spec in whole.contract.inputs]
    assert names == ["x", "mask", "mu", "time", "spks", "cond"]
    assert [spec.name for spec in whole.contract.outputs] == [OUT]
    assert not whole.contract.state
