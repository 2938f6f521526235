"""A stage of two engines, y = 2 x on 8 and on 4 values, that opens a small JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import converters.registry
from contracts.contract import Contract, TensorSpec
from contracts.errors import UserInput
from converters.stages import (
    Array,
    Checkpoint,
    Equality,
    Evidence,
    Expectation,
    Opened,
    OpenSession,
    Stage,
    StageExport,
    StageOptions,
)
from rknn_tts import checkpoint_to_onnx
from tests.gates.small_graphs import row, scale_proto
from tests.rknn_tts.stand_in_converter import GOOD_LOG

SIZES = {"full": 8, "short": 4}

CHECKPOINT = "mini.json"
ENGINES = "engines/rk3588/mini"
FULL, SHORT, SET = f"{ENGINES}/twin-net-full", f"{ENGINES}/twin-net-short", f"{ENGINES}/twin-net.set.json"
LOG_FULL, LOG_SHORT = "build-logs/mini-twin-net-full-rk3588", "build-logs/mini-twin-net-short-rk3588"


def by_role(full: float, short: float) -> str:
    """A converter's lines: a good build, whose simulator gives another multiple of x for each engine."""
    return f"""
    print({GOOD_LOG!r}, end="", flush=True)
    import numpy as np
    (size,) = {{array.shape[-1] for array in np.load(folder / "feeds.npz").values()}}
    simulate({full} if size == 8 else {short})
    """


@dataclass
class Doubled:
    """The stage, and how often it was opened.

    Attributes:
        opened: the roles that were asked for, in order; "checkpoint" where that was read.
        changes: what is another in each export, by role.
    """

    opened: list[str]
    changes: dict[str, dict[str, Any]]

    def stage(self, **others: Any) -> Stage:
        """The stage `twin net`; `others` are fields of it."""
        made = Stage(
            "twin",
            "net",
            "two engines",
            None,
            frozenset({"member", "config"}),
            self._open,
            roles=_roles,
            beside=("words.json",),
        )
        return replace(made, **others)

    def _open(self, checkpoint: Checkpoint, options: StageOptions, open_session: OpenSession) -> Opened:
        self.opened.append("checkpoint")
        factor = json.loads(checkpoint.path.read_text(encoding="utf-8"))["factor"]

        def export(role: str) -> StageExport:
            self.opened.append(role)
            made = export_of(checkpoint, role, SIZES[role], factor)
            return replace(made, **self.changes.get(role, {}))

        return export


def _roles(options: StageOptions) -> tuple[str, ...]:
    if options.member is None:
        return tuple(SIZES)
    if options.member not in SIZES:
        raise UserInput(f"--member {options.member}: there are: {', '.join(SIZES)}.")
    return (options.member,)


def feed(size: int) -> dict[str, Array]:
    """1, 2, 3, ..."""
    return {"x": row(*range(1, size + 1))}


def doubled(fed: Mapping[str, Array]) -> dict[str, Array]:
    """What the original gives."""
    return {"y": np.asarray(fed["x"] * 2, np.float32)}


def export_of(checkpoint: Checkpoint, role: str, size: int, factor: float) -> StageExport:
    """One engine of the stage, whose weight is `factor`: judged by what y = 2 x gives."""
    fed = feed(size)

    def evidence() -> Evidence:
        return Evidence(
            equalities=(Equality("fp32.cut", doubled(fed), doubled(fed), 120.0, "the cut"),),
            expectations=(Expectation("fp32.doubled", ((fed, doubled(fed)),), 80.0, "the finished graph"),),
        )

    return StageExport(
        stem=f"twin-net-{role}",
        contract=Contract(
            "twin", "net", checkpoint.source, (TensorSpec("x", (1, size)),), (TensorSpec("y", (1, size)),)
        ),
        model=ir.from_proto(scale_proto(factor, size)),
        passes=(),
        feeds=(fed,),
        padded_feeds=(),
        host=ir.from_proto(scale_proto(3.0)),
        host_file="twin-host.onnx",
        notes=("a note",),
        evidence=evidence,
    )


def install(patch: pytest.MonkeyPatch, *stages: Stage) -> None:
    """Make `stages` all there are."""
    patch.setattr(checkpoint_to_onnx, "STAGES", stages)
    patch.setattr(converters.registry, "STAGES", stages)


def write_checkpoint(folder: Path, factor: float = 2.0) -> str:
    """Write the checkpoint; its path."""
    path = folder / CHECKPOINT
    path.write_text(json.dumps({"factor": factor}), encoding="utf-8")
    return str(path)
