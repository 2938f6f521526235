"""An engine is the same to the byte wherever it is built, and by whom."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.files import sha256_of
from engine.build import build_engine
from engine.request import BuildRequest
from tests.engine.graphs import conv_graph
from tests.programs import write_program

ELSEWHERE = "a checkout of another person/whose path is a good deal longer than anybody would have it be"

OTHERWISE = """
import ctypes, os, sys
ctypes.CDLL(None).personality(0)  # addresses are random again
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
os.environ["OF_ANOTHER_MACHINE"] = "x" * 5000
python = {python!r}
os.execv(python, [python, *sys.argv[1:]])
"""
"""Runs the converter's Python under another path, at other addresses, with other variables, on one core."""


def test_engine_is_the_same_when_it_is_built_in_another_place_at_other_addresses(
    converter_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / ELSEWHERE
    (elsewhere / "temporary files of theirs").mkdir(parents=True)
    environment = elsewhere / "environment"
    environment.symlink_to(converter_python.parent.parent)
    python = write_program(
        elsewhere / "python", OTHERWISE.format(python=str(environment / "bin" / converter_python.name)), "-IS"
    )
    here = tmp_path / "here"
    here.mkdir()
    one = built(conv_graph(here / "graph.onnx"), converter_python, here)
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere / "temporary files of theirs"))
    monkeypatch.setenv("HOME", str(elsewhere))
    other = built(conv_graph(elsewhere / "the same graph.onnx"), python, elsewhere)
    assert list((elsewhere / "temporary files of theirs").iterdir()) == []
    assert one == other


def built(onnx: Path, python: Path, folder: Path) -> str:
    """The digest of its engine, whose compiler had the addresses that are always the same."""
    request = BuildRequest(onnx, "rk3588", "2.3.2", python, folder / "result", folder / "build.log", timeout_s=120.0)
    result = build_engine(request)
    assert result.fixed_addresses
    return sha256_of(result.engine)
