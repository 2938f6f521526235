"""What a graph would cost as an engine: it is built, and its layer table summed. Nothing is simulated or published."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from contracts.errors import RknnTtsError
from contracts.files import sha256_of_bytes, write_whole
from contracts.manifest import Layers, Memory
from contracts.serial import to_json
from contracts.verdicts import Status
from cost.summary import summarise_layers, summarise_memory
from engine.result import LINES_FILE
from logs.judge import judge_log
from logs.layer_table import parse_layer_table
from rknn_tts.bare_build import build_bare
from rknn_tts.build_gates import kept_lines, layer_table_verdict
from rknn_tts.build_step import BUILD_FOLDER, converter_digest
from rknn_tts.request import Request
from rknn_tts.steps import Steps

BUILDERS = ("contracts", "engine", "logs")
"""Rooms whose code decides what a build of a graph prints: who edits a pass finds the other graphs' builds again."""


@dataclass(frozen=True)
class GraphCost:
    """What the layer table of a graph's engine says.

    Attributes:
        layers: in sum; None where there is no engine.
        memory: the totals.
        regtask_lines: lines that say that a field of the hardware overflowed.
        fault: why there is no engine; "" where there is one.
    """

    layers: Layers | None = None
    memory: Memory | None = None
    regtask_lines: int = 0
    fault: str = ""


@dataclass(frozen=True)
class CostBuilds:
    """Builds graphs to see their cost; each is found again by its digest.

    Attributes:
        request: its options on the toolkit count.
        target: for which chip.
        python: the converter environment's interpreter.
        steps: the cache.
        folder: where the log and the layers of each build are put.
        disabled_rules: fuse rules of the toolkit that are left out.
    """

    request: Request
    target: str
    python: Path
    steps: Steps
    folder: Path
    disabled_rules: tuple[str, ...] = ()

    @cached_property
    def environment(self) -> str:
        """Digest of the converter environment."""
        return converter_digest(self.python, self.request.toolkit)

    def cost(self, name: str, graph: bytes) -> GraphCost:
        """What `graph` costs; its log and layers are put down as `NAME.log` and `NAME.layers.json`."""
        log, layers_file = self.folder / f"{name}.log", self.folder / f"{name}.layers.json"
        parts = {
            "graph": sha256_of_bytes(graph),
            "target": self.target,
            "toolkit": self.request.toolkit,
            "environment": self.environment,
            "disabled": " ".join(self.disabled_rules),
        }
        try:
            folder = self.steps.folder("layers", parts, lambda made: self._build(graph, made, log), BUILDERS)
        except RknnTtsError as error:  # a graph that does not build is a finding of the trial, not its end
            return GraphCost(fault=str(error))
        lines = kept_lines(folder / BUILD_FOLDER / LINES_FILE)
        table = parse_layer_table(lines)
        memory = summarise_memory(table) if table else None
        verdict = layer_table_verdict(table, memory)
        if table is None or verdict.status is Status.FAILED:
            return GraphCost(fault=f"The log {log} tells no cost: {verdict.detail}.")
        write_whole(layers_file, (json.dumps(to_json(table.layers), indent=0) + "\n").encode())
        return GraphCost(
            layers=summarise_layers(table, str(layers_file)),
            memory=memory,
            regtask_lines=sum(key.count for key in judge_log(lines, ()).summary.regtask),
        )

    def _build(self, graph: bytes, folder: Path, log: Path) -> None:
        toolkit = self.request.toolkit
        build_bare(
            graph,
            folder,
            log,
            self.request,
            target=self.target,
            toolkit=toolkit,
            python=self.python,
            disabled_rules=self.disabled_rules,
        )
