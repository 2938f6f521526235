"""CosyVoice3's flow on a ladder: the rung, the padding and its mask, and what the widest does not hold."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import helper
from rknn_tts_runtime.aperture_budget import MIB, ApertureBudget
from rknn_tts_runtime.backends.twins import TwinBackend
from rknn_tts_runtime.faults import BadInput, Mismatch
from rknn_tts_runtime.plans.plan import Plan
from rknn_tts_runtime.plans.reading import read_plans
from rknn_tts_runtime.speaking.flow import open_flow
from rknn_tts_runtime.speaking.stopwatch import Stopwatch

from tests.gates.small_graphs import constant, proto, tensor
from tests.runtime.fake_backends import FakeBackend

Floats = NDArray[np.float32]
MEL = 4


def shapes_of(frames: int) -> dict[str, list[int]]:
    by_frame = [2, MEL, frames]
    return {"x": by_frame, "mask": [2, 1, frames], "mu": by_frame, "t": [2], "spks": [2, MEL], "cond": by_frame}


def written_flow(folder: Path, frames: int, **keys: Any) -> None:
    """A twin and manifest: (x + t spks + mean of (mu + cond) over the frames that the mask keeps), frame by frame."""
    shapes = shapes_of(frames)
    nodes = [
        helper.make_node("Add", ["mu", "cond"], ["told"]),
        helper.make_node("Mul", ["told", "mask"], ["kept"]),
        helper.make_node("ReduceSum", ["kept", "last"], ["sum"], keepdims=1),
        helper.make_node("ReduceSum", ["mask", "last"], ["count"], keepdims=1),
        helper.make_node("Div", ["sum", "count"], ["mean"]),
        helper.make_node("Reshape", ["t", "column"], ["times"]),
        helper.make_node("Mul", ["times", "spks"], ["timed"]),
        helper.make_node("Unsqueeze", ["timed", "last"], ["everywhere"]),
        helper.make_node("Add", ["x", "mean"], ["moved"]),
        helper.make_node("Add", ["moved", "everywhere"], ["estimator_out"]),
    ]
    constants = [constant("last", [2], np.int64), constant("column", [2, 1], np.int64)]
    inputs = [tensor(name, shape) for name, shape in shapes.items()]
    twin = proto(nodes, inputs, [tensor("estimator_out", shapes["x"])], constants).SerializeToString()
    stem = f"s{frames}"
    (folder / f"{stem}.onnx").write_bytes(twin)
    (folder / f"{stem}.rknn").write_bytes(b"")
    manifest = {
        "schema": "rknn-tts/engine/1",
        "family": "cosyvoice3",
        "stage": "flow",
        "role": stem,
        "target": "rk3588",
        "toolkit": {"version": "2.3.2"},
        "source": {"name": "flow.pt", "kind": "checkpoint", "sha256": "a" * 64},
        "onnx": {"file": f"{stem}.onnx", "sha256": hashlib.sha256(twin).hexdigest()},
        "engine": {"file": f"{stem}.rknn", "sha256": "0" * 64, "bytes": 1},
        "inputs": [{"name": name, "shape": shape, "dtype": "float32"} for name, shape in shapes.items()],
        "outputs": [{"name": "estimator_out", "shape": shapes["x"], "dtype": "float32"}],
        "aperture": {"context_bytes": frames * MIB, "largest_mapping_bytes": frames * MIB},
        **keys,
    }
    (folder / f"{stem}.json").write_text(json.dumps(manifest), encoding="utf-8")


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    folder = tmp_path_factory.mktemp("flow")
    for frames in (8, 12, 20):
        written_flow(folder, frames)
    return plan_of(folder, "s20.rknn,s8.rknn,s12.rknn")


def plan_of(folder: Path, ladder: str) -> Plan:
    path = folder / "plan.json"
    value = {"flow": {"impl": "rknn", "artifacts": {"main": ladder}}}
    path.write_text(json.dumps({"cosyvoice3.exec_plan": value}), encoding="utf-8")
    return read_plans(path)["cosyvoice3"]


def drawn(frames: int) -> dict[str, Floats]:
    draw = np.random.default_rng(frames)
    return {
        name: draw.standard_normal(shape).astype(np.float32)
        for name, shape in shapes_of(frames).items()
        if name != "mask"
    }


@pytest.mark.parametrize("frames", [1, 7, 8, 9, 12, 20])
def test_a_mel_of_any_length_is_what_its_frames_alone_give(plan: Plan, frames: int) -> None:
    given = drawn(frames)
    velocity = open_flow(plan, TwinBackend(threads=1)).velocity(**given, stopwatch=Stopwatch())
    mean = (given["mu"] + given["cond"]).mean(axis=-1, keepdims=True)
    expected = given["x"] + mean + (given["t"][:, None] * given["spks"])[..., None]
    assert velocity is not None
    np.testing.assert_allclose(velocity, expected, atol=1e-5)


@pytest.mark.parametrize(("frames", "stem"), [(1, "s8"), (8, "s8"), (9, "s12"), (13, "s20")])
def test_the_shortest_engine_that_holds_a_mel_is_loaded_alone(plan: Plan, frames: int, stem: str) -> None:
    backend = FakeBackend()
    flow = open_flow(plan, backend)
    flow.velocity(**drawn(frames), stopwatch=Stopwatch())
    assert backend.events == [f"open {stem}"]
    flow.close()
    assert backend.events == [f"open {stem}", f"close {stem}"]


def test_what_stands_behind_a_mel_is_zero_and_masked(plan: Plan) -> None:
    backend = FakeBackend()
    open_flow(plan, backend).velocity(**drawn(9), stopwatch=Stopwatch())
    feed = backend.engines["s12"].feeds[0]
    assert feed["mask"].tolist() == [[[1.0] * 9 + [0.0] * 3]] * 2
    assert not any(feed[name][..., 9:].any() for name in ("x", "mu", "cond"))


def test_a_mel_longer_than_the_longest_engine_is_the_hosts(plan: Plan) -> None:
    backend = FakeBackend()
    flow = open_flow(plan, backend)
    assert flow.longest == 20
    assert flow.velocity(**drawn(21), stopwatch=Stopwatch()) is None
    assert backend.events == []


def test_a_solvers_steps_run_on_one_engine_that_is_loaded_once(plan: Plan) -> None:
    backend, watch = FakeBackend(), Stopwatch()
    flow = open_flow(plan, backend)
    for _ in range(10):
        flow.velocity(**drawn(9), stopwatch=watch)
    assert backend.events == ["open s12"]
    assert watch.stages["flow"].runs == 10


def test_engines_that_do_not_fit_together_take_turns(plan: Plan) -> None:
    backend, budget = FakeBackend(), ApertureBudget(25 * MIB)
    flow = open_flow(plan, backend, budget)
    for frames in (8, 12, 20):
        flow.velocity(**drawn(frames), stopwatch=Stopwatch())
    assert backend.events == ["open s8", "open s12", "close s8", "close s12", "open s20"]
    assert budget.taken_bytes == 20 * MIB


def test_arrays_of_other_lengths_are_refused(plan: Plan) -> None:
    given = drawn(9)
    given["mu"] = given["mu"][..., :8]
    with pytest.raises(BadInput, match=r"of one number of frames.*mu \[2, 4, 8\]"):
        open_flow(plan, FakeBackend()).velocity(**given, stopwatch=Stopwatch())


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"stage": "hift"}, r"s12\.rknn: is taken for the flow of cosyvoice3"),
        (
            {"source": {"name": "other.pt", "kind": "checkpoint", "sha256": "b" * 64}},
            r"s8\.rknn and .*s12\.rknn are of",
        ),
        ({"outputs": []}, r"s12\.rknn: takes .* and gives nothing"),
    ],
)
def test_engines_that_are_no_ladder_are_refused(tmp_path: Path, keys: dict[str, object], said: str) -> None:
    written_flow(tmp_path, 8)
    written_flow(tmp_path, 12, **keys)
    with pytest.raises(Mismatch, match=said):
        open_flow(plan_of(tmp_path, "s8.rknn,s12.rknn"), FakeBackend())


def test_a_plan_without_a_flow_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="places no flow of cosyvoice3"):
        open_flow(Plan(tmp_path / "plan.json", "cosyvoice3", {}, ()), FakeBackend())
