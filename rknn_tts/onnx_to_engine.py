"""An NPU-ready ONNX to an engine: gates on the graph, the build, gates on the build, publication. Cached step by step."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from contracts.contract import Contract, short_contract
from contracts.errors import GateFailure, UserInput
from contracts.files import sha256_of
from contracts.manifest import (
    EngineFile,
    Layers,
    LogSummary,
    Manifest,
    Memory,
    OnnxTwin,
    Toolkit,
    manifest_text,
    read_manifest,
)
from contracts.serial import to_json
from contracts.verdicts import Measurement, Status, Verdict
from engine.environment import CONVERTER_PYTHON, converter_python
from logs.judge import judge_log
from logs.lines import clean_lines
from logs.regtask import RegtaskKey, parse_accepted
from rknn_tts.failing import keep_verdicts, stop_if_failed
from rknn_tts.outcome import Outcome
from rknn_tts.places import Places, engine_places, make_folder
from rknn_tts.progress import Say
from rknn_tts.publish import publish
from rknn_tts.request import Request
from rknn_tts.steps import ROOT, Steps

TOOLKIT = "rknn-toolkit2"
BUILD_FOLDER = "build"
GB = 1 << 30

TORCH = "RKNN_TTS_TORCH"
"""Environment variable of the worker: which torch the toolkit sees; it may change an engine."""


@dataclass(frozen=True)
class OnnxSource:
    """What is compiled.

    Attributes:
        onnx: the graph.
        stem: stem of the engine's file.
        contract: its contract.
        host: the host half's file; None where there is none.
        notes: sentences for the user.
    """

    onnx: Path
    stem: str
    contract: Contract
    host: Path | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class GraphInfo:
    """The step `graph`: the gates on the graph, and what the manifest says of it."""

    opset: int
    nodes: int
    verdicts: tuple[Verdict, ...]
    measurements: tuple[Measurement, ...]


@dataclass(frozen=True)
class BuildInfo:
    """The step `judge`: the gates on a build, and what the manifest says of it."""

    verdicts: tuple[Verdict, ...]
    measurements: tuple[Measurement, ...]
    layers: Layers | None
    memory: Memory | None
    log: LogSummary
    every_layer: str


def check_graph(onnx: Path, steps: Steps, say: Say) -> GraphInfo:
    """The cached gates on the graph `onnx` itself."""

    def work() -> GraphInfo:
        from converters.onnx_file import read_onnx
        from rknn_tts.feeds import feeds_of
        from rknn_tts.graph_gates import judge_graph

        say.step("checking the graph")
        model = read_onnx(onnx)
        verdicts, measurements = judge_graph(model, feeds_of(model, onnx.name))
        return GraphInfo(
            opset=model.opset_imports.get("", 0),
            nodes=model.graph.num_nodes(),
            verdicts=tuple(verdicts),
            measurements=tuple(measurements),
        )

    return steps.value("graph", GraphInfo, {"onnx": sha256_of(onnx)}, work)


def convert_onnx(request: Request, target: str, source: OnnxSource, steps: Steps, say: Say) -> Outcome:
    """Compile `source` for `target`, and publish the engine if every gate lets it.

    Raises:
        UserInput: an option is wrong, or a place cannot be written.
        GateFailure: a gate failed; what stood at the engine's place is still there.
        ToolFailure: the toolkit broke; likewise.
    """
    contract = source.contract
    accepted = tuple(sorted(parse_accepted(text) for text in request.accept_regtask))
    places = engine_places(contract, source.stem, target, request.output)
    make_folder(places.engine.parent)
    make_folder(places.log.parent)
    graph = check_graph(source.onnx, steps, say)
    proven = (*contract.verdicts, *graph.verdicts)
    stop_if_failed(proven, places.failed, None, f"{places.engine.name} was not built")
    build_parts, folder = _build(request, target, source, accepted, places, proven, steps, say)
    judged = _judge(source, folder, accepted, places, build_parts, steps, say)
    verdicts = (*proven, *judged.verdicts)
    if "build" in steps.reused:
        publish([(places.log, (folder / "lines.log").read_bytes())])
    stop_if_failed(verdicts, places.failed, places.log, f"{places.engine.name} was not written")
    return _publish(request, target, source, places, graph, judged, folder, steps)


def _build(
    request: Request,
    target: str,
    source: OnnxSource,
    accepted: tuple[RegtaskKey, ...],
    places: Places,
    proven: tuple[Verdict, ...],
    steps: Steps,
    say: Say,
) -> tuple[dict[str, str], Path]:
    """The cached build: what it depends on, and its result folder."""
    python = converter_python(request.toolkit)
    parts = {
        "onnx": sha256_of(source.onnx),
        "target": target,
        "toolkit": request.toolkit,
        "environment": _environment_digest(request.toolkit),
        "custom_string": short_contract(source.contract, target, request.toolkit),
        "accepted": " ".join(map(str, accepted)),
    }

    def work(folder: Path) -> None:
        from converters.onnx_file import read_onnx
        from engine.build import DEFAULT_TIMEOUT_S, BuildRequest, build_engine
        from rknn_tts.feeds import feeds_of

        say.step(f"building for {target}")
        wanted = BuildRequest(
            onnx=source.onnx,
            target=target,
            toolkit=request.toolkit,
            converter_python=python,
            result_folder=folder / BUILD_FOLDER,
            log=places.log,
            custom_string=parts["custom_string"],
            feeds=feeds_of(read_onnx(source.onnx), source.onnx.name),
            accepted=accepted,
            timeout_s=DEFAULT_TIMEOUT_S if request.timeout_s is None else request.timeout_s,
            memory_limit_bytes=None if request.memory_gb is None else int(request.memory_gb * GB),
        )
        try:
            build_engine(wanted, lambda stage: say.step(f"building for {target}: {stage}"))
        except GateFailure as error:
            raise _with_verdicts(error, proven, places, accepted) from error

    return parts, steps.folder("build", parts, work) / BUILD_FOLDER


def _judge(
    source: OnnxSource,
    folder: Path,
    accepted: tuple[RegtaskKey, ...],
    places: Places,
    build_parts: dict[str, str],
    steps: Steps,
    say: Say,
) -> BuildInfo:
    def work() -> BuildInfo:
        from converters.onnx_file import read_onnx
        from engine.build import read_build
        from rknn_tts.feeds import feeds_of
        from rknn_tts.compile_step import judge_build

        say.step("judging the log and the simulator")
        feeds = feeds_of(read_onnx(source.onnx), source.onnx.name)
        judged = judge_build(read_build(folder), source.onnx, source.contract, feeds, accepted, str(places.layers))
        return BuildInfo(
            verdicts=judged.verdicts,
            measurements=judged.measurements,
            layers=judged.layers,
            memory=judged.memory,
            log=judged.log,
            every_layer=json.dumps(to_json(judged.every_layer), indent=0) + "\n",
        )

    thresholds = json.dumps(to_json(source.contract.thresholds), sort_keys=True)
    return steps.value("judge", BuildInfo, {**build_parts, "thresholds": thresholds, "layers": str(places.layers)}, work)


def _publish(
    request: Request,
    target: str,
    source: OnnxSource,
    places: Places,
    graph: GraphInfo,
    judged: BuildInfo,
    folder: Path,
    steps: Steps,
) -> Outcome:
    contract, engine = source.contract, (folder / "engine.rknn").read_bytes()
    manifest = Manifest(
        family=contract.family,
        stage=contract.stage,
        target=target,
        toolkit=Toolkit(TOOLKIT, request.toolkit),
        source=contract.source,
        onnx=OnnxTwin(places.onnx.name, sha256_of(source.onnx), graph.opset, graph.nodes),
        engine=EngineFile(places.engine.name, sha256_of(folder / "engine.rknn"), len(engine)),
        inputs=contract.inputs,
        outputs=contract.outputs,
        layers=judged.layers,
        memory=judged.memory,
        log=judged.log,
        host=contract.host if source.host is not None else None,
        window=contract.window,
        cache=contract.cache,
        thresholds=contract.thresholds,
        passes=contract.passes,
        verdicts=(*contract.verdicts, *graph.verdicts, *judged.verdicts),
        measurements=(*contract.measurements, *graph.measurements, *judged.measurements),
    )
    manifest = _with_board_figures(manifest, places)
    files = [(places.engine, engine), (places.onnx, source.onnx.read_bytes())]
    if source.host is not None and manifest.host is not None:
        files.append((places.engine.with_name(manifest.host.file), source.host.read_bytes()))
    files += [(places.layers, judged.every_layer.encode()), (places.manifest, manifest_text(manifest).encode())]
    publish(files)
    places.failed.unlink(missing_ok=True)
    return Outcome(
        files=tuple(str(path) for path, _ in files),
        manifest=manifest,
        verdicts=manifest.verdicts,
        measurements=manifest.measurements,
        notes=(*source.notes, *_unproven_notes(manifest.verdicts)),
        reused=tuple(steps.reused),
        log=str(places.log),
    )


def _with_verdicts(
    error: GateFailure, proven: Sequence[Verdict], places: Places, accepted: Sequence[RegtaskKey]
) -> GateFailure:
    """The failure of a build that was stopped by its log, with all verdicts up to there."""
    lines = clean_lines(places.log.read_bytes()) if places.log.is_file() else iter(())
    # A build that was stopped has no end; that it is missing is no finding of its own.
    stopped = [v for v in judge_log(lines, accepted).verdicts if v.gate != "log.complete"]
    verdicts = (*proven, *stopped)
    return GateFailure(f"{error}{keep_verdicts(verdicts, places.failed, places.log)}", verdicts, places.log)


def _with_board_figures(manifest: Manifest, places: Places) -> Manifest:
    """`manifest` with the board figures of the manifest it replaces, if that is of the same engine."""
    try:
        earlier = read_manifest(places.manifest)
    except UserInput:
        return manifest
    same = earlier.engine.sha256 == manifest.engine.sha256
    return dataclasses.replace(manifest, board=earlier.board) if same else manifest


def _environment_digest(toolkit: str) -> str:
    """What the converter environment is: its lock, or the interpreter that the user put in its place."""
    lock = ROOT / "requirements" / f"rknn-{toolkit}.txt"
    digest = sha256_of(lock) if lock.is_file() else ""
    return " ".join([digest, os.environ.get(CONVERTER_PYTHON, ""), os.environ.get(TORCH, "")])


def _unproven_notes(verdicts: Sequence[Verdict]) -> list[str]:
    count = sum(verdict.status is Status.UNPROVEN for verdict in verdicts)
    if not count:
        return []
    return [f"UNPROVEN: {count} verdict{'s' * (count > 1)} can only be given by a board; nothing here was run on one."]
