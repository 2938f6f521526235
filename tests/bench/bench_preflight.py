"""What the preflight passes cost over opening the same graph in onnxruntime: time, on the whole default voice.

`make bench` runs it. It reports ratios of one run, and fails only where something breaks.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import onnx_ir as ir
import pytest

from gates.session import Session
from surgery.normalise_static_inputs import normalise_static_inputs
from surgery.preflight import preflight

SHAPES = {"input": (1, 128), "input_lengths": (1,), "scales": (3,)}
"""The voice's inputs, at 128 phoneme ids."""

DEAREST = 5
"""Passes that are named."""


def test_preflight_over_opening_the_graph(fetched_voice: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = ir.load(next(fetched_voice.glob("*.onnx")))
    opened_s = _seconds(lambda: Session(model))
    spent: dict[str, float] = {}
    nodes = model.graph.num_nodes()
    for bound in (normalise_static_inputs(SHAPES), *preflight()):
        start = time.perf_counter()
        model = bound.rewrite(model).model
        spent[bound.name] = time.perf_counter() - start
    again_s = sum(_seconds(lambda bound=bound: bound.rewrite(model)) for bound in preflight())  # type: ignore[misc]
    total_s = sum(spent.values())
    dearest = sorted(spent, key=lambda name: -spent[name])[:DEAREST]
    lines = [
        f"preflight, the whole default voice: {nodes} nodes to {model.graph.num_nodes()}",
        f"{len(spent)} passes over opening it in onnxruntime: {total_s / opened_s:.1f} ({total_s:.2f} s)",
        f"once more, on what came of it, over the first time: {again_s / total_s:.2f}",
        *(f"    {spent[name] / total_s:5.0%}  {name}" for name in dearest),
    ]
    with capsys.disabled():
        sys.stdout.write("\n\n" + "\n".join(lines) + "\n")


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
