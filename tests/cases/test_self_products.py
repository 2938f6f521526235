"""Products of a tensor with itself become engines, with the real toolkit, which dies of them as they are."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from onnx import helper

from contracts.errors import EXIT_DONE
from rknn_tts.cli import run as run_command
from tests.gates.small_graphs import proto, tensor

TURNED = helper.make_node("Transpose", ["x"], ["t"], "turn", perm=[0, 2, 1])


def gram() -> onnx.ModelProto:
    """y = x x^T."""
    nodes = [TURNED, helper.make_node("MatMul", ["x", "t"], ["y"], "product")]
    return proto(nodes, [tensor("x", [1, 8, 16])], [tensor("y", [1, 8, 8])])


def attention(query: str) -> onnx.ModelProto:
    """An attention whose keys and values are x; so is the query, or it is an input of its own."""
    nodes = [
        TURNED,
        helper.make_node("MatMul", [query, "t"], ["scores"], "scores"),
        helper.make_node("Softmax", ["scores"], ["weights"], "softmax", axis=-1),
        helper.make_node("MatMul", ["weights", "x"], ["y"], "mix"),
    ]
    return proto(nodes, [tensor(name, [1, 8, 16]) for name in sorted({"x", query})], [tensor("y", [1, 8, 16])])


@pytest.mark.parametrize(
    ("made", "hits"), [(gram(), 1), (attention("q"), 1), (attention("x"), 2)], ids=["gram", "memory", "all one"]
)
def test_product_of_a_tensor_with_itself_becomes_an_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: onnx.ModelProto, hits: int
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.onnx").write_bytes(made.SerializeToString())
    assert run_command(["compile", "net.onnx", "--target", "rk3588"]) == EXIT_DONE
    manifest = json.loads(Path("engines/rk3588/net.json").read_text(encoding="utf-8"))
    assert {verdict["status"] for verdict in manifest["verdicts"]} == {"passed"}
    assert {entry["name"]: entry["hits"] for entry in manifest["passes"]}["rewrite_self_products"] == hits
