from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

from contracts.contract import Drift
from contracts.verdicts import Measurement, Status, Verdict
from rknn_tts.host_drift import fitted, measure_drift

DRIFT = Drift("durations", {"scales": (0.5, 2.0)}, {"noise": (1, 1, 8)}, 7.0, "durations are rounded up")
LOGS = np.array([[[0.1, 0.2, 0.9, 0.4]]], np.float32)
COUNT = np.array([3], np.int64)


def _host(folder: Path) -> Path:
    """Durations ceil(4 x scale) of the first `count` values, and a second output that needs what nobody gives."""
    one = helper.make_tensor("one", TensorProto.INT64, [1], [1])
    two = helper.make_tensor("two", TensorProto.INT64, [1], [2])
    zero = helper.make_tensor("zero", TensorProto.INT64, [1], [0])
    four = helper.make_tensor("four", TensorProto.FLOAT, [1], [4])
    nodes = [
        helper.make_node("Slice", ["stats", "zero", "count", "two"], ["kept"]),
        helper.make_node("Slice", ["scales", "one", "two"], ["scale"]),
        helper.make_node("Mul", ["kept", "scale"], ["scaled"]),
        helper.make_node("Mul", ["scaled", "four"], ["long"]),
        helper.make_node("Slice", ["noise", "zero", "count", "two"], ["drawn"]),
        helper.make_node("Sub", ["drawn", "drawn"], ["silent"]),
        helper.make_node("Add", ["long", "silent"], ["raw"]),
        helper.make_node("Ceil", ["raw"], ["durations"]),
        helper.make_node("Mul", ["durations", "nobody"], ["latent"]),
    ]
    inputs = [
        helper.make_tensor_value_info("stats", TensorProto.FLOAT, [1, 1, "T"]),
        helper.make_tensor_value_info("count", TensorProto.INT64, [1]),
        helper.make_tensor_value_info("scales", TensorProto.FLOAT, [2]),
        helper.make_tensor_value_info("noise", TensorProto.FLOAT, [1, 1, "K"]),
        helper.make_tensor_value_info("nobody", TensorProto.FLOAT, [1]),
    ]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("durations", "latent")]
    graph = helper.make_graph(nodes, "host", inputs, outputs, [one, two, zero, four])
    path = folder / "host.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8), path)
    return path


def _measured(folder: Path, simulated: NDArray[np.float32], drift: Drift = DRIFT) -> Verdict | Measurement:
    feed = {"count": COUNT}
    return measure_drift(drift, _host(folder), (feed,), ({"stats": LOGS},), ({"stats": simulated},))


def test_sum_of_durations_in_fp16_is_compared_with_that_in_fp32(tmp_path: Path) -> None:
    # ceil(8 x): 1, 2, 8 of the three tokens that count; the fourth is padding
    verdict = _measured(tmp_path, LOGS + np.array([[[0.0, 0.1, 0.0, 9.0]]], np.float32))
    assert isinstance(verdict, Verdict)
    assert verdict.measured == pytest.approx(100 * 1 / 11)
    assert verdict.status is Status.FAILED
    assert "11 to 11" in verdict.detail


def test_drift_within_the_bound_passes_and_engines_may_have_a_fourth_axis(tmp_path: Path) -> None:
    verdict = _measured(tmp_path, (LOGS + 0.01)[:, :, None, :])
    assert isinstance(verdict, Verdict)
    assert (verdict.status, verdict.measured) == (Status.PASSED, 0.0)


def test_missing_host_half_fails(tmp_path: Path) -> None:
    verdict = measure_drift(DRIFT, None, ({},), ({"stats": LOGS},), ({"stats": LOGS},), "host.onnx")
    assert isinstance(verdict, Verdict)
    assert verdict.status is Status.FAILED
    assert verdict.detail.startswith("host.onnx that was exported with this ONNX does not stand beside it")
    assert "put it there" in verdict.detail


def test_runs_that_did_not_come_back_fail(tmp_path: Path) -> None:
    verdict = measure_drift(DRIFT, _host(tmp_path), ({"count": COUNT},), ({"stats": LOGS},), ())
    assert isinstance(verdict, Verdict)
    assert verdict.status is Status.FAILED


@pytest.mark.parametrize(
    ("drift", "says"),
    [
        (Drift("frames", {}, {}, None, ""), "no output frames"),
        (Drift("durations", {}, {"noise": (1, 1, 8)}, None, ""), "input scales"),
        (Drift("durations", {"scales": (1.0,)}, {"noise": (1, 2, 2, 8)}, None, ""), "could not run"),
    ],
)
def test_drift_that_cannot_run_fails_by_name(tmp_path: Path, drift: Drift, says: str) -> None:
    verdict = _measured(tmp_path, LOGS, drift)
    assert isinstance(verdict, Verdict)
    assert verdict.status is Status.FAILED
    assert says in verdict.detail


def test_array_of_an_engine_loses_its_unit_axes_alone() -> None:
    three = ir.val("x", ir.DataType.FLOAT, ir.Shape([1, "C", "T"]))
    assert fitted(np.zeros((1, 384, 1, 128), np.float16), three, "x").shape == (1, 384, 128)
    assert fitted(np.zeros((1, 384, 1, 128), np.float16), three, "x").dtype == np.float32
    with pytest.raises(ValueError, match="takes 3 axes"):
        fitted(np.zeros((1, 384, 2, 128), np.float32), three, "x")
