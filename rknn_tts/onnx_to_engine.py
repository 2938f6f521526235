"""An NPU-ready ONNX to an engine: gates on the graph, the build, gates on the build, publication."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from contracts.contract import Contract, short_contract
from contracts.errors import GateFailure, UserInput
from contracts.files import sha256_of, sha256_of_bytes
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
from rknn_tts.background import Background
from rknn_tts.carried import carry, feeds_from_npz
from rknn_tts.export_step import Proof
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
MEMORY_SHARE = 0.9
"""Of the machine's memory, what the toolkit may take unless the user says otherwise: the rest is for us and others."""

TORCH = "RKNN_TTS_TORCH"
"""Environment variable of the worker: which torch the toolkit sees; it may change an engine."""


@dataclass(frozen=True)
class OnnxSource:
    """What is compiled.

    Attributes:
        graph: the bare graph, as the toolkit is given it.
        stem: stem of the engine's file.
        contract: its contract, without a proof.
        host: the host half's file; None where there is none.
        feeds: real inputs of the graph, as an npz (`carried.feeds_to_npz`).
        prove: the verdicts that the graph brings along, or reaches now.
        notes: sentences for the user.
    """

    graph: Path
    stem: str
    contract: Contract
    host: Path | None
    feeds: bytes
    prove: Callable[[], Proof]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class GraphInfo:
    """The step `graph`: the structural gates on the graph, and what the manifest says of it."""

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


def check_graph(graph: Path, steps: Steps, say: Say) -> GraphInfo:
    """The cached structural gates on `graph`: fast, so they come before anything is built."""

    def work() -> GraphInfo:
        from converters.onnx_file import read_onnx
        from rknn_tts.graph_gates import judge_structure

        say.step("checking the graph")
        model = read_onnx(graph)
        verdicts, measurements = judge_structure(model)
        return GraphInfo(
            opset=model.opset_imports.get("", 0),
            nodes=model.graph.num_nodes(),
            verdicts=tuple(verdicts),
            measurements=tuple(measurements),
        )

    return steps.value("graph", GraphInfo, {"graph": sha256_of(graph)}, work)


@dataclass(frozen=True)
class NumericGates:
    """What the numeric gates concluded: the export's proof, and the fp16 range of this graph's activations."""

    proof: Proof
    activations: Verdict

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """All verdicts."""
        return (*self.proof.verdicts, self.activations)


def judge_numbers(source: OnnxSource, steps: Steps) -> NumericGates:
    """The source's proof, and the fp16 range of its activations (cached)."""

    def work() -> Verdict:
        from converters.onnx_file import read_onnx
        from gates.fp16_range import activation_range

        return activation_range(read_onnx(source.graph), feeds_from_npz(source.feeds))

    proof = source.prove()
    parts = {"graph": sha256_of(source.graph), "feeds": sha256_of_bytes(source.feeds)}
    return NumericGates(proof, steps.value("activations", Verdict, parts, work))


def convert_onnx(request: Request, target: str, source: OnnxSource, steps: Steps, say: Say) -> Outcome:
    """Compile `source` for `target`, and publish the engine if every gate lets it.

    The numeric gates run while the toolkit compiles; the build ends as soon as one of them fails.

    Raises:
        UserInput: an option is wrong, or a place cannot be written.
        GateFailure: a gate failed; what stood at the engine's place is still there.
        ToolFailure: the toolkit broke; likewise.
    """
    accepted = tuple(sorted(parse_accepted(text) for text in request.accept_regtask))
    places = engine_places(source.contract, source.stem, target, request.output)
    python = converter_python(request.toolkit)
    make_folder(places.engine.parent)
    make_folder(places.log.parent)
    graph = check_graph(source.graph, steps, say)
    stop_if_failed(graph.verdicts, places.failed, None, f"{places.engine.name} was not built")
    gates = Background(lambda: judge_numbers(source, steps))
    build = Build(request, target, source, accepted, places, python)
    try:
        folder = _built(build, steps, say, lambda: _stop_early(gates, graph, places))
    except GateFailure as error:
        raise _with_verdicts(error, graph.verdicts, places, accepted) if not error.verdicts else error from error
    numbers = gates.result()
    proven = (*numbers.verdicts, *graph.verdicts)
    stop_if_failed(proven, places.failed, None, f"{places.engine.name} was not written")
    judged = _judge(build, folder, steps, say)
    if "build" in steps.reused:
        _restore_log(places.log, folder / "lines.log")
    verdicts = (*proven, *judged.verdicts)
    stop_if_failed(verdicts, places.failed, places.log, f"{places.engine.name} was not written")
    return _publish(build, graph, numbers, judged, folder, steps)


@dataclass(frozen=True)
class Build:
    """One build: what is built, for which chip, and where it goes."""

    request: Request
    target: str
    source: OnnxSource
    accepted: tuple[RegtaskKey, ...]
    places: Places
    python: Path

    @property
    def parts(self) -> dict[str, str]:
        """What the build depends on, code aside."""
        return {
            "graph": sha256_of(self.source.graph),
            "feeds": sha256_of_bytes(self.source.feeds),
            "target": self.target,
            "toolkit": self.request.toolkit,
            "environment": _environment_digest(self.request.toolkit),
            "custom_string": short_contract(self.source.contract, self.target, self.request.toolkit),
            "accepted": " ".join(map(str, self.accepted)),
        }


def _built(build: Build, steps: Steps, say: Say, go_on: Callable[[], None]) -> Path:
    """The cached build's result folder; `go_on` is asked at every stage, and ends the build by raising."""
    parts, request = build.parts, build.request

    def work(folder: Path) -> None:
        from engine.build import DEFAULT_TIMEOUT_S, BuildRequest, build_engine

        say.step(f"building for {build.target}")
        wanted = BuildRequest(
            onnx=build.source.graph,
            target=build.target,
            toolkit=request.toolkit,
            converter_python=build.python,
            result_folder=folder / BUILD_FOLDER,
            log=build.places.log,
            custom_string=parts["custom_string"],
            feeds=feeds_from_npz(build.source.feeds),
            accepted=build.accepted,
            timeout_s=DEFAULT_TIMEOUT_S if request.timeout_s is None else request.timeout_s,
            memory_limit_bytes=_memory_limit_bytes(request.memory_gb),
        )

        def progress(stage: str) -> None:
            go_on()
            say.step(f"building for {build.target}: {stage}")

        build_engine(wanted, progress)

    return steps.folder("build", parts, work) / BUILD_FOLDER


def _memory_limit_bytes(asked_gb: float | None) -> int:
    """What the user allows; by default nearly all there is, so that a sentence comes before the kernel's killer."""
    if asked_gb is not None:
        return int(asked_gb * GB)
    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * MEMORY_SHARE)


def _stop_early(gates: Background[NumericGates], graph: GraphInfo, places: Places) -> None:
    """End the build if a gate beside it has failed by now."""
    numbers = gates.peek()
    if numbers is not None:
        verdicts = (*numbers.verdicts, *graph.verdicts)
        stop_if_failed(verdicts, places.failed, None, f"{places.engine.name} was not built to its end")


def _judge(build: Build, folder: Path, steps: Steps, say: Say) -> BuildInfo:
    source, places = build.source, build.places

    def work() -> BuildInfo:
        from engine.build import read_build
        from rknn_tts.compile_step import judge_build

        say.step("judging the log and the simulator")
        feeds = feeds_from_npz(source.feeds)
        judged = judge_build(
            read_build(folder), source.graph, source.contract, feeds, build.accepted, str(places.layers)
        )
        return BuildInfo(
            verdicts=judged.verdicts,
            measurements=judged.measurements,
            layers=judged.layers,
            memory=judged.memory,
            log=judged.log,
            every_layer=json.dumps(to_json(judged.every_layer), indent=0) + "\n",
        )

    thresholds = json.dumps(to_json(source.contract.thresholds), sort_keys=True)
    return steps.value(
        "judge", BuildInfo, {**build.parts, "thresholds": thresholds, "layers": str(places.layers)}, work
    )


def _restore_log(log: Path, lines: Path) -> None:
    """Put the clean `lines` of a build that was found again in the place of its raw log, unless that is still there."""
    kept = lines.read_text(encoding="utf-8").splitlines()
    if not log.is_file() or list(clean_lines(log.read_bytes())) != kept:
        publish([(log, lines.read_bytes())])


def _publish(
    build: Build, graph: GraphInfo, numbers: NumericGates, judged: BuildInfo, folder: Path, steps: Steps
) -> Outcome:
    source, places, engine = build.source, build.places, (folder / "engine.rknn").read_bytes()
    contract = with_proof(source.contract, numbers.proof)
    twin = carry(source.graph.read_bytes(), contract, feeds_from_npz(source.feeds))
    manifest = Manifest(
        family=contract.family,
        stage=contract.stage,
        target=build.target,
        toolkit=Toolkit(TOOLKIT, build.request.toolkit),
        source=contract.source,
        onnx=OnnxTwin(places.onnx.name, sha256_of_bytes(twin), graph.opset, graph.nodes),
        engine=EngineFile(places.engine.name, sha256_of_bytes(engine), len(engine)),
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
        verdicts=(*numbers.verdicts, *graph.verdicts, *judged.verdicts),
        measurements=(*contract.measurements, *graph.measurements, *judged.measurements),
    )
    manifest = _with_board_figures(manifest, places)
    files = [(places.engine, engine), (places.onnx, twin)]
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


def with_proof(contract: Contract, proof: Proof) -> Contract:
    """`contract` with what was proven, as an exported ONNX carries it."""
    return dataclasses.replace(contract, passes=proof.passes, verdicts=proof.verdicts, measurements=proof.measurements)


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
