from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
import pytest

from contracts.contract import PassRecord
from contracts.verdicts import Measurement, passed
from rknn_tts.carried import carried_contract, carried_feeds, check_seal, feeds_to_npz
from rknn_tts.export_step import Proof
from rknn_tts.graph_at_hand import check_graph, judge_numbers, twin_of, with_proof
from rknn_tts.steps import Steps, open_steps
from tests.gates.small_graphs import chain, row
from tests.rknn_tts.sources import PROOF, doubling
from tests.rknn_tts.workshop import Heard


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Steps:
    monkeypatch.setenv("RKNN_TTS_CACHE", str(tmp_path / "cache"))
    return open_steps(False, lambda text: pytest.fail(text))


def test_check_graph_says_what_the_manifest_holds_and_judges_the_structure(tmp_path: Path, steps: Steps) -> None:
    said = Heard()
    info = check_graph(doubling(tmp_path).graph, steps, said)
    assert (info.opset, info.nodes) == (17, 1)
    assert {verdict.gate: verdict.status.value for verdict in info.verdicts} == {
        "structure.operators": "passed",
        "structure.static_shapes": "passed",
        "structure.relative_shifts": "passed",
        "range.weights": "passed",
    }
    assert said.steps == ["checking the graph"]
    assert check_graph(doubling(tmp_path).graph, steps, said) == info
    assert (steps.reused, said.steps) == (["graph"], ["checking the graph"])


def test_check_graph_judges_again_what_failed(tmp_path: Path, steps: Steps) -> None:
    graph = tmp_path / "atan.onnx"
    graph.write_bytes(ir.to_proto(chain("Atan")).SerializeToString())
    for _ in range(2):
        info = check_graph(graph, steps, Heard())
        assert [v.gate for v in info.verdicts if v.status.value == "failed"] == ["structure.operators"]
    assert steps.reused == []


@pytest.mark.parametrize(("factor", "status"), [(2.0, "passed"), (40_000.0, "failed")])
def test_judge_numbers_adds_the_range_of_the_activations_to_the_proof(
    tmp_path: Path, steps: Steps, factor: float, status: str
) -> None:
    numbers = judge_numbers(doubling(tmp_path, factor), steps)
    assert numbers.proof == PROOF
    assert [(v.gate, v.status.value) for v in numbers.verdicts] == [
        ("fp32.whole", "passed"),
        ("range.activations", status),
    ]
    assert numbers.activations.measured == 4 * factor  # the largest input is 4


@pytest.mark.parametrize("change", [{"feeds": b""}, {"graph": "other"}])
def test_judge_numbers_is_done_again_when_graph_or_feeds_change(
    tmp_path: Path, steps: Steps, change: dict[str, Any]
) -> None:
    source = doubling(tmp_path)
    judge_numbers(source, steps)
    if "graph" in change:
        (tmp_path / "other").mkdir()
        other = doubling(tmp_path / "other", 3.0)
    else:
        other = dataclasses.replace(source, make_feeds=lambda: feeds_to_npz([{"x": row(5, 6, 7, 8)}]))
    assert judge_numbers(other, steps).activations.measured in (12.0, 16.0)
    assert steps.reused == []


def test_twin_carries_contract_proof_and_feeds_under_a_seal(tmp_path: Path) -> None:
    source = doubling(tmp_path)
    proof = Proof(
        (PassRecord("fold", 1, True, 130.0),),
        (passed("fp32.whole"),),
        (Measurement(name="m", measured=1.0, unit="", reason=""),),
    )
    twin = b"".join(twin_of(source, proof).chunks())
    check_seal(twin, "twin")
    model = ir.from_proto(onnx.load_model_from_string(twin))
    contract = carried_contract(model, "twin")
    assert contract == with_proof(source.contract, proof)
    assert contract is not None
    assert (contract.passes, contract.verdicts, contract.measurements) == (
        proof.passes,
        proof.verdicts,
        proof.measurements,
    )
    assert carried_feeds(model, "twin")[0]["x"].tolist() == [[1, 2, 3, 4]]
