"""Files of an opset that onnxruntime does not read become engines, with the real toolkit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from contracts.errors import EXIT_DONE
from rknn_tts.cli import run as run_command
from tests.gates.small_graphs import constant, proto, tensor


@pytest.mark.parametrize(("opset", "ir_version"), [(24, 11), (25, 13)])
def test_file_of_a_new_opset_becomes_an_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opset: int, ir_version: int
) -> None:
    monkeypatch.chdir(tmp_path)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], "conv", pads=[1, 1]),
        helper.make_node("Swish", ["c"], ["a"], "swish"),
        helper.make_node("Transpose", ["a"], ["t"], "transpose", perm=[0, 2, 1]),
        helper.make_node("Reshape", ["t", "shape"], ["y"], "reshape"),
    ]
    weights = [
        constant("w", np.random.default_rng(1).standard_normal((8, 8, 3))),
        constant("shape", [1, 4, 32], np.int64),
    ]
    tensors = [tensor("x", [1, 8, 16])], [tensor("y", [1, 4, 32])]
    made = proto(nodes, *tensors, weights, opset=opset, ir_version=ir_version)
    Path("net.onnx").write_bytes(made.SerializeToString())
    assert run_command(["compile", "net.onnx", "--target", "rk3588"]) == EXIT_DONE
    manifest = json.loads(Path("engines/rk3588/net.json").read_text(encoding="utf-8"))
    assert {verdict["status"] for verdict in manifest["verdicts"]} == {"passed"}
    assert {"fp32.original", "simulator"} <= {verdict["gate"] for verdict in manifest["verdicts"]}
    assert manifest["onnx"]["opset"] == 19
