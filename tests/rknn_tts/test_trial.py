"""One turn of the researcher's loop, over small graphs and the real toolkit."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from contracts.contract import Contract, Source, TensorSpec
from contracts.errors import NotWritten, UserInput
from contracts.verdicts import Status
from rknn_tts import trial as module
from rknn_tts.carried import carry
from rknn_tts.request import Request
from rknn_tts.trial import BEFORE, Trial, try_passes
from surgery.declaration import Bounded, Declaration, Exact, Pass, Refused, Rewritten
from tests.gates.small_graphs import constant, proto, scale_proto, tensor
from tests.onnx_runs import run
from tests.rknn_tts.test_foreign_onnx import lying, written
from tests.rknn_tts.workshop import Heard


@pytest.fixture(autouse=True)
def in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def turn(path: Path, *passes: str, said: Heard | None = None, **options: Any) -> Trial:
    request = Request(command="surgery", model=str(path), passes=list(passes), **options)
    return try_passes(request, said or Heard())


def upsampler() -> onnx.ModelProto:
    """Two convolutions' sum by 3, LeakyRelu, and the mean of it upsampled: what a vocoder does between two stages."""
    rng = np.random.default_rng(0)
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], "a", kernel_shape=[3], pads=[1, 1]),
        helper.make_node("Conv", ["x", "w2"], ["b"], "b", kernel_shape=[3], pads=[1, 1]),
        helper.make_node("Add", ["a", "b"], ["s"], "sum"),
        helper.make_node("Div", ["s", "three"], ["m"], "mean"),
        helper.make_node("LeakyRelu", ["m"], ["l"], "act", alpha=0.1),
        helper.make_node("ConvTranspose", ["l", "w3"], ["y"], "up", kernel_shape=[4], strides=[2], pads=[1, 1]),
    ]
    shapes = {"w1": (32, 32, 3), "w2": (32, 32, 3), "w3": (32, 32, 4)}
    weights = [constant(name, rng.standard_normal(shape) / 8) for name, shape in shapes.items()]
    return proto(nodes, [tensor("x", [1, 32, 64])], [tensor("y", [1, 32, 128])], [*weights, constant("three", 3.0)])


def test_a_turn_tells_what_each_pass_hits_loses_and_costs(tmp_path: Path) -> None:
    path = written(tmp_path, upsampler())
    done = turn(path, "fold_scales", "rewrite_safe_softmax", cost="rk3588", check=True, save="out/rewritten.onnx")
    assert done.fault is None
    before, folded, idle = done.tried
    assert (before.name, before.hits, before.nodes, before.verdict) == (BEFORE, 0, 6, None)
    assert (folded.name, folded.hits, folded.nodes) == ("fold_scales", 1, 5)
    assert folded.verdict is not None
    assert (folded.verdict.status, folded.verdict.threshold) == (Status.PASSED, 120.0)
    assert (idle.hits, idle.verdict, idle.cost) == (0, None, folded.cost)
    assert before.cost is not None
    assert folded.cost is not None
    assert before.cost.layers is not None
    assert folded.cost.layers is not None
    # The Div is a pass over [1, 32, 64] in fp16, 4 KB, and one layer.
    assert before.cost.layers.count == folded.cost.layers.count + 1
    assert before.cost.layers.rw_kb > folded.cost.layers.rw_kb
    assert before.cost.layers.modelled_ms > folded.cost.layers.modelled_ms
    assert (done.target, done.saved) == ("rk3588", "out/rewritten.onnx")
    for cost in (before.cost, folded.cost):
        assert cost.layers is not None
        assert cost.layers.file is not None
        assert len(json.loads(Path(cost.layers.file).read_text())) == cost.layers.count
    x = np.random.default_rng(1).standard_normal((1, 32, 64)).astype(np.float32)
    saved = onnx.load("out/rewritten.onnx")
    assert [node.op_type for node in saved.graph.node] == ["Conv", "Conv", "Add", "LeakyRelu", "ConvTranspose"]
    np.testing.assert_allclose(run(saved, {"x": x})["y"], run(upsampler(), {"x": x})["y"], atol=1e-5)


def test_a_second_turn_builds_only_what_is_new(tmp_path: Path) -> None:
    path = written(tmp_path, upsampler())
    first = turn(path, "fold_scales", cost="rk3588")
    (log,) = (tmp_path / "build-logs").glob("*before.log")
    log.unlink()
    again = turn(path, "fold_scales", cost="rk3588")
    assert again.tried == first.tried
    assert not log.exists(), "the log of a build that was found again is not written"


def test_without_a_name_all_that_compile_runs_is_run_and_what_changed_is_told(tmp_path: Path) -> None:
    model = scale_proto(2.0)
    model.producer_name = "somebody"
    done = turn(written(tmp_path, model), check=True)
    assert [one.name for one in done.tried] == [BEFORE, "normalise_header"]
    assert done.target is None
    assert {one.cost for one in done.tried} == {None}


def exported(path: Path, feeds: list[dict[str, Any]]) -> Path:
    contract = Contract(
        "piper", "decoder", Source("voice.onnx", "ab" * 32, "checkpoint"), (TensorSpec("x", (1, 4)),), ()
    )
    path.write_bytes(carry(scale_proto(2.0).SerializeToString(), contract, feeds))
    return path


def test_an_exported_graph_is_judged_on_the_inputs_that_it_carries(tmp_path: Path) -> None:
    path = exported(tmp_path / "net.onnx", [{"x": np.full((1, 4), 3, np.float32)}])
    done = turn(path, "rewrite_safe_softmax", check=True, save="saved.onnx")
    assert done.judged_on == "the real inputs that the file carries (1 window)"
    assert not onnx.load("saved.onnx").metadata_props, "its verdicts are about another graph"
    assert done.notes
    assert "carries no contract" in done.notes[0]


def test_a_pass_that_changes_what_is_computed_is_a_fault_and_nothing_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "chosen_passes", lambda texts, target: (lying(3.0),))
    path = written(tmp_path, scale_proto(2.0))
    monkeypatch.setattr(module, "_was_saved", lambda place: True)
    Path("saved.onnx").write_bytes(b"earlier")
    done = turn(path, "whatever", check=True, save="saved.onnx")
    assert done.fault is not None
    assert done.fault.startswith("pass.")
    assert "failed" in done.fault
    assert done.saved is None
    assert Path("saved.onnx").read_bytes() == b"earlier"


def test_a_place_that_a_pass_refuses_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = Refused("node 'n'", "a constant bound", "a number", "an input")
    bound = Pass(Declaration("rewrite_x", "", Exact("")), lambda given: Rewritten(given, 0, (refused,)))
    monkeypatch.setattr(module, "chosen_passes", lambda texts, target: (bound,))
    done = turn(written(tmp_path, scale_proto(2.0)), "whatever")
    assert done.fault == "The pass rewrite_x refused node 'n': a constant bound: a number is needed, an input."


def test_a_bounded_pass_owes_its_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = lying(2.0001)
    bounded = replace(honest, declaration=replace(honest.declaration, exactness=Bounded(80.0, "measured")))
    monkeypatch.setattr(module, "chosen_passes", lambda texts, target: (bounded,))
    done = turn(written(tmp_path, scale_proto(2.0)), "whatever", check=True)
    assert done.fault is None
    verdict = done.tried[1].verdict
    assert verdict is not None
    assert (verdict.threshold, round(float(verdict.measured or 0))) == (80.0, 86)  # 20 log10(2 / 0.0001) = 86.02


def test_a_graph_that_does_not_build_is_a_finding_and_the_last_one_a_fault(tmp_path: Path) -> None:
    node = helper.make_node("Frobnicate", ["x"], ["y"], "frob", domain="com.example")
    model = proto([node], [tensor("x", [1, 4])], [tensor("y", [1, 4])])
    model.opset_import.append(helper.make_opsetid("com.example", 1))
    done = turn(written(tmp_path, model), "rewrite_safe_softmax", cost="rk3588")
    assert done.tried[0].cost is not None
    assert done.tried[0].cost.layers is None
    assert done.fault is not None
    assert done.fault.startswith("The last graph does not build: ")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"save": "net.onnx"}, "is an input of this command"),
        ({"save": "out.rknn"}, "a file ending in .onnx is expected"),
        ({"save": "."}, "a file ending in .onnx is expected"),
        ({"save": f"{'s' * 251}.onnx"}, "a file's name has at most 255 bytes; name another file."),
        ({"save": "other.onnx"}, "stands there already, and was not saved by this command; name another file."),
        ({"save": "pipe.onnx"}, "stands there already"),
        ({"save": "other.onnx/saved.onnx"}, "other.onnx: cannot be written (File exists); name another file."),
        ({"cost": "rk3599"}, "'rk3599' is unknown"),
        ({"shape": ["x:1,5"]}, "x"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_built(
    tmp_path: Path, options: dict[str, Any], says: str
) -> None:
    path = written(tmp_path, scale_proto(2.0))
    Path("other.onnx").write_bytes(scale_proto(5.0).SerializeToString())
    os.mkfifo("pipe.onnx")
    before = path.read_bytes()
    with pytest.raises(UserInput) as caught:
        turn(path, "rewrite_safe_softmax", **options)
    assert says in str(caught.value)
    assert path.read_bytes() == before
    assert not Path("build-logs").exists()


def test_a_graph_that_cannot_be_saved_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, scale_proto(2.0))

    def full(files: Any, remedy: str) -> None:
        raise NotWritten(f"{files[0][0]}: cannot be written (no space).")

    monkeypatch.setattr(module, "publish", full)
    with pytest.raises(NotWritten, match=r"saved\.onnx: cannot be written"):
        turn(path, "rewrite_safe_softmax", save="saved.onnx")


def test_what_a_turn_saved_the_next_one_may_replace(tmp_path: Path) -> None:
    path = written(tmp_path, scale_proto(2.0))
    turn(path, "rewrite_safe_softmax", save="saved.onnx")
    first = Path("saved.onnx").read_bytes()
    turn(path, "rewrite_safe_softmax", save="saved.onnx")
    assert Path("saved.onnx").read_bytes() == first


def test_a_name_that_leaves_no_room_for_those_of_the_layer_tables_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, scale_proto(2.0)).rename(tmp_path / f"{'n' * 230}.onnx")
    with pytest.raises(UserInput, match=r"its name is too long for those of its layer tables"):
        turn(path, "rewrite_safe_softmax", cost="rk3588")
    assert not Path("build-logs").exists()


def test_logs_that_cannot_be_written_are_told_with_what_helps(tmp_path: Path) -> None:
    path = written(tmp_path, scale_proto(2.0))
    Path("build-logs").write_text("a file")
    with pytest.raises(UserInput, match=r"build-logs: cannot be written .*; run the command in a folder that can be"):
        turn(path, "rewrite_safe_softmax", cost="rk3588")


def test_layer_tables_are_numbered_as_the_rows_are(tmp_path: Path) -> None:
    done = turn(written(tmp_path, upsampler()), cost="rk3588")
    for place, one in enumerate(done.tried):
        assert one.cost is not None
        assert one.cost.layers is not None
        assert str(one.cost.layers.file).startswith("build-logs/net-rk3588.")
        number, name = str(one.cost.layers.file).removeprefix("build-logs/net-rk3588.").split(".")[0].split("-", 1)
        assert done.tried[int(number)].name == name
        assert int(number) <= place


def test_a_size_that_the_carried_inputs_do_not_have_is_refused_as_theirs(tmp_path: Path) -> None:
    path = exported(tmp_path / "net.onnx", [{"x": np.full((1, 4), 3, np.float32)}])
    with pytest.raises(UserInput, match=r"--shape x:1,5: the real input that the file carries has the shape \[1, 4\]"):
        turn(path, "rewrite_safe_softmax", shape=["x:1,5"])


def test_a_graph_that_an_owed_pass_breaks_on_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(given: Any) -> Rewritten:
        raise KeyError("no such value")

    monkeypatch.setattr(module, "owed", lambda: (Pass(Declaration("rewrite_x", "", Exact("")), broken),))
    done = turn(written(tmp_path, scale_proto(2.0)), "rewrite_safe_softmax", cost="rk3588")
    assert done.fault is not None
    assert done.fault.startswith("The last graph does not build: The pass rewrite_x broke on this graph (KeyError")
