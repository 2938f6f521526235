"""A graph is built by itself: what is asked of the toolkit, and what is left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from contracts.errors import ToolFailure
from logs.regtask import RegtaskKey
from rknn_tts.bare_build import build_bare
from rknn_tts.build_step import BUILD_FOLDER
from rknn_tts.request import Request

KEY = RegtaskKey("v2", 0x4038, 0, 0x1FFF)


def built(folder: Path, **options: Any) -> None:
    request = Request(command="probe", timeout_s=7, memory_gb=2)
    log, python = folder / "net.log", Path("python")
    build_bare(b"graph", folder, log, request, target="rk3566", toolkit="2.5.0", python=python, **options)


def test_the_toolkit_is_asked_for_what_was_given_and_no_engine_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def build(request: Any) -> None:
        asked.append(request)
        assert request.onnx.read_bytes() == b"graph"
        request.result_folder.mkdir()
        for name in ("engine.rknn", "lines.log"):
            (request.result_folder / name).write_bytes(b"")

    monkeypatch.setattr("engine.build.build_engine", build)
    built(tmp_path, accepted=(KEY,), disabled_rules=("fuse_a",))
    (request,) = asked
    assert (request.target, request.toolkit, request.converter_python) == ("rk3566", "2.5.0", Path("python"))
    assert (request.accepted, request.disable_rules, request.log) == ((KEY,), ("fuse_a",), tmp_path / "net.log")
    assert (request.timeout_s, request.memory_limit_bytes) == (7, 2_000_000_000)
    assert [path.relative_to(tmp_path).as_posix() for path in sorted(tmp_path.rglob("*")) if path.is_file()] == [
        f"{BUILD_FOLDER}/lines.log"
    ]


def test_a_build_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(request: Any) -> None:
        raise ToolFailure("it broke")

    monkeypatch.setattr("engine.build.build_engine", broken)
    with pytest.raises(ToolFailure, match="it broke"):
        built(tmp_path)
