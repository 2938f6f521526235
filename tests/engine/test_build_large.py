"""The real toolkit on a graph whose weights the worker puts beside it, as it does from a gibibyte on."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from engine.worker import LARGE_FILE, WEIGHTS_FILE
from tests.engine.graphs import random, random_feed, save_graph
from tests.engine.toolkit_runs import built

ALL_ARE_LARGE = f"""
import importlib.util, shutil, sys
from pathlib import Path
spec = importlib.util.spec_from_file_location("worker", sys.argv[1])
worker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(worker)
worker.LARGE_BYTES = 0
code = worker.main(Path(sys.argv[2]))
for name in ("{LARGE_FILE}", "{WEIGHTS_FILE}"):
    shutil.copy(name, Path(sys.argv[3]))
sys.exit(code)
"""
"""The worker with another bound; it copies what it made for the toolkit to a folder."""


def test_engine_of_weights_apart_computes_what_that_of_weights_inside_does(
    converter_python: Path, tmp_path: Path
) -> None:
    node = helper.make_node("Conv", ["x", "w", "b"], ["y"])
    weights = {"w": random(32, 32, 1, 1), "b": random(32)}
    graph = save_graph(tmp_path / "g.onnx", [node], {"x": (1, 32, 1, 5)}, {"y": (1, 32, 1, 5)}, weights)
    feed = random_feed(graph)
    inside, apart, made = (tmp_path / name for name in ("inside", "apart", "made"))
    for folder in (inside, apart, made):
        folder.mkdir()
    ways = {inside: converter_python, apart: with_all_large(tmp_path / "python", converter_python, made)}
    (first,), (second,) = (built(onnx.load(graph), feed, folder, python).simulated for folder, python in ways.items())
    assert (made / LARGE_FILE).is_file()
    assert (made / WEIGHTS_FILE).stat().st_size == weights["w"].nbytes
    np.testing.assert_array_equal(first["y"], second["y"])


def with_all_large(path: Path, converter_python: Path, made: Path) -> Path:
    """A converter's Python for which every graph is large; called with -s -u, the worker and its request."""
    program = path.with_suffix(".py")
    program.write_text(ALL_ARE_LARGE, encoding="utf-8")
    python, script, folder = (shlex.quote(str(word)) for word in (converter_python.absolute(), program, made))
    path.write_text(f'#!/bin/sh\nexec {python} -s -u {script} "$3" "$4" {folder}\n', encoding="utf-8")
    path.chmod(0o755)
    return path
