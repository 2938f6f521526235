from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper

from contracts.contract import Cache, CodeStep, Source, TensorSpec
from contracts.errors import Refusal, UserInput
from contracts.files import sha256_of
from contracts.verdicts import Status
from converters.onnx_file import read_onnx
from rknn_tts import finished_graph
from rknn_tts import foreign_onnx as module
from rknn_tts.carried import feeds_from_npz
from rknn_tts.foreign_onnx import ORIGINAL_GATE, open_foreign
from rknn_tts.graph_at_hand import OnnxSource
from rknn_tts.request import Request
from rknn_tts.steps import Steps
from surgery.declaration import Declaration, Exact, Pass, Refused, Rewritten
from tests.gates.small_graphs import constant, proto, row, scale_proto, tensor
from tests.rknn_tts.workshop import Heard, fresh_steps
from tests.small_steps import CHANNELS, CODES, KEPT, NUMEL, SIZE, small_step


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Steps:
    monkeypatch.setenv("RKNN_TTS_CACHE", str(tmp_path / "cache"))
    return fresh_steps()


def opened(path: Path, steps: Steps, **options: Any) -> OnnxSource:
    request = Request(command="compile", model=str(path), target="rk3588", **options)
    return open_foreign(path, request, "rk3588", steps, Heard())


def written(folder: Path, model: onnx.ModelProto, name: str = "net.onnx") -> Path:
    path = folder / name
    path.write_bytes(model.SerializeToString())
    return path


def negated(shape: list[int | str]) -> onnx.ModelProto:
    """y = -x."""
    return proto([helper.make_node("Neg", ["x"], ["y"], "neg")], [tensor("x", shape)], [tensor("y", shape)])


def external(folder: Path, factor: float) -> Path:
    path = folder / "net.onnx"
    (folder / "weights.bin").unlink(missing_ok=True)
    model = scale_proto(factor)
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    return path


def test_foreign_onnx_is_described_by_its_graph(tmp_path: Path, steps: Steps) -> None:
    path = written(tmp_path, scale_proto(2.0), "my net.onnx")
    source = opened(path, steps)
    contract = source.contract
    assert (source.stem, contract.family, contract.stage) == ("my net", None, None)
    assert contract.source == Source("my net.onnx", sha256_of(path), "checkpoint")
    assert (contract.inputs, contract.outputs) == ((TensorSpec("x", (1, 4)),), (TensorSpec("y", (1, 4)),))
    assert (source.inputs, source.refused, source.exported) == ((path,), (), False)
    (feed,) = feeds_from_npz(source.feeds)
    assert feed["x"].shape == (1, 4)


def test_foreign_onnx_does_not_count_weights_as_inputs(tmp_path: Path, steps: Steps) -> None:
    nodes = [helper.make_node("Mul", ["x", "w"], ["y"])]
    made = proto(nodes, [tensor("x", [4]), tensor("w", [4])], [tensor("y", [4])], [constant("w", [1.0] * 4)])
    assert [spec.name for spec in opened(written(tmp_path, made), steps).contract.inputs] == ["x"]


def test_foreign_onnx_takes_the_sizes_that_are_given(tmp_path: Path, steps: Steps) -> None:
    path = written(tmp_path, negated(["N", "T"]))
    contract = opened(path, steps, shape=["x:2,3"]).contract
    assert (contract.inputs, contract.outputs) == ((TensorSpec("x", (2, 3)),), (TensorSpec("y", (2, 3)),))
    assert opened(path, fresh_steps(), shape=["x:4,5"]).contract.inputs == (TensorSpec("x", (4, 5)),)


def test_foreign_onnx_is_refused_by_input_when_a_size_is_missing(tmp_path: Path, steps: Steps) -> None:
    path = written(tmp_path, negated([1, "frames"]))
    with pytest.raises(Refusal, match=r"net\.onnx: the input x is \[1, frames\].*--shape x:1,frames"):
        opened(path, steps)


def test_foreign_onnx_is_judged_on_the_inputs_given(tmp_path: Path, steps: Steps) -> None:
    path = written(tmp_path, negated(["N", "T"]))
    np.savez(tmp_path / "real.npz", x=row(5, 6, 7))
    source = opened(path, steps, inputs=str(tmp_path / "real.npz"))
    assert source.contract.inputs == (TensorSpec("x", (1, 3)),)
    (feed,) = feeds_from_npz(source.feeds)
    np.testing.assert_array_equal(feed["x"], row(5, 6, 7))
    assert source.notes == ()
    np.savez(tmp_path / "real.npz", x=row(8, 9, 7))
    (feed,) = feeds_from_npz(opened(path, fresh_steps(), inputs=str(tmp_path / "real.npz")).feeds)
    np.testing.assert_array_equal(feed["x"], row(8, 9, 7))


def open_value(name: str) -> onnx.ValueInfoProto:
    """A float input or output that states no shape."""
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, None)


UNUSED = {
    "truth values": (TensorProto.BOOL, [3]),
    "open sizes": (TensorProto.INT64, ["N", "anything"]),
    "texts": (TensorProto.STRING, [1]),
    "no shape": (TensorProto.INT32, None),
}


@pytest.mark.parametrize(("kind", "shape"), UNUSED.values(), ids=UNUSED)
@pytest.mark.parametrize("given", [False, True])
def test_input_that_no_output_depends_on_needs_neither_sizes_nor_values(
    given: bool, kind: int, shape: list[int | str] | None, tmp_path: Path, steps: Steps
) -> None:
    made = negated([1, 4])
    made.graph.input.append(helper.make_tensor_value_info("u", kind, shape))
    made.graph.node.append(helper.make_node("Identity", ["u"], ["read by nobody"], "dead"))
    np.savez(tmp_path / "real.npz", x=row(5, 6, 7, 8))
    source = opened(written(tmp_path, made), steps, inputs=str(tmp_path / "real.npz") if given else None)
    assert [spec.name for spec in source.contract.inputs] == ["x"]
    assert source.notes[0] == "No output depends on u: dropped from the engine's inputs."
    assert [verdict for verdict in source.prove().verdicts if verdict.status is not Status.PASSED] == []


def test_input_that_only_an_unchosen_branch_reads_needs_no_values(tmp_path: Path, steps: Steps) -> None:
    cast: dict[str, Any] = {"to": TensorProto.FLOAT}
    branches = {
        f"{which}_branch": helper.make_graph(
            [helper.make_node(op, [given], [f"{which}_y"], f"{which}_node", **attributes)],
            which,
            [],
            [open_value(f"{which}_y")],
        )
        for which, op, given, attributes in (("then", "Neg", "x", {}), ("else", "Cast", "u", cast))
    }
    inputs = [tensor("x", [1, 4]), tensor("u", [1, 4], TensorProto.BOOL)]
    nodes = [helper.make_node("If", ["taken"], ["y"], "if", **branches)]
    taken = numpy_helper.from_array(np.array(True), "taken")
    source = opened(written(tmp_path, proto(nodes, inputs, [open_value("y")], [taken])), steps)
    assert [spec.name for spec in source.contract.inputs] == ["x"]
    assert [verdict for verdict in source.prove().verdicts if verdict.status is not Status.PASSED] == []


def test_input_that_no_output_depends_on_needs_values_when_it_is_kept(tmp_path: Path, steps: Steps) -> None:
    made = negated([1, 4])
    made.graph.input.append(tensor("u", [3], TensorProto.BOOL))
    with pytest.raises(UserInput, match="the input u is bool"):
        _ = opened(written(tmp_path, made), steps, no_pass=["normalise_unused_inputs"]).feeds


def test_foreign_onnx_takes_a_shape_when_the_file_states_none(tmp_path: Path, steps: Steps) -> None:
    made = proto([helper.make_node("Neg", ["x"], ["y"], "neg")], [open_value("x")], [open_value("y")])
    source = opened(written(tmp_path, made), steps, shape=["x:2,3"])
    assert source.contract.inputs == (TensorSpec("x", (2, 3)),)
    assert [verdict for verdict in source.prove().verdicts if verdict.status is not Status.PASSED] == []


def test_foreign_onnx_says_when_it_is_judged_on_stand_ins(tmp_path: Path, steps: Steps) -> None:
    (note,) = opened(written(tmp_path, scale_proto(2.0)), steps).notes
    assert "stand-ins" in note
    assert "--inputs" in note


def test_finished_graph_is_proven_against_the_file(tmp_path: Path, steps: Steps) -> None:
    proof = opened(written(tmp_path, negated(["N", "T"])), steps, shape=["x:2,3"]).prove()
    assert {verdict.status for verdict in proof.verdicts} == {Status.PASSED}
    assert proof.verdicts[-1].gate == ORIGINAL_GATE
    hits = {record.name: record.hits for record in proof.passes}
    assert (hits["normalise_static_inputs"], hits["normalise_header"]) == (1, 1)


def lying(factor: float) -> Pass:
    """A pass that gives y = factor * x, whatever it was given, and calls it exact."""
    return Pass(Declaration("fold_x", "", Exact("")), lambda _: Rewritten(ir.from_proto(scale_proto(factor)), 1))


@pytest.mark.parametrize(("factor", "failed"), [(2.0, set()), (2.001, {"pass.fold_x", ORIGINAL_GATE})])
def test_finished_graph_fails_when_it_computes_something_else(
    tmp_path: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch, factor: float, failed: set[str]
) -> None:
    monkeypatch.setattr(module, "preflight", lambda _: (lying(factor),))
    proof = opened(written(tmp_path, scale_proto(2.0)), steps).prove()
    assert {verdict.gate for verdict in proof.verdicts if verdict.status is Status.FAILED} == failed


def test_original_that_does_not_run_fails_the_comparison_that_is_owed(tmp_path: Path, steps: Steps) -> None:
    node = helper.make_node("Frobnicate", ["x"], ["y"], domain="com.example")
    made = proto([node], [tensor("x", [1])], [tensor("y", [1])])
    made.opset_import.append(helper.make_opsetid("com.example", 1))
    (verdict,) = opened(written(tmp_path, made), steps).prove().verdicts
    assert (verdict.gate, verdict.status) == (ORIGINAL_GATE, Status.FAILED)
    assert "net.onnx: onnxruntime cannot load it" in verdict.detail


@pytest.mark.parametrize("given", [False, True])
def test_original_that_gives_zeros_points_to_real_inputs_when_it_was_fed_stand_ins(
    tmp_path: Path, steps: Steps, given: bool
) -> None:
    path = written(tmp_path, scale_proto(0.0))
    np.savez(tmp_path / "in.npz", x=np.ones((1, 4), np.float32))
    options = {"inputs": str(tmp_path / "in.npz")} if given else {}
    verdict = opened(path, steps, **options).prove().verdicts[-1]
    assert (verdict.gate, verdict.status) == (ORIGINAL_GATE, Status.FAILED)
    assert "the reference is all zero" in verdict.detail
    assert ("--inputs FILE.npz" in verdict.detail) is not given


def test_original_without_a_kernel_fails_with_a_remedy(tmp_path: Path, steps: Steps) -> None:
    node = helper.make_node("Conv", ["x", "w"], ["y"], "conv")
    tensors = [tensor("x", [1, 1, 4], TensorProto.DOUBLE)], [tensor("y", [1, 1, 4], TensorProto.DOUBLE)]
    made = proto([node], *tensors, [constant("w", np.ones((1, 1, 1)), np.float64)])
    (verdict,) = opened(written(tmp_path, made), steps).prove().verdicts
    assert (verdict.gate, verdict.status) == (ORIGINAL_GATE, Status.FAILED)
    assert "Could not find an implementation for Conv(11)" in verdict.detail
    assert "export the model in float32" in verdict.detail


def test_place_that_a_pass_refused_is_handed_on(tmp_path: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = Refused("node 'n'", "a constant bound", "a number", "an input")
    bound = Pass(Declaration("rewrite_x", "", Exact("")), lambda given: Rewritten(given, 0, (refused,)))
    monkeypatch.setattr(module, "preflight", lambda _: (bound,))
    (verdict,) = opened(written(tmp_path, scale_proto(2.0)), steps).refused
    assert (verdict.gate, verdict.status) == ("pass.rewrite_x", Status.FAILED)
    assert "node 'n'" in verdict.detail


def test_pass_that_is_left_out_is_on_record(tmp_path: Path, steps: Steps) -> None:
    path = written(tmp_path, scale_proto(2.0))
    source = opened(path, steps, no_pass=["normalise_header"])
    assert source.contract.skipped == ("normalise_header",)
    assert onnx.load(source.graph).producer_name == ""
    assert "normalise_header" not in [record.name for record in source.prove().passes]
    assert onnx.load(opened(path, fresh_steps()).graph).producer_name == "rknn-tts"


def test_second_command_finds_what_the_first_made(tmp_path: Path, steps: Steps) -> None:
    path = written(tmp_path, scale_proto(2.0))
    first = opened(path, steps)
    proof, feeds = first.prove(), first.feeds
    again = fresh_steps()
    second = opened(path, again)
    assert (second.prove(), second.feeds, second.contract) == (proof, feeds, first.contract)
    assert set(again.reused) == {"preflight", "prove", "feeds"}


def test_graph_is_kept_with_its_external_data_inside(tmp_path: Path, steps: Steps) -> None:
    source = opened(external(tmp_path, 2.0), steps)
    assert source.graph.parent != tmp_path
    (tmp_path / "weights.bin").unlink()
    copied = onnx.load(source.graph)
    assert numpy_helper.to_array(copied.graph.initializer[0]).tolist() == [2.0]
    assert set(source.inputs) == {tmp_path / "net.onnx", tmp_path / "weights.bin"}


def test_file_is_another_one_when_only_its_external_data_changes(tmp_path: Path, steps: Steps) -> None:
    first = opened(external(tmp_path, 2.0), steps)
    before = (tmp_path / "net.onnx").read_bytes()
    second = opened(external(tmp_path, 3.0), fresh_steps())
    assert (tmp_path / "net.onnx").read_bytes() == before
    assert sha256_of(first.graph) != sha256_of(second.graph)
    assert numpy_helper.to_array(onnx.load(second.graph).graph.initializer[0]).tolist() == [3.0]


def test_file_is_refused_when_one_message_cannot_hold_it(
    tmp_path: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finished_graph, "MESSAGE_LIMIT_BYTES", 4)
    with pytest.raises(Refusal, match=r"net\.onnx: has 0\.0 GB of weights"):
        opened(external(tmp_path, 2.0), steps)


def test_file_is_refused_when_one_message_cannot_hold_what_its_nodes_hold(
    tmp_path: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = [
        helper.make_node("Constant", [], ["k"], "constant", value=constant("value", [1, 2, 3, 4])),
        helper.make_node("Mul", ["x", "k"], ["y"], "times"),
    ]
    path = written(tmp_path, proto(nodes, [tensor("x", [1, 4])], [tensor("y", [1, 4])]))
    monkeypatch.setattr(finished_graph, "MESSAGE_LIMIT_BYTES", 4)
    with pytest.raises(Refusal, match=r"net\.onnx: has 0\.0 GB of weights"):
        opened(path, steps)


def test_file_that_is_changed_while_it_is_read_is_refused_and_not_kept(
    tmp_path: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = external(tmp_path, 2.0)

    def changing(asked: Path) -> ir.Model:
        model = read_onnx(asked)
        external(tmp_path, 3.0)
        return model

    monkeypatch.setattr(module, "read_onnx", changing)
    with pytest.raises(UserInput, match=r"net\.onnx: was changed while it was read"):
        opened(path, steps)
    monkeypatch.setattr(module, "read_onnx", read_onnx)
    source = opened(external(tmp_path, 2.0), steps)
    assert numpy_helper.to_array(onnx.load(source.graph).graph.initializer[0]).tolist() == [2.0]
    assert "preflight" not in steps.reused


def test_contract_states_a_size_that_nothing_gives_as_unknown(tmp_path: Path, steps: Steps) -> None:
    nodes = [helper.make_node("NonZero", ["x"], ["y"])]
    made = proto(nodes, [tensor("x", [4])], [tensor("y", [1, "n"], TensorProto.INT64)])
    assert opened(written(tmp_path, made), steps).contract.outputs == (TensorSpec("y", (1, -1), "int64"),)


def test_foreign_step_is_told_by_its_sizes(tmp_path: Path, steps: Steps) -> None:
    source = opened(written(tmp_path, small_step()), steps)
    assert (source.contract.family, source.contract.stage) == (None, None)
    assert source.contract.step == CodeStep(CODES, CHANNELS, None, KEPT, SIZE, 0, CODES)
    assert source.contract.cache == Cache(NUMEL, ())
    assert any(f"a step of {CODES} codes with a cache of {NUMEL} numbers" in note for note in source.notes)
    other = opened(written(tmp_path, scale_proto(2.0), "other.onnx"), steps)
    assert (other.contract.step, other.contract.cache) == (None, None)
