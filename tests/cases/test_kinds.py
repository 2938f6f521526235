"""Neighbours of the cases, from the file to the engine, with the real toolkit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from contracts.errors import EXIT_FAILED, EXIT_REFUSED
from rknn_tts.cli import run as run_command
from tests.cases import graphs, kinds
from tests.cases.test_cases import EQUAL_DB, as_inputs_of, compiled, folder, handed, normal, written
from tests.onnx_runs import Array, run, snr_db

__all__ = ["folder"]

QUANTISED_DB = 30.0
"""Rounding to 8 bits of one normal tensor lies about 40 dB down (52.9 - 20 log10 of its peak over its rms)."""

HALF_DB = 60.0
"""11 bits of a half float: one rounding lies 66 dB down."""


def padded() -> dict[str, Array]:
    feed = normal(q=(1, 32, 16), k=(1, 32, 16), v=(1, 32, 16))
    return {**feed, "mask": (np.arange(32) < 20).astype(np.float32).reshape(1, 1, 32)}


def save(path: str, feed: dict[str, Any]) -> None:
    np.savez(path, **feed)


def shaped() -> dict[str, Array]:
    return normal(x=(1, 8, 32))


WORKS: dict[str, tuple[Callable[[], onnx.ModelProto], Callable[[], dict[str, Array]], float]] = {
    "nested_branches": (kinds.nested_branches, shaped, EQUAL_DB),
    "gelu": (kinds.gelu, shaped, EQUAL_DB),
    "masked_attention": (kinds.masked_attention, padded, EQUAL_DB),
    "dynamic_quantised": (kinds.dynamic_quantised, lambda: normal(x=(1, 16, 32)), QUANTISED_DB),
    "half": (kinds.half, lambda: {"x": shaped()["x"].astype(np.float16)}, HALF_DB),
}


@pytest.mark.parametrize("name", WORKS)
def test_kind_becomes_an_engine_of_an_equal_graph(folder: Path, name: str) -> None:
    build, draw, least_db = WORKS[name]
    original, feed = build(), draw()
    save("real.npz", feed)
    written(name, original)
    compiled(name, "--inputs", "real.npz")
    twin = handed(name)
    given = {key: array.astype(np.float32) for key, array in as_inputs_of(twin, feed).items()}
    assert snr_db(run(original, feed)["y"].astype(np.float32), run(twin, given)["y"]) >= least_db


@pytest.mark.parametrize(
    ("build", "feed", "layer"),
    [
        (kinds.masked_attention, padded, "exSDPAttention"),
        (graphs.layer_norm, lambda: normal(x=(1, 64, 192)), "exNorm"),
    ],
)
def test_fusion_is_left_to_the_toolkit(
    folder: Path, build: Callable[[], onnx.ModelProto], feed: Callable[[], dict[str, Array]], layer: str
) -> None:
    written("fused", build())
    save("real.npz", feed())
    compiled("fused", "--inputs", "real.npz")
    layers = json.loads(Path("build-logs/fused-rk3588.layers.json").read_text(encoding="utf-8"))
    assert [entry["target"] for entry in layers if entry["op"] == layer] == ["NPU"]


def test_old_file_has_its_weights_and_an_unread_input_taken_from_its_inputs(folder: Path) -> None:
    written("old", kinds.listed_weights())
    manifest = compiled("old")
    assert [tensor["name"] for tensor in manifest["inputs"]] == ["x"]
    names = [node.name for node in handed("old").graph.node]
    assert len(set(names)) == len(names) == 2


def test_integers_that_index_nothing_need_real_inputs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written("lengths", kinds.lengths())
    assert run_command(["compile", "lengths.onnx", "--target", "rk3588"]) == EXIT_REFUSED
    error = capsys.readouterr().err
    assert "length" in error
    assert "--inputs FILE.npz" in error
    feed = {**shaped(), "length": np.array([20])}
    save("real.npz", feed)
    compiled("lengths", "--inputs", "real.npz")
    assert snr_db(run(kinds.lengths(), feed)["y"], run(handed("lengths"), feed)["y"]) >= EQUAL_DB


REFUSED: dict[str, tuple[Callable[[], onnx.ModelProto], int, tuple[str, ...]]] = {
    "loop": (kinds.loop, EXIT_FAILED, ("Loop", "node 'loop0'", "steps")),
    "data_sized": (kinds.data_sized, EXIT_FAILED, ("NonZero", "node 'found'")),
    "passed_through": (kinds.passed_through, EXIT_FAILED, ("output 'x'",)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_kind_is_refused_by_node_before_the_toolkit_starts(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    build, code, words = REFUSED[name]
    written(name, build())
    assert run_command(["compile", f"{name}.onnx", "--target", "rk3588"]) == code
    told = capsys.readouterr().err
    error = next(line for line in told.splitlines() if line.startswith("error: "))
    for word in words:
        assert word in error
    assert "building" not in told
    assert not list(Path().rglob("*.rknn"))


def test_pass_that_is_left_out_stands_in_the_manifest(folder: Path) -> None:
    written("gelu", kinds.gelu())
    code = run_command(["compile", "gelu.onnx", "--target", "rk3588", "--no-pass", "normalise_opset"])
    assert code == EXIT_FAILED  # the toolkit takes no opset 22
    written("half", kinds.half())
    manifest = compiled("half", "--no-pass", "normalise_float32", "--no-pass", "rewrite_strided_conv")
    assert manifest["skipped"] == ["normalise_float32", "rewrite_strided_conv"]
