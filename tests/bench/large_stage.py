"""A stage of two engines of many weights, converted with a stand-in for the toolkit: what our own process holds.

    python -m tests.bench.large_stage FOLDER LAYERS

y = 2 x through LAYERS matrices of 64 MiB, each of which puts channels in another order, the last in the first. The last
line that it prints is JSON: what the weights have, and what the process held at most that the kernel cannot drop
(RssAnon, proc(5)), in MB, in all and while the toolkit ran.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray
from onnx import TensorProto, helper

import converters.registry
from contracts.contract import Contract, TensorSpec
from converters.stages import (
    Array,
    Checkpoint,
    Equality,
    Evidence,
    Expectation,
    FloatArray,
    Opened,
    OpenSession,
    Stage,
    StageExport,
    StageOptions,
)
from rknn_tts import checkpoint_to_onnx, pipeline
from rknn_tts.request import Request
from tests.rknn_tts.stand_in_converter import GOOD_LOG, write_converter

SIDE = 4096
"""Of a matrix: 64 MiB of float32."""

ROLES = {"one": 1, "two": 2}
"""Rows of x of each engine."""

BUILDING = "building"
"""How what is said begins while the toolkit runs."""

_SAMPLE_S = 0.02


@dataclass
class Memory:
    """Hears what the command says, and looks at the memory of this process meanwhile."""

    peaks_mb: dict[str, float] = field(default_factory=dict)
    phase: str = "start"

    def step(self, text: str) -> None:
        """A phase begins."""
        self.phase = text

    def note(self, text: str) -> None:
        """Nothing of it is of interest."""

    def watch(self) -> None:
        """Look until the process ends."""
        while True:
            lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
            (kib,) = (int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))
            self.peaks_mb[self.phase] = max(self.peaks_mb.get(self.phase, 0.0), kib * 1024 / 1e6)
            time.sleep(_SAMPLE_S)


def stage(layers: int) -> Stage:
    """The stage `many weights`."""

    def opened(checkpoint: Checkpoint, options: StageOptions, open_session: OpenSession) -> Opened:
        weights = _weights(layers)
        return lambda role: _export(checkpoint, role, weights)

    return Stage("many", "weights", "many weights", None, frozenset(), opened, roles=lambda _: tuple(ROLES))


def _weights(layers: int) -> list[FloatArray]:
    rng, weights = np.random.default_rng(0), list[FloatArray]()
    channels = np.arange(SIDE)
    places = channels  # where each channel of x has come to
    for _ in range(layers - 1):
        order = rng.permutation(SIDE)
        weights.append(_matrix(channels, order, 1.0))
        places = order[places]
    return [*weights, _matrix(places, channels, 2.0)]


def _matrix(sources: NDArray[np.intp], places: NDArray[np.intp], factor: float) -> FloatArray:
    """Puts the channels `sources` in `places`."""
    matrix = np.zeros((SIDE, SIDE), np.float32)
    matrix[sources, places] = factor
    return matrix


def _export(checkpoint: Checkpoint, role: str, weights: list[FloatArray]) -> StageExport:
    shape = (ROLES[role], SIDE)
    fed: dict[str, Array] = {"x": np.random.default_rng(1).normal(size=shape).astype(np.float32)}

    def original(given: Mapping[str, Array]) -> dict[str, Array]:
        y: FloatArray = np.asarray(given["x"], np.float32)
        for matrix in weights:
            y = y @ matrix
        return {"y": y}

    def evidence() -> Evidence:
        return Evidence(
            equalities=(Equality("fp32.cut", original(fed), original(fed), 120.0, "the cut"),),
            expectations=(Expectation("fp32.whole", ((fed, original(fed)),), 80.0, "the finished graph"),),
        )

    contract = Contract("many", "weights", checkpoint.source, (TensorSpec("x", shape),), (TensorSpec("y", shape),))
    return StageExport(
        stem=f"many-weights-{role}",
        contract=contract,
        model=_model(shape, weights),
        passes=(),
        feeds=(fed,),
        padded_feeds=(),
        host=None,
        host_file="",
        notes=(),
        evidence=evidence,
        references=(original(fed),),
    )


def _model(shape: tuple[int, int], weights: list[FloatArray]) -> ir.Model:
    """A chain of products, whose weights are the arrays that the checkpoint holds."""
    names = ["x", *(f"h{number}" for number in range(1, len(weights))), "y"]
    nodes = [
        helper.make_node("MatMul", [names[i], f"w{i}"], [names[i + 1]], name=f"product{i}") for i in range(len(weights))
    ]
    value = helper.make_tensor_value_info
    held = [value(f"w{i}", TensorProto.FLOAT, [SIDE, SIDE]) for i in range(len(weights))]
    graph = helper.make_graph(
        nodes, "many", [value("x", TensorProto.FLOAT, shape), *held], [value("y", TensorProto.FLOAT, shape)]
    )
    model = ir.from_proto(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    for weight, matrix in zip(list(model.graph.inputs)[1:], weights, strict=True):
        weight.const_value = ir.Tensor(matrix, name=weight.name)
        model.graph.inputs.remove(weight)
        model.graph.initializers.add(weight)
    return model


def main(folder: Path, layers: int) -> dict[str, float]:
    """Convert the stage in `folder`; what was held, in MB."""
    work = folder / "work"
    work.mkdir()
    os.chdir(work)
    os.environ["RKNN_TTS_CACHE"] = str(folder / "cache")
    os.environ["RKNN_TTS_CONVERTER_PYTHON"] = str(folder / "converter")
    write_converter(folder / "converter", f'print({GOOD_LOG!r}, end="", flush=True)\ntime.sleep(1)\nsimulate(2.0)')
    (folder / "mini.json").write_text("{}", encoding="utf-8")
    vars(checkpoint_to_onnx)["STAGES"] = converters.registry.STAGES = (stage(layers),)
    memory = Memory()
    threading.Thread(target=memory.watch, daemon=True).start()
    request = Request(command="engine", family="many", checkpoint=str(folder / "mini.json"), target="rk3588")
    done = pipeline.engine(request, memory)
    assert len(done.members) == len(ROLES)
    return {
        "weights_mb": layers * SIDE * SIDE * 4 / 1e6,
        "peak_mb": max(memory.peaks_mb.values()),
        "building_mb": max(peak for phase, peak in memory.peaks_mb.items() if phase.startswith(BUILDING)),
    }


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]))))  # noqa: T201
