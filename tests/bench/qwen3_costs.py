"""What an engine of Qwen3's step costs: of the reference's design, built here, and of ours, from its manifest."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import onnx
import torch

from contracts.manifest import CpuLayer, Manifest, RegtaskCount
from converters.qwen3.checkpoint import SEED
from converters.qwen3.stand_in import stand_in
from cost.summary import summarise_layers
from engine.build import build_engine
from engine.environment import converter_python
from engine.request import BuildRequest
from environments.locks import DEFAULT_TOOLKIT
from logs.judge import judge_log
from logs.layer_table import parse_layer_table
from logs.lines import clean_lines
from logs.regtask import Evidence, RegtaskKey, evidence_of
from models.qwen3.config import TRUE_CONFIG
from models.qwen3.decoder import decoder_of
from tests.qwen3_reference_step import HIDDEN, ReferenceStep, exported, operators, reference_numel_walked

TIMEOUT_S = 4 * 3600.0
"""Of a build; alone on a machine, with one thread, one and a half minutes (76 s of CPU, measured)."""


@dataclass(frozen=True)
class Cost:
    """Of one engine, and of its build.

    Attributes:
        nodes: of its graph, constants not counted.
        layers, mcycles, rw_mb, modelled_ms: of the layer table.
        cpu: layers on the CPU, by operator, without inputs and outputs; cpu_rw_mb: their traffic.
        regtask: REGTASK lines by field; fatal: those of fields that are known or feared to compute wrong values.
        build_cpu_s, build_wall_s, peak_mb: of the toolkit's process.
    """

    nodes: int
    layers: int
    mcycles: float
    rw_mb: float
    modelled_ms: float
    cpu: dict[str, int]
    cpu_rw_mb: float
    regtask: dict[str, int]
    fatal: int
    build_cpu_s: float
    build_wall_s: float
    peak_mb: float

    @property
    def cpu_layers(self) -> int:
        """How many layers run on the CPU."""
        return sum(self.cpu.values())

    @property
    def regtask_lines(self) -> int:
        """How many REGTASK lines there were."""
        return sum(self.regtask.values())


def built_reference(codes: int, target: str, folder: Path) -> Cost:
    """Build the reference's step of `codes` at the seam `hidden`, of the published sizes, in the new `folder`.

    The toolkit gets the graph as it was exported: no pass of ours.
    """
    folder.mkdir()
    graph, log = folder / "step.onnx", folder / "build.log"
    with ProcessPoolExecutor(1, get_context("spawn")) as apart:  # its gigabytes are needed when the builds run
        nodes = apart.submit(export_reference, codes, graph).result()
    build = build_engine(
        BuildRequest(
            onnx=graph, target=target, toolkit=DEFAULT_TOOLKIT, converter_python=converter_python(),
            result_folder=folder / "result", log=log, timeout_s=TIMEOUT_S,
        )
    )  # fmt: skip
    lines = list(clean_lines(log.read_bytes()))
    table = parse_layer_table(lines)
    assert table is not None
    layers = summarise_layers(table, log.name)
    return Cost(
        nodes=nodes,
        layers=layers.count,
        mcycles=layers.cycles / 1e6,
        rw_mb=layers.rw_kb / 1e3,
        modelled_ms=layers.modelled_ms,
        **_placed(layers.cpu),
        **_overflows(judge_log(lines).summary.regtask),
        build_cpu_s=build.cpu_s,
        build_wall_s=build.wall_s,
        peak_mb=build.peak_rss_bytes / 1e6,
    )


def cost_of(manifest: Manifest) -> Cost:
    """Of an engine of ours that was just built."""
    layers, figures = manifest.layers, {figure.name: float(figure.measured or 0) for figure in manifest.measurements}
    assert layers is not None
    return Cost(
        nodes=manifest.onnx.nodes,
        layers=layers.count,
        mcycles=layers.cycles / 1e6,
        rw_mb=layers.rw_kb / 1e3,
        modelled_ms=layers.modelled_ms,
        **_placed(layers.cpu),
        **_overflows(manifest.log.regtask),
        build_cpu_s=figures["build.cpu"],
        build_wall_s=figures["build.wall"],
        peak_mb=figures["build.peak_memory"],
    )


def ratios(ours: Cost, theirs: Cost) -> dict[str, float]:
    """Ours over theirs, of steps of as many codes: so per code as well."""
    names = ("mcycles", "rw_mb", "modelled_ms")
    return {name: float(getattr(ours, name) / getattr(theirs, name)) for name in names}


def _placed(cpu: tuple[CpuLayer, ...]) -> dict[str, Any]:
    return {
        "cpu": dict(Counter(layer.op for layer in cpu).most_common()),
        "cpu_rw_mb": sum(layer.rw_kb for layer in cpu) / 1e3,
    }


def _overflows(fields: tuple[RegtaskCount, ...]) -> dict[str, Any]:
    keys = {RegtaskKey(f.target, int(f.offset, 16), f.shift, int(f.limit, 16)): f.count for f in fields}
    return {
        "regtask": {str(key): count for key, count in sorted(keys.items())},
        "fatal": sum(n for key, n in keys.items() if evidence_of(key)[0] is not Evidence.UNPROVEN),
    }


def export_reference(codes: int, graph: Path) -> int:
    """Writes the reference's step of `codes`, on the random weights, into the file `graph`; how many nodes it has."""
    decoder = decoder_of(stand_in(TRUE_CONFIG, SEED), TRUE_CONFIG)
    with torch.no_grad():
        model = exported(ReferenceStep(decoder, HIDDEN), codes, reference_numel_walked(TRUE_CONFIG))
    onnx.save(model, graph)
    return sum(operators(model).values())
