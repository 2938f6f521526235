"""The real toolkit makes engines of 8 bits, by the calibration set that it is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from contracts.quantisation import Quantisation
from engine.build import BuildResult, build_engine
from engine.request import BuildRequest
from logs.layer_table import parse_layer_table
from tests.engine.graphs import Array, random, reference, save_graph, snr_db

Windows = Sequence[Mapping[str, Array]]

STEPS = 255
"""From the least number of 8 bits to the largest."""

ABSENT = 20.0
"""dB: a scale of another input, or axes taken in another order, leave less."""


def scaled(path: Path) -> Path:
    """y = b + w * a over images that are square in nothing: b is ten times as large as what comes of a."""
    nodes = [
        helper.make_node("Conv", ["a", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Concat", ["b", "c"], ["y"], axis=1),
    ]
    return save_graph(
        path, nodes, {"b": (1, 2, 8, 12), "a": (1, 3, 8, 12)}, {"y": (1, 6, 8, 12)}, {"w": random(4, 3, 3, 3)}
    )


def passed_on(path: Path) -> Path:
    """y = x, by a convolution."""
    node = helper.make_node("Conv", ["x", "w"], ["y"])
    weight = np.eye(4, dtype=np.float32)[:, :, None, None]
    return save_graph(path, [node], {"x": (1, 4, 1, 1)}, {"y": (1, 4, 1, 1)}, {"w": weight})


@pytest.fixture
def quantised(converter_python: Path, tmp_path: Path) -> Callable[..., BuildResult]:
    def build(onnx: Path, calibration: Windows, feeds: Windows, name: str = "one", **how: Any) -> BuildResult:
        return build_engine(
            BuildRequest(
                onnx=onnx,
                target="rk3588",
                toolkit="2.3.2",
                converter_python=converter_python,
                result_folder=tmp_path / name / "result",
                log=tmp_path / name / "build.log",
                feeds=feeds,
                timeout_s=120.0,
                quantisation=Quantisation(**how),
                calibration=calibration,
            )
        )

    return build


def windows(count: int, seed: int) -> list[dict[str, Array]]:
    """For `scaled`; a comes first."""
    return [
        {"a": random(1, 3, 8, 12, seed=seed + i), "b": random(1, 2, 8, 12, seed=seed + 100 + i) * np.float32(10)}
        for i in range(count)
    ]


@pytest.mark.parametrize(
    "how", [{}, {"algorithm": "mmse", "method": "layer"}, {"algorithm": "kl_divergence"}], ids=lambda how: str(how)
)
def test_engine_of_8_bits_is_near_the_graph_and_not_too_near(
    how: dict[str, str], quantised: Callable[..., BuildResult], tmp_path: Path
) -> None:
    onnx, feeds = scaled(tmp_path / "graph.onnx"), windows(2, 1000)
    result = quantised(onnx, windows(8, 0), feeds, **how)
    for feed, simulated in zip(feeds, result.simulated, strict=True):
        wanted = reference(onnx, feed)["y"]
        assert simulated["y"].shape == wanted.shape
        assert ABSENT < snr_db(simulated["y"], wanted) < 60.0  # fp16 has 70
    table = parse_layer_table(result.lines.read_text(encoding="utf-8").split("\n"))
    assert table is not None
    assert {layer.dtype for layer in table.layers if layer.op == "Conv"} == {"INT8"}


def test_engine_saturates_where_its_calibration_ends(quantised: Callable[..., BuildResult], tmp_path: Path) -> None:
    ends = np.array([1.0, -1.0, 0.5, -0.25], np.float32).reshape(1, 4, 1, 1)
    beyond, within = ends * np.float32(5), ends * np.float32(0.5)
    onnx = passed_on(tmp_path / "graph.onnx")
    result = quantised(onnx, [{"x": ends}, {"x": -ends}], [{"x": beyond}, {"x": within}])
    step = 2.0 / STEPS
    cut, kept = (window["y"].ravel() for window in result.simulated)
    assert np.abs(cut - np.clip(beyond.ravel(), -1, 1)).max() <= step
    assert np.abs(kept - within.ravel()).max() <= step


def test_engine_of_8_bits_is_the_same_when_built_twice(quantised: Callable[..., BuildResult], tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    results = [
        quantised(scaled(tmp_path / folder / "graph.onnx"), windows(4, 0), (), name)
        for folder, name in ((".", "one"), ("elsewhere", "two"))
    ]
    assert results[0].engine.read_bytes() == results[1].engine.read_bytes()
    others = quantised(scaled(tmp_path / "graph.onnx"), windows(4, 50), (), "three")
    assert others.engine_sha256 != results[0].engine_sha256
