"""What is compiled, ready made: y = 2 x as a foreign ONNX, and the build of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.contract import Contract, Source, TensorSpec
from contracts.verdicts import passed
from rknn_tts.build_step import Build
from rknn_tts.carried import feeds_to_npz
from rknn_tts.export_step import Proof
from rknn_tts.graph_at_hand import OnnxSource
from rknn_tts.places import engine_places
from rknn_tts.request import Request
from tests.gates.small_graphs import row, scale_proto
from tests.rknn_tts.stand_in_converter import write_converter

PROOF = Proof((), (passed("fp32.whole"),), ())


def doubling(folder: Path, factor: float = 2.0) -> OnnxSource:
    """y = 2 x, its graph in `folder`."""
    graph = folder / "model.onnx"
    graph.write_bytes(scale_proto(factor).SerializeToString())
    specs = ((TensorSpec("x", (1, 4)),), (TensorSpec("y", (1, 4)),))
    return OnnxSource(
        graph=graph,
        stem="net",
        contract=Contract(None, None, Source("net.onnx", "ab" * 32, "checkpoint"), *specs),
        host=None,
        make_feeds=lambda: feeds_to_npz([{"x": row(1, 2, 3, 4)}]),
        prove=lambda: PROOF,
        notes=("a note",),
        inputs=(),
    )


def build_of(source: OnnxSource, python: Path, output: str | None = None) -> Build:
    """The build of `source` for rk3588."""
    places = engine_places(source.contract, source.stem, "rk3588", output)
    return Build(Request(command="compile", target="rk3588"), "rk3588", source, (), places, python)


def build_with(script: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """The build of `doubling` by a converter that runs `script`, in a working directory and a cache of its own."""
    monkeypatch.setenv("RKNN_TTS_CACHE", str(folder / "cache"))
    (folder / "work").mkdir()
    monkeypatch.chdir(folder / "work")
    return build_of(doubling(folder), write_converter(folder / "converter", script))
