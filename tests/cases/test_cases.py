"""Inputs that must work or be refused clearly, from the file to the engine, with the real toolkit."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from contracts.errors import EXIT_DONE, EXIT_FAILED, EXIT_REFUSED
from rknn_tts.carried import CARRIED_KEYS
from rknn_tts.cli import run as run_command
from tests.cases import graphs
from tests.gates.small_graphs import constant, tensor
from tests.onnx_runs import Array, run, snr_db

EQUAL_DB = 100.0
"""1e-5 relative."""


@dataclass(frozen=True)
class Works:
    """A graph that must become an engine, the options it needs, and inputs to compare on."""

    build: Callable[[], onnx.ModelProto]
    options: tuple[str, ...] = ()
    feed: Callable[[], dict[str, Array]] = field(default=lambda: normal(x=(1, 16, 64)))


def normal(**shapes: tuple[int, ...]) -> dict[str, Array]:
    rng = np.random.default_rng(3)
    return {name: np.asarray(rng.standard_normal(shape), np.float32) for name, shape in shapes.items()}


def tokens() -> dict[str, Array]:
    return {"tokens": np.random.default_rng(3).integers(0, 50, (1, 64))}


WORKS = {
    "stride_15": Works(lambda: graphs.strided(15, 30, 7), feed=lambda: normal(x=(1, 18, 1800))),
    "stride_16": Works(lambda: graphs.strided(16, 32, 8), feed=lambda: normal(x=(1, 18, 1800))),
    "clip_no_min": Works(lambda: graphs.clip(["e", "", "mx"], constant("mx", 100.0))),
    "clip_no_max": Works(lambda: graphs.clip(["e", "mn"], constant("mn", 0.5))),
    "clip_neither": Works(lambda: graphs.clip(["e"])),
    "clip_past_fp16": Works(lambda: graphs.clip(["e", "mn", "mx"], constant("mn", -3.4e38), constant("mx", 100.0))),
    "if_constant": Works(lambda: graphs.branches(constant("cond", True, np.bool_)), feed=lambda: normal(x=(1, 8, 32))),
    "symbolic": Works(graphs.symbolic, ("--shape", "tokens:1,64"), tokens),
    "ln_bare": Works(graphs.layer_norm, feed=lambda: normal(x=(1, 64, 192))),
    "ln_axis": Works(lambda: graphs.layer_norm(axis=-1), feed=lambda: normal(x=(1, 64, 192))),
    "ln_empty_outputs": Works(
        lambda: graphs.layer_norm(("y", "", ""), axis=-1, epsilon=1e-5), feed=lambda: normal(x=(1, 64, 192))
    ),
    "conv_transpose_same": Works(graphs.conv_transpose_same),
    "scalar_input": Works(
        graphs.scalar_input, feed=lambda: {**normal(x=(1, 16, 64)), "speed": np.array(1.25, np.float32)}
    ),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(name: str, made: onnx.ModelProto) -> str:
    Path(f"{name}.onnx").write_bytes(made.SerializeToString())
    return f"{name}.onnx"


def compiled(name: str, *options: str) -> dict[str, Any]:
    """The manifest of `name`.onnx, compiled for rk3588; nothing in it failed."""
    assert run_command(["compile", f"{name}.onnx", "--target", "rk3588", *options]) == EXIT_DONE
    manifest: dict[str, Any] = json.loads(Path(f"engines/rk3588/{name}.json").read_text(encoding="utf-8"))
    assert {verdict["status"] for verdict in manifest["verdicts"]} == {"passed"}
    assert {"fp32.original", "simulator"} <= {verdict["gate"] for verdict in manifest["verdicts"]}
    assert manifest["log"]["regtask"] == []
    assert Path(f"engines/rk3588/{name}.rknn").stat().st_size == manifest["engine"]["bytes"]
    return manifest


def handed(name: str) -> onnx.ModelProto:
    """The graph that the toolkit was given, as its twin has it, without what the twin carries."""
    twin = onnx.load(f"engines/rk3588/{name}.onnx")
    kept = [entry for entry in twin.metadata_props if entry.key not in CARRIED_KEYS]
    del twin.metadata_props[:]
    twin.metadata_props.extend(kept)
    onnx.checker.check_model(twin, full_check=True)
    return twin


def as_inputs_of(model: onnx.ModelProto, feed: dict[str, Array]) -> dict[str, Array]:
    """`feed` in the shapes of the inputs of `model`."""
    sizes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in model.graph.input}
    return {name: array.reshape(sizes[name]) for name, array in feed.items()}


@pytest.mark.parametrize("name", WORKS)
def test_case_becomes_an_engine_of_an_equal_graph(folder: Path, name: str) -> None:
    case = WORKS[name]
    original, feed = case.build(), case.feed()
    written(name, original)
    compiled(name, *case.options)
    twin = handed(name)
    wanted, got = run(original, feed), run(twin, as_inputs_of(twin, feed))
    assert snr_db(wanted["y"], got["y"]) >= EQUAL_DB
    for node in twin.graph.node:
        if node.op_type == "Clip":
            assert_real_bounds(twin, node)
        assert node.op_type not in ("If", "Loop")


def assert_real_bounds(model: onnx.ModelProto, node: onnx.NodeProto) -> None:
    """Both bounds of a Clip are scalars within fp16."""
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    low, high = (weights[name] for name in node.input[1:3])
    assert (low.shape, high.shape) == ((), ())
    assert -65504 <= low <= high <= 65504


def test_chosen_branch_keeps_what_it_reads_from_outside(folder: Path) -> None:
    model = graphs.branches(constant("cond", True, np.bool_))
    written("if_constant", model)
    compiled("if_constant")
    # The 0.5 that the branch multiplies by stands in the weights before it by now.
    given, got = (
        next(numpy_helper.to_array(t) for t in graph.initializer if len(t.dims) == 3)
        for graph in (model.graph, handed("if_constant").graph)
    )
    np.testing.assert_array_equal(got, np.float32(0.5) * given)


def test_noise_becomes_an_input_and_two_runs_on_one_draw_are_equal(folder: Path) -> None:
    written("noise", graphs.noise(mean=0.25, scale=2.0))
    manifest = compiled("noise")
    assert manifest["inputs"] == [
        {"name": "x", "shape": [1, 16, 64], "dtype": "float32"},
        {"name": "n", "shape": [1, 16, 64], "dtype": "float32"},
    ]
    assert manifest["noise"] == [{"input": "n", "distribution": "normal", "a": 0.25, "b": 2.0}]
    twin, feed = handed("noise"), normal(x=(1, 16, 64), n=(1, 16, 64))
    first, second = run(twin, feed)["y"], run(twin, feed)["y"]
    np.testing.assert_array_equal(first, second)
    # By hand: the same convolution on x + 0.667 n.
    plain = graphs.model(
        [graphs.conv("x", "conv", "y")],
        [tensor("x", [1, 16, 64])],
        [tensor("y", [1, 16, 64])],
        [graphs.weight("w", 16, 16, 3)],
    )
    mixed = (feed["x"] + np.float32(0.667) * feed["n"]).astype(np.float32)
    assert snr_db(run(plain, {"x": mixed})["y"], first) >= EQUAL_DB


def test_external_data_is_found_from_any_working_directory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "models").mkdir()
    (folder / "elsewhere").mkdir()
    graphs.external(folder / "models" / "external_present.onnx", "external_present.data")
    monkeypatch.chdir(folder / "elsewhere")
    code = run_command(["compile", "../models/external_present.onnx", "--target", "rk3588"])
    assert code == EXIT_DONE
    feed = normal(x=(1, 64, 64))
    assert snr_db(run(graphs.plain(), feed)["y"], run(handed("external_present"), feed)["y"]) == float("inf")


def _missing(path: Path) -> None:
    graphs.external(path, "external_missing.data")
    (path.parent / "external_missing.data").unlink()


REFUSED: dict[str, tuple[Callable[[Path], object], int, tuple[str, ...]]] = {
    "if_dynamic": (
        lambda path: path.write_bytes(graphs.branches(None).SerializeToString()),
        EXIT_FAILED,
        ("If", "node 'if0'", "input 'cond'"),
    ),
    "symbolic": (
        lambda path: path.write_bytes(graphs.symbolic().SerializeToString()),
        EXIT_REFUSED,
        ("input tokens", "N", "T", "--shape tokens:"),
    ),
    "atan": (
        lambda path: path.write_bytes(graphs.atan().SerializeToString()),
        EXIT_FAILED,
        ("Atan", "node 'at'", "no NPU or CPU kernel on the board"),
    ),
    "external_missing": (_missing, EXIT_REFUSED, ("external_missing.data", "missing")),
    "external_escape": (
        lambda path: graphs.external(path, "../outside.data"),
        EXIT_REFUSED,
        ("../outside.data", "outside the model's folder"),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_case_is_refused_in_a_sentence_and_an_earlier_engine_stays(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    build, code, words = REFUSED[name]
    (folder / "inner").mkdir()
    monkeypatch.chdir(folder / "inner")
    build(Path(f"{name}.onnx").resolve())
    engine = Path(f"engines/rk3588/{name}.rknn")
    engine.parent.mkdir(parents=True)
    engine.write_bytes(b"an earlier engine")
    assert run_command(["compile", f"{name}.onnx", "--target", "rk3588"]) == code
    told = capsys.readouterr()
    error = next(line for line in told.err.splitlines() if line.startswith("error: "))
    for word in words:
        assert word in error
    assert "Traceback" not in told.err + told.out
    assert engine.read_bytes() == b"an earlier engine"
    assert [path.name for path in engine.parent.iterdir()] == [engine.name]
