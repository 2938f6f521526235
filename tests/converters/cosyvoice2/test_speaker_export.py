"""An engine of the speaker encoder: its contract, and that its gates see what is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from contracts.quality import Quality
from contracts.verdicts import Status
from converters.cosyvoice2.speaker import STAGE
from converters.cosyvoice2.speaker_opening import SpeakerOpening, drawn_fbank
from converters.stages import StageExport, StageOptions
from gates.snr import compare
from rknn_tts.export_step import prove
from rknn_tts.rewriting import rewrite
from surgery.preflight import preflight
from tests.converters.hubs import no_hub
from tests.cosyvoice2_speaker import original, original_embedding, published, save, write_weights
from tests.onnx_runs import open_session, snr_db


def exported(path: Path, frames: int = 400) -> StageExport:
    assert STAGE.locate is not None
    options = StageOptions(lengths=str(frames))
    (role,) = STAGE.roles(options)
    return STAGE.open(STAGE.locate(str(path), no_hub), options, open_session)(role)


def check_contract(export: StageExport) -> None:
    contract = export.contract
    assert export.stem == "cosyvoice2-speaker-t400"
    assert (contract.family, contract.stage, contract.role) == ("cosyvoice2", "speaker", "t400")
    assert [(spec.name, spec.shape) for spec in contract.inputs] == [("fbank", (1, 1, 16, 400))]
    assert contract.quality == (Quality("embedding_cosine", "embedding", 0.9999),)
    assert STAGE.options == {"lengths"}  # in fp16 alone


@pytest.mark.parametrize("name", ["campplus.pt", "campplus.onnx"])
def test_export_is_proven_against_the_original(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    export = exported(write_weights(path) if path.suffix == ".pt" else save(published(), path))
    check_contract(export)
    for feed, owed in zip(export.feeds, export.references, strict=True):
        assert snr_db(original_embedding(original(), np.asarray(feed["fbank"], np.float32)), owed["embedding"]) > 110
    passes = preflight("rk3588")
    proof = prove(export, passes, rewrite(export.model, passes), open_session)
    assert [verdict for verdict in proof.verdicts if verdict.status is not Status.PASSED] == []
    names = {verdict.gate for verdict in proof.verdicts}
    assert {"fp32.export", "fp32.finished"} <= names
    assert ("fp32.published" in names) == (path.suffix == ".onnx")
    (apart,) = proof.measurements
    assert apart.name == "embedding.apart"
    assert isinstance(apart.measured, float)
    assert apart.measured < 0.99  # a cosine of 0.9999 says something


def test_onnx_that_computes_something_else_with_such_weights_fails_a_gate(tmp_path: Path) -> None:
    model = published()
    gate = next(node for node in model.graph if node.op_type == "Sigmoid")
    gate.op_type = "Tanh"
    export = exported(save(model, tmp_path / "campplus.onnx"))
    verdicts = {
        each.gate: compare(each.gate, each.reference, each.measured, each.minimum_db, "").status
        for each in export.evidence().equalities
    }
    assert verdicts == {"fp32.export": Status.PASSED, "fp32.published": Status.FAILED}


def test_drawn_voices_are_of_speechs_size_and_without_a_mean() -> None:
    one, other = drawn_fbank(80, 200, 0), drawn_fbank(80, 200, 1)
    assert one.shape == (1, 1, 80, 200)
    assert one.std() == pytest.approx(3.0, rel=1e-4)
    assert np.abs(one.mean(axis=-1)).max() < 1e-5
    assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 0.5


def test_opening_runs_the_original_once_for_a_length(tmp_path: Path) -> None:
    runs: list[object] = []

    def counting(model: object) -> object:
        session = open_session(model)  # type: ignore[arg-type]

        def run(feed: object) -> object:
            runs.append(feed)
            return session(feed)  # type: ignore[arg-type]

        return run

    assert STAGE.locate is not None
    checkpoint = STAGE.locate(str(save(published(), tmp_path / "campplus.onnx")), no_hub)
    opening = SpeakerOpening(checkpoint, counting)  # type: ignore[arg-type]
    assert opening.owed(60, 0) is opening.owed(60, 0)
    assert len(runs) == 1
