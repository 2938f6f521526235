from __future__ import annotations

import onnx_ir as ir
import pytest
from onnx import helper

from contracts.verdicts import Status
from gates.graphs import with_shapes
from rknn_tts import graph_gates
from rknn_tts.graph_gates import judge_structure
from rknn_tts.rewriting import rewrite, without_skipped
from surgery.preflight import preflight
from tests.gates.small_graphs import chain, constant, model, tensor
from tests.surgery.relative_graphs import Attention, attention

GATES = ["structure.operators", "structure.static_shapes", "structure.relative_shifts", "range.weights"]


def test_judge_structure_gives_a_verdict_of_each_gate_and_infers_the_shapes_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inferred, infer = [], with_shapes

    def counted(graph: ir.Model) -> ir.Model:
        inferred.append(graph)
        return infer(graph)

    monkeypatch.setattr(graph_gates, "with_shapes", counted)
    verdicts, measurements = judge_structure(chain("Tanh"))
    assert [(verdict.gate, verdict.status) for verdict in verdicts] == [(gate, Status.PASSED) for gate in GATES]
    assert [measurement.name for measurement in measurements] == ["range.subnormal_weights"]
    assert len(inferred) == 1


def test_judge_structure_judges_the_fields_of_a_target_before_a_build_would() -> None:
    node = helper.make_node("Conv", ["x", "w"], ["y"], "net", strides=[15])
    made = model([node], [tensor("x", [1, 1, 240])], [tensor("y", [1, 1, 15])], [constant("w", [[[1.0] * 30]])])
    (failed,) = [verdict for verdict in judge_structure(made, "rk3588")[0] if verdict.status is Status.FAILED]
    assert failed.gate == "structure.fields"
    assert "node 'net', has stride 15" in failed.detail
    verdicts, _ = judge_structure(made, "rk3588", ["v2:0x1014:0:0x7"])
    assert {verdict.status for verdict in verdicts} == {Status.PASSED}


def test_judge_structure_warns_of_the_vendors_limits() -> None:
    node = helper.make_node("Conv", ["x", "w"], ["y"], "net", strides=[8])
    made = model([node], [tensor("x", [1, 1, 64])], [tensor("y", [1, 1, 8])], [constant("w", [[[1.0] * 8]])])
    verdicts, measurements = judge_structure(made)
    assert {verdict.status for verdict in verdicts} == {Status.PASSED}
    assert "vendor.conv_stride" in [measurement.name for measurement in measurements]


def test_judge_structure_fails_naming_the_tensor_when_the_graph_is_no_valid_onnx() -> None:
    nodes = [helper.make_node("Relu", ["t"], ["y"], "late"), helper.make_node("Tanh", ["x"], ["t"])]
    verdicts, _ = judge_structure(model(nodes, [tensor("x", [1])], [tensor("y", [1])]))
    failed = [verdict for verdict in verdicts if verdict.status is Status.FAILED]
    assert [verdict.gate for verdict in failed] == ["structure.static_shapes"]
    assert "node 'late', uses 't', which nothing before it makes" in failed[0].detail


@pytest.mark.parametrize(("skipped", "wanted"), [((), Status.PASSED), (("rewrite_relative_attention",), Status.FAILED)])
def test_judge_structure_fails_on_shifted_rows_when_their_pass_is_left_out(
    skipped: tuple[str, ...], wanted: Status
) -> None:
    done = rewrite(attention(Attention()), without_skipped(preflight("rk3588"), skipped))
    verdicts, _ = judge_structure(done[-1].model)
    assert {verdict.gate for verdict in verdicts if verdict.status is Status.FAILED} == (
        {"structure.relative_shifts"} if wanted is Status.FAILED else set()
    )
