"""The exports of a small flow encoder: what the gates are given, and that it holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from contracts.contract import CarriedState, Contract
from contracts.contract_faults import contract_fault
from contracts.errors import UserInput
from converters.cosyvoice2.flow_encoder import STAGE
from converters.cosyvoice2.flow_encoder_opening import EncoderOpening
from converters.stages import Evidence, Opened, StageExport, StageOptions
from tests.converters.hubs import no_hub
from tests.cosyvoice2_encoder import SMALL, encoder, weights_of, write_flow
from tests.onnx_runs import open_session, run, snr_db

CHUNK, HISTORY = 4, 20
EXACT_DB = 100.0


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_flow(tmp_path_factory.mktemp("small") / "flow.pt")


def opened(checkpoint: Path, **options: object) -> Opened:
    assert STAGE.locate is not None
    chosen = StageOptions(**{"chunk": CHUNK, "history": HISTORY, **options})  # type: ignore[arg-type]  # of their types
    return STAGE.open(STAGE.locate(str(checkpoint), no_hub), chosen, open_session)


@pytest.fixture(scope="module")
def small(checkpoint: Path) -> Opened:
    return opened(checkpoint)


@pytest.fixture(scope="module")
def steady(small: Opened) -> StageExport:
    return small("steady")


@pytest.fixture(scope="module")
def evidence(steady: StageExport) -> Evidence:
    return steady.evidence()


@pytest.fixture(scope="module")
def first(small: Opened) -> Evidence:
    return small("first").evidence()


def test_contract_names_what_is_carried_and_what_is_proven(steady: StageExport) -> None:
    contract = steady.contract
    assert (contract.family, contract.stage, contract.role) == ("cosyvoice2", "flow_encoder", "steady")
    assert steady.stem == "cosyvoice2-flow_encoder-t4+3-h20"
    assert contract.source.kind == "checkpoint"
    assert [(spec.name, spec.shape) for spec in contract.inputs[:3]] == [
        ("embedded", (1, 32, 1, 7)),
        ("mask", (1, 1, 1, 7)),
        ("valid", (1, 1, 1, 20)),
    ]
    names = ["valid", "look_ahead", "up", "keys_0", "values_0", "keys_1", "values_1", "up_keys_0", "up_values_0"]
    assert contract.state == tuple(CarriedState(name, f"{name}_out") for name in names)
    shapes = {spec.name: spec.shape for spec in (*contract.inputs, *contract.outputs)}
    assert all(shapes[state.input] == shapes[state.output] for state in contract.state)
    assert shapes["mu"] == (1, 10, 1, 8)
    assert contract.thresholds == {"simulator": 40.0}
    bounds = {item.figure: item.bound for item in contract.quality if item.output == "mu"}
    assert bounds == {"mel_cosine": 0.999989, "mel_l1_relative": 0.004, "mel_l1": None}
    assert contract_fault(contract) is None


def test_steps_of_both_roles_share_their_states(small: Opened) -> None:
    contracts: list[Contract] = [small(role).contract for role in ("steady", "first")]
    steady, first = ({spec.name: spec.shape for spec in contract.inputs} for contract in contracts)
    assert (steady.pop("embedded"), first.pop("embedded")) == ((1, 32, 1, 7), (1, 32, 1, 5))
    assert (steady.pop("mask"), first.pop("mask")) == ((1, 1, 1, 7), (1, 1, 1, 5))
    assert steady == first
    assert contracts[0].state == contracts[1].state


def test_feeds_are_a_step_in_the_middle_and_the_streams_end_with_what_the_original_gives(steady: StageExport) -> None:
    (middle,), (last,) = steady.feeds, steady.padded_feeds
    assert middle["mask"].min() == 1
    assert middle["valid"].flatten().tolist() == [0] * 12 + [1] * 8
    # 18 tokens: the fifth step has two.
    assert last["mask"].flatten().tolist() == [1, 1, 0, 0, 0, 0, 0]
    assert last["embedded"][..., 2:].all()
    for feed, owed, frames in zip((middle, last), steady.references, (8, 4), strict=True):
        got = run(steady.model, feed)
        assert owed["mu"].shape == (1, 10, 1, frames)
        assert owed.keys() == got.keys()
        assert all(snr_db(owed[name], got[name][..., : owed[name].shape[-1]]) >= EXACT_DB for name in owed)


def test_gates_compare_the_walk_with_the_original_and_hold(evidence: Evidence) -> None:
    gates = [equality.gate for equality in evidence.equalities]
    assert gates == ["host.embedded", "fp32.export", "fp32.stepwise", "fp32.stepwise_first", "fp32.fewer_ahead"]
    for equality in evidence.equalities:
        assert equality.reference.keys() == equality.measured.keys()
        figures = [snr_db(array, equality.measured[name]) for name, array in equality.reference.items()]
        assert min(figures) >= equality.minimum_db >= 100
    stepwise = next(equality for equality in evidence.equalities if equality.gate == "fp32.stepwise")
    assert stepwise.reference["mu"].shape == (1, 10, 1, 36)


def test_finished_graph_owes_the_original_and_short_streams_alone(evidence: Evidence, steady: StageExport) -> None:
    session = open_session(steady.model)
    assert [each.gate for each in evidence.expectations] == ["fp32.finished", "fp32.short_1", "fp32.short_3"]
    for expectation in evidence.expectations:
        for feed, owed in expectation.runs:
            got = session(feed)
            assert owed.keys() == got.keys()
            figures = [snr_db(array, got[name][..., : array.shape[-1]]) for name, array in owed.items()]
            assert min(figures) >= expectation.minimum_db >= 100
    shorts = [expectation.runs[0][1]["mu"].shape[3] for expectation in evidence.expectations[1:]]
    assert shorts == [2, 6]


def test_what_a_stream_of_three_tokens_owes_is_the_originals(evidence: Evidence) -> None:
    (short,) = (each for each in evidence.expectations if each.gate == "fp32.short_3")
    feed, owed = short.runs[0]
    wanted = encoder()(torch.from_numpy(feed["embedded"][:, :, 0, :3]).transpose(1, 2)).numpy()
    np.testing.assert_array_equal(owed["mu"][:, :, 0], wanted)


def test_figures_that_decide_nothing_are_reported(evidence: Evidence, first: Evidence) -> None:
    found = {figure.name: figure.measured for figure in evidence.measurements}
    assert list(found) == ["stepwise.chunks", "stepwise.past_history", "stepwise.fewer_ahead"]
    assert all(isinstance(figure, float) and 0 < figure < 60 for figure in found.values())
    assert first.measurements == ()


def test_first_is_proven_by_itself(first: Evidence) -> None:
    gates = [equality.gate for equality in first.equalities]
    assert gates == ["host.embedded", "fp32.export", "fp32.stepwise", "fp32.fewer_ahead"]


def test_host_half_is_of_the_checkpoint(steady: StageExport) -> None:
    assert (steady.host_file, steady.host is not None) == ("cosyvoice2-flow_encoder-host.onnx", True)
    assert steady.host is not None
    got = run(steady.host, {"tokens": np.array([[5]]), "speaker": np.ones((1, SMALL.speaker), np.float32)})
    np.testing.assert_array_equal(got["embedded"].flatten(), weights_of()["input_embedding.weight"][5])


def test_a_stream_is_walked_where_a_step_is_all_that_is_remembered(checkpoint: Path) -> None:
    assert STAGE.locate is not None
    options = StageOptions(chunk=3, history=3, look_ahead="2")
    opening = EncoderOpening(STAGE.locate(str(checkpoint), no_hub), options, open_session)
    assert opening.tokens.shape == (1, 3)
    whole = opening.whole(opening.tokens, 3, [2])
    assert snr_db(whole, opening.walked(opening.tokens, [opening.sizes])) >= EXACT_DB


def test_more_tokens_ahead_than_the_encoder_sees_are_refused(checkpoint: Path) -> None:
    with pytest.raises(UserInput, match=r"--look-ahead 4: the encoder of .*flow.pt sees 3 tokens ahead at most"):
        opened(checkpoint, look_ahead="4")


def test_stage_says_what_it_is(checkpoint: Path) -> None:
    assert STAGE.roles(StageOptions()) == ("steady", "first")
    assert STAGE.options >= {"chunk", "look_ahead", "history", "member"}
    assert STAGE.locate is not None
    random = STAGE.locate("random", no_hub)
    assert random.source.kind == "random"
    assert random.extras == {"torch"}
    assert "stand-in" in random.note
