"""The command `bench`: what the streaming steps of a family cost in onnxruntime on this machine, and on the NPU by the
model of its cost, where their engines are at hand."""

from __future__ import annotations

import os
import platform
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from contracts.contract import Contract, Source
from contracts.errors import UserInput
from contracts.manifest import Manifest
from converters.stages import Session, Stage, Streamed, find_stage
from cost.emission import CODE, emission_of
from engine.targets import resolve_target
from rknn_tts.checkpoint_to_onnx import OpenCheckpoint, open_conversions
from rknn_tts.extras import ensure_extras
from rknn_tts.inspection import inspect_file
from rknn_tts.places import engine_places
from rknn_tts.progress import Say
from rknn_tts.request import Request, options
from rknn_tts.streaming_bench import Stream, StreamingBench, bench_stream

if TYPE_CHECKING:
    import onnx_ir as ir

DEFAULT_LENGTH = 192
"""Codes: over 2.5 sliding windows of Qwen3's decoder, 15 s of sound; what its stepwise decoding is proven on too."""

LONGEST = 4096
"""Codes: over five minutes of sound, and no longer utterance is spoken at once."""

DEFAULT_TARGET = "rk3588"

_PROCESSOR = "model name"
"""Of Linux's /proc/cpuinfo."""


@dataclass(frozen=True)
class Machine:
    """What the times were taken on.

    Attributes:
        processor: its name.
        threads: how many a step runs on: all that this process may use.
        onnxruntime: its version.
    """

    processor: str
    threads: int
    onnxruntime: str


@dataclass(frozen=True)
class ModelledStep:
    """The modelled cost of a step on the NPU, from its engine's manifest.

    Attributes:
        codes: how many it takes.
        ms: of one run; modelled, not measured on a board.
        ms_a_code: of one code.
        real_time_factor: that over how long a code sounds.
        manifest: the file that tells.
    """

    codes: int
    ms: float
    ms_a_code: float
    real_time_factor: float
    manifest: str


@dataclass(frozen=True)
class Bench:
    """The result of the command.

    Attributes:
        family, stage: what was timed.
        source: the checkpoint.
        machine: what it was timed on.
        target: the SoC whose modelled cost is told.
        measured: the times on this machine.
        modelled: of those steps whose engines are at hand.
        notes: sentences for the user: what is missing, and which command makes it.
    """

    family: str
    stage: str
    source: Source
    machine: Machine
    target: str
    measured: StreamingBench
    modelled: tuple[ModelledStep, ...]
    notes: tuple[str, ...]


def bench(request: Request, say: Say, clock: Callable[[], float] = time.perf_counter) -> Bench:
    """Time the steps of `request`'s family, and streams of them, on this machine.

    Args:
        request: what is asked.
        say: gets the progress.
        clock: tells the time.

    Raises:
        RknnTtsError: refused, or onnxruntime failed.
    """
    from converters.registry import STAGES

    length = DEFAULT_LENGTH if request.length is None else request.length
    if not 1 <= length <= LONGEST:
        raise UserInput(f"--length {length}: a stream of 1 to {LONGEST} codes is expected.")
    target = resolve_target(request.target or DEFAULT_TARGET)
    stage = find_stage(STAGES, request.family or "", request.stage)
    if stage.stream is None:
        able = " or ".join(f"{each.family} {each.name}" for each in STAGES if each.stream is not None)
        raise UserInput(
            f"{stage.family} {stage.name} does not go along a stream step by step, so there is nothing to bench; "
            f"name {able or 'another family'}."
        )
    origin = open_conversions(request, None, say)[0].origin
    machine = this_machine()
    streamed = _opened(stage, origin, machine.threads, say)
    measured = bench_stream(_stream(streamed, length, say), clock, say.step)
    modelled, notes = _modelled(request, origin, streamed, target, measured.code_ms)
    return Bench(
        stage.family,
        stage.name,
        origin.checkpoint.source,
        machine,
        target,
        measured,
        modelled,
        (*streamed.notes, *notes),
    )


def this_machine() -> Machine:
    """The machine that this process runs on."""
    return Machine(_processor(), len(os.sched_getaffinity(0)), metadata.version("onnxruntime"))


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith(_PROCESSOR))
    return next(named, platform.machine())  # an ARM's file has no name


def _opened(stage: Stage, origin: OpenCheckpoint, threads: int, say: Say) -> Streamed:
    from gates.session import Session as OrtSession

    def open_session(model: ir.Model) -> Session:
        return OrtSession(model, name=str(origin.checkpoint.path), fast_on=threads).run

    assert stage.stream is not None
    ensure_extras(origin.extras, say)
    say.step(f"opening {origin.checkpoint.path.name}")
    return stage.stream(origin.checkpoint, origin.options, open_session)


def _stream(streamed: Streamed, length: int, say: Say) -> Stream:
    runs = {}
    for codes in sorted(streamed.stems):
        say.step(f"opening a step of {codes} codes in onnxruntime")
        runs[codes] = streamed.run(codes)
    return Stream(
        latent=streamed.latent(max(length, *runs)),
        length=length,
        steps=runs,
        cache_numel=streamed.cache_numel,
        samples_per_code=streamed.samples_per_code,
        sample_rate=streamed.sample_rate,
    )


def _modelled(
    request: Request, origin: OpenCheckpoint, streamed: Streamed, target: str, code_ms: float
) -> tuple[tuple[ModelledStep, ...], list[str]]:
    """The modelled cost of those steps whose engines are at hand, and what is to be told of the others."""
    stage, source = origin.stage, origin.checkpoint.source
    contract = Contract(stage.family, stage.name, source, (), ())
    found: list[ModelledStep] = []
    missing: list[str] = []
    notes: list[str] = []
    for codes, stem in sorted(streamed.stems.items()):
        place = engine_places(contract, stem, target, None).manifest
        try:
            found.append(_modelled_step(place, codes, source, code_ms))
        except UserInput as error:
            missing.append(f"{codes}")
            if place.exists():
                notes.append(str(error))
    if missing:
        steps = f"{'steps' if len(missing) > 1 else 'a step'} of {' and of '.join(missing)} codes"
        notes.append(
            f"The cost on {target} of {steps} is not known: {_building(request, target)} builds the engines, whose "
            "manifests this command reads here."
        )
    return tuple(found), notes


def _modelled_step(place: Path, codes: int, source: Source, code_ms: float) -> ModelledStep:
    """The step of so many codes as the manifest at `place` tells it.

    Raises:
        UserInput: it tells nothing of it.
    """
    inspection = inspect_file(place, Path.cwd())
    stale = [note for note in inspection.notes if note.startswith("STALE")]
    if stale:
        raise UserInput(f"{place}: {stale[0]}")
    manifest = inspection.manifest
    if manifest is None or manifest.layers is None or _codes_of(manifest) != codes:
        raise UserInput(f"{place}: tells no cost of a step of {codes} codes.")
    if manifest.source.sha256 != source.sha256:
        raise UserInput(f"{place}: is of another checkpoint (sha256 {manifest.source.sha256[:16]}).")
    ms = manifest.layers.modelled_ms
    return ModelledStep(codes, ms, ms / codes, ms / codes / code_ms, str(place))


def _codes_of(manifest: Manifest) -> int | None:
    emission = emission_of(manifest)
    return emission.count if emission is not None and emission.unit == CODE else None


def _building(request: Request, target: str) -> str:
    """The command that builds the engines of the steps that `request` has timed."""
    words = ["./rknn-tts", "engine"]
    for option in options("engine"):
        value = target if option.name == "target" else getattr(request, option.name)
        if value == option.default or option.name == "json":
            continue
        words += [f"{value}"] if option.positional else [option.flag, f"{value}"]
    return f"`{shlex.join(words)}`"
