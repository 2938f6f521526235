"""Builds a graph by itself, for what the compiler says of it: no gate, no simulator, no engine is kept."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from engine.result import ENGINE_FILE
from logs.regtask import RegtaskKey
from rknn_tts.build_step import BUILD_FOLDER, memory_limit_bytes
from rknn_tts.request import Request


def build_bare(
    graph: bytes,
    folder: Path,
    log: Path,
    request: Request,
    *,
    target: str,
    toolkit: str,
    python: Path,
    accepted: Collection[RegtaskKey] = (),
    disabled_rules: tuple[str, ...] = (),
) -> None:
    """Build `graph`; what the build left stands in `BUILD_FOLDER` of `folder`, without the engine.

    Args:
        graph: an ONNX, serialised.
        folder: where the build works.
        log: where its log goes.
        request: its limits of time and memory count.
        target: for which chip.
        toolkit: which version of the toolkit.
        python: the converter environment's interpreter.
        accepted: overflows of hardware fields that do not stop it.
        disabled_rules: fuse rules of the toolkit that are left out.

    Raises:
        GateFailure, ToolFailure: as `engine.build.build_engine`.
    """
    from engine.build import DEFAULT_TIMEOUT_S, BuildRequest, build_engine

    onnx = folder / "graph.onnx"
    onnx.write_bytes(graph)
    build_engine(
        BuildRequest(
            onnx=onnx,
            target=target,
            toolkit=toolkit,
            converter_python=python,
            result_folder=folder / BUILD_FOLDER,
            log=log,
            accepted=accepted,
            disable_rules=disabled_rules,
            timeout_s=DEFAULT_TIMEOUT_S if request.timeout_s is None else request.timeout_s,
            memory_limit_bytes=memory_limit_bytes(request.memory_gb),
        )
    )
    onnx.unlink()
    (folder / BUILD_FOLDER / ENGINE_FILE).unlink()
