"""Builds parts of a graph to see what the compiler logs of them; nothing is simulated, and each is built once."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import onnx_ir as ir

from contracts.errors import RknnTtsError
from contracts.files import sha256_of_bytes
from engine.result import LINES_FILE
from logs.judge import judge_log
from logs.regtask import RegtaskKey
from rknn_tts.bare_build import build_bare
from rknn_tts.build_gates import kept_lines
from rknn_tts.build_step import BUILD_FOLDER, converter_digest
from rknn_tts.finished_graph import serialised
from rknn_tts.graph_cost import BUILDERS
from rknn_tts.request import Request
from rknn_tts.steps import Steps
from rknn_tts.verify_gates import regtask_name


@dataclass(frozen=True)
class PartBuilds:
    """What the compiler logs of graphs.

    Attributes:
        request: its options on the toolkit count.
        target: for which chip.
        toolkit: which version of the toolkit.
        python: the converter environment's interpreter.
        accepted: keys that do not stop a build.
        disabled_rules: fuse rules of the toolkit that are left out.
        steps: the cache.
    """

    request: Request
    target: str
    toolkit: str
    python: Path
    accepted: Collection[RegtaskKey]
    disabled_rules: tuple[str, ...]
    steps: Steps

    @cached_property
    def environment(self) -> str:
        """Digest of the converter environment."""
        return converter_digest(self.python, self.toolkit)

    def fields(self, model: ir.Model) -> frozenset[str]:
        """The hardware fields that overflow in `model`, by their verdicts' names; none where it does not build."""
        graph = serialised(model)
        parts = {
            "graph": sha256_of_bytes(graph),
            "target": self.target,
            "toolkit": self.toolkit,
            "environment": self.environment,
            "accepted": " ".join(map(str, sorted(self.accepted))),
            "disabled": " ".join(self.disabled_rules),
        }
        try:
            folder = self.steps.folder("part", parts, lambda made: self._build(graph, made), BUILDERS)
        except RknnTtsError:  # a part that the toolkit cannot build shows nothing
            return frozenset()
        lines = kept_lines(folder / BUILD_FOLDER / LINES_FILE)
        return frozenset(map(regtask_name, judge_log(lines, self.accepted).summary.regtask))

    def _build(self, graph: bytes, folder: Path) -> None:
        build_bare(
            graph,
            folder,
            folder / "part.log",
            self.request,
            target=self.target,
            toolkit=self.toolkit,
            python=self.python,
            accepted=self.accepted,
            disabled_rules=self.disabled_rules,
        )
