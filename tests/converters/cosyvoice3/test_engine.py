"""The exports of a small flow: what the gates are given, that it holds, and that it fails where it must."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
import torch

from contracts.contract import Contract
from contracts.contract_faults import contract_fault
from converters.cosyvoice3.flow import STAGE
from converters.cosyvoice3.opening import FlowOpening
from converters.stages import Equality, Evidence, Opened, StageExport, StageOptions
from models.cosyvoice3.layout import INPUTS
from tests.converters.hubs import no_hub
from tests.cosyvoice3_files import REDUCED, exported, weights_of, write_flow
from tests.cosyvoice3_reference import Original
from tests.onnx_runs import open_session, run, snr_db

LENGTH = 20
OUT = "estimator_out"


def opened(path: Path, lengths: str = "20") -> Opened:
    assert STAGE.locate is not None
    return STAGE.open(STAGE.locate(str(path), no_hub), StageOptions(lengths=lengths), open_session)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_flow(tmp_path_factory.mktemp("small") / "flow.pt", weights_of())


@pytest.fixture(scope="module")
def export(checkpoint: Path) -> StageExport:
    return opened(checkpoint)("s20")


@pytest.fixture(scope="module")
def evidence(export: StageExport) -> Evidence:
    return export.evidence()


def test_the_contract_has_the_published_ends(export: StageExport) -> None:
    contract: Contract = export.contract
    assert (contract.family, contract.stage, contract.role) == ("cosyvoice3", "flow", "s20")
    assert export.stem == "cosyvoice3-flow-s20"
    assert [(spec.name, spec.shape) for spec in contract.inputs] == [
        ("x", (2, 20, 20)),
        ("mask", (2, 1, 20)),
        ("mu", (2, 20, 20)),
        ("t", (2,)),
        ("spks", (2, 28)),
        ("cond", (2, 20, 20)),
    ]
    assert [(spec.name, spec.shape) for spec in contract.outputs] == [(OUT, (2, 20, 20))]
    assert contract.thresholds == {"simulator": 40.0}
    bounds = {item.figure: item.bound for item in contract.quality if (item.output, item.mask) == (OUT, "mask")}
    assert bounds == {"mel_cosine": 0.9999, "mel_l1_relative": 0.01, "mel_l1": None}
    assert contract_fault(contract) is None


def test_the_original_is_what_feeds_are_compared_with(export: StageExport) -> None:
    (full,), (padded,) = export.feeds, export.padded_feeds
    assert full["mask"].min() == 1.0
    assert padded["mask"][0, 0].tolist() == [1.0] * 15 + [0.0] * 5
    original = Original(REDUCED, weights_of())
    for feed, owed, real in zip((full, padded), export.references, (20, 15), strict=True):
        alone = [feed[name][..., :real] if feed[name].ndim == 3 else feed[name] for name in INPUTS]
        wanted = original(*(torch.from_numpy(np.ascontiguousarray(array)) for array in alone)).numpy()
        assert snr_db(wanted, np.asarray(owed[OUT])) >= 110
        assert snr_db(wanted, run(export.model, feed)[OUT][..., :real]) >= 100


def test_padding_is_judged_at_one_frame_one_too_few_and_none(evidence: Evidence, export: StageExport) -> None:
    gates = [each.gate for each in evidence.expectations]
    assert gates == ["fp32.finished", "fp32.padded_n1", "fp32.padded_n19", "fp32.padded_n20"]
    session = open_session(export.model)
    for expectation in evidence.expectations:
        assert expectation.minimum_db == 100
        for feed, owed in expectation.runs:
            real = int(feed["mask"][0].sum())
            assert owed[OUT].shape == (2, 20, real)
            assert snr_db(np.asarray(owed[OUT]), session(feed)[OUT][..., :real]) >= 100


def test_a_graph_without_its_mask_fails_where_frames_are_padding(evidence: Evidence, export: StageExport) -> None:
    session = open_session(export.model)
    for expectation in evidence.expectations[1:]:
        feed, owed = expectation.runs[0]
        real = owed[OUT].shape[2]
        unmasked = session({**feed, "mask": np.ones_like(feed["mask"])})[OUT][..., :real]
        assert (snr_db(np.asarray(owed[OUT]), unmasked) >= 100) == (real == LENGTH)


def test_the_export_is_judged_before_any_pass(evidence: Evidence, export: StageExport) -> None:
    (equality,) = evidence.equalities
    assert equality.gate == "fp32.export"
    assert snr_db(np.asarray(equality.reference[OUT]), np.asarray(equality.measured[OUT])) >= equality.minimum_db == 100
    assert export.session is not None
    assert export.session() is export.session()


def test_notes_say_which_times_an_engine_keeps(export: StageExport) -> None:
    assert any("rounds t to fp16" in note for note in export.notes)


def proof(model: ir.Model, folder: Path) -> Equality:
    """Of the weights that are found in `model`."""
    assert STAGE.locate is not None
    ir.save(model, folder / "flow.decoder.estimator.fp32.onnx")
    located = STAGE.locate(str(folder), no_hub)
    (found,) = FlowOpening(located, StageOptions(lengths="20"), open_session).original
    assert found.gate == "fp32.original"
    assert found.minimum_db == 100
    return found


def figure(equality: Equality) -> float:
    return snr_db(np.asarray(equality.reference[OUT]), np.asarray(equality.measured[OUT]))


def test_weights_found_in_a_graph_are_proven_by_the_graph(tmp_path: Path) -> None:
    found = proof(exported(), tmp_path)
    assert found.reference[OUT].shape == (2, 20, 24)
    assert figure(found) >= 110


def test_a_graph_of_one_length_is_run_at_that(tmp_path: Path) -> None:
    model = exported()
    for value in (*model.graph.inputs, *model.graph.outputs):
        if value.shape is not None and len(value.shape) == 3:
            value.shape = ir.Shape((value.shape[0], value.shape[1], 12))
    found = proof(model, tmp_path)
    assert found.reference[OUT].shape == (2, 20, 12)
    assert figure(found) >= 110


def test_a_graph_with_other_arithmetic_fails_its_proof(tmp_path: Path) -> None:
    model = exported()
    node = next(node for node in model.graph if node.op_type == "Tanh")
    node.op_type = "Sigmoid"
    assert figure(proof(model, tmp_path)) < 60
