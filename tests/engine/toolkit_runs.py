"""Builds a graph with the real toolkit, and simulates it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import onnx
import onnx_ir as ir

from engine.build import BuildResult, build_engine
from engine.request import BuildRequest
from tests.onnx_runs import Array, as_proto

TIMEOUT_S = 120.0
"""Such a graph takes two seconds."""


def built(
    model: onnx.ModelProto | ir.Model,
    feed: Mapping[str, Array],
    folder: Path,
    converter_python: Path,
    target: str = "rk3588",
) -> BuildResult:
    """`model` for `target`, run on `feed` in the simulator; all files in `folder`."""
    path = folder / "graph.onnx"
    path.write_bytes(as_proto(model).SerializeToString())
    return build_engine(
        BuildRequest(
            onnx=path,
            target=target,
            toolkit="2.3.2",
            converter_python=converter_python,
            result_folder=folder / "result",
            log=folder / "build.log",
            timeout_s=TIMEOUT_S,
            feeds=(feed,),
        )
    )
