"""Builds for the table of issue 10: a graph as it is, its layer table and what the simulator makes of its windows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx_ir as ir
from numpy.typing import NDArray

from contracts.manifest import ENGINE_SCHEMA, Layers
from cost.summary import summarise_layers
from engine.build import build_engine
from engine.environment import converter_python
from engine.request import BuildRequest
from environments.locks import DEFAULT_TOOLKIT
from logs.layer_table import parse_layer_table
from logs.lines import clean_lines
from rknn_tts.checkpoint_to_onnx import Conversion, open_conversions
from rknn_tts.progress import PlainSay
from rknn_tts.request import Request
from rknn_tts.steps import ROOT

Array = NDArray[Any]
TARGET = "rk3588"
TIMEOUT_S = 4 * 3600.0


@dataclass(frozen=True)
class Bare:
    """A build without gates: its layers in sum, and the outputs of each window that the simulator was given."""

    layers: Layers
    simulated: Sequence[Mapping[str, Array]]


def built_bare(graph: ir.Model | Path, folder: Path, feeds: Sequence[Mapping[str, Array]] = ()) -> Bare:
    """Build `graph` in the new `folder`, with the toolkit's own defaults but for rules that are wrong."""
    folder.mkdir(parents=True)
    if isinstance(graph, Path):
        onnx = graph
    else:
        onnx = folder / "graph.onnx"
        ir.save(graph, onnx)
    log = folder / "build.log"
    result = build_engine(
        BuildRequest(
            onnx=onnx, target=TARGET, toolkit=DEFAULT_TOOLKIT, converter_python=converter_python(),
            result_folder=folder / "result", log=log, feeds=feeds, timeout_s=TIMEOUT_S,
        )
    )  # fmt: skip
    table = parse_layer_table(clean_lines(log.read_bytes()))
    assert table is not None
    return Bare(summarise_layers(table, log.name), result.simulated)


def conversions(family: str, checkpoint: str | None, **options: Any) -> tuple[Conversion, ...]:
    """A checkpoint on its way to its engines."""
    asked = Request(command="engine", family=family, checkpoint=checkpoint, target=TARGET, **options)
    return open_conversions(asked, TARGET, PlainSay(sys.stderr))


def made_by_the_command(folder: Path, *words: str) -> list[Path]:
    """Run `rknn-tts engine` with `words`, all gates and all; the manifests of its engines in the new `folder`."""
    folder.mkdir(parents=True)
    command = [str(ROOT / "rknn-tts"), "engine", *words, "--target", TARGET, "--output", str(folder / "engines")]
    done = subprocess.run(command, cwd=folder, env=os.environ, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return [path for path in sorted((folder / "engines").glob("*.json")) if _schema(path) == ENGINE_SCHEMA]


def _schema(path: Path) -> str:
    return str(json.loads(path.read_text(encoding="utf-8"))["schema"])
