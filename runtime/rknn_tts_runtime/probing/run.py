"""Runs the cases of a probe kit: every feed once against what is expected, the first feed again and again for its time.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import dataclasses
import statistics
import time
from pathlib import Path
from typing import Callable, ContextManager

from rknn_tts_runtime.backends.engine import Array, Backend, Engine
from rknn_tts_runtime.board import ROOT
from rknn_tts_runtime.faults import Fault
from rknn_tts_runtime.manifest import EngineManifest
from rknn_tts_runtime.probing.comparison import OutputFigure, compared, worst
from rknn_tts_runtime.probing.conditions import ClockWatch, conditions_before, warnings_of
from rknn_tts_runtime.probing.kit import Case, CaseRun
from rknn_tts_runtime.probing.kit_reading import OpenKit
from rknn_tts_runtime.probing.result import BOARD_BACKEND, CaseMemory, CaseResult, ProbeResult

REPEATS = 5
"""Runs that are timed where nobody says: of five, two that something else delayed leave the median as it is."""

_MS = 1000.0

Watching = Callable[[], ContextManager[object]]
"""Gives what is entered while runs are timed: it watches the NPU's clock."""


def run_kit(
    kit: OpenKit, backend: Backend, say: Callable[[str], object], repeats: int = REPEATS, root: Path = ROOT
) -> ProbeResult:
    """Run every case; a failed one does not keep the others from running.

    Args:
        kit: the kit.
        backend: what runs it.
        say: gets a line before each case.
        repeats: how many runs of each case are timed, at least one.
        root: where the kernel's files stand, that tell of the board.
    """
    conditions, watch = conditions_before(root), ClockWatch(root)
    cases = []
    for number, case in enumerate(kit.kit.cases, start=1):
        say(f"{number} of {len(kit.kit.cases)}: {case.name}")
        cases.append(run_case(kit, case, backend, repeats, watch.watching))
    conditions = dataclasses.replace(conditions, clock=watch.clock)
    return ProbeResult(
        kit_sha256=kit.sha256,
        subject=kit.kit.subject,
        backend=backend.name,
        versions=dict(backend.versions()),
        conditions=conditions,
        warnings=warnings_of(conditions) if backend.name == BOARD_BACKEND else (),
        cases=tuple(cases),
    )


def run_case(
    kit: OpenKit,
    case: Case,
    backend: Backend,
    repeats: int,
    watching: Watching,
    clock: Callable[[], float] = time.perf_counter,
) -> CaseResult:
    """Run one case; whatever is wrong with its engine fails it, and is told as its problem.

    Args:
        kit: the kit that it is of.
        case: the case.
        backend: what runs it.
        repeats: how many runs are timed, at least one.
        watching: entered while they are.
        clock: seconds.
    """
    manifest = kit.manifests[case.name]
    nothing = CaseResult(
        name=case.name,
        kind=case.kind,
        what=case.what,
        proves=case.proves,
        engine_sha256=manifest.engine_sha256,
        passed=False,
        problem="",
        outputs=(),
        feeds=len(case.runs),
        ms=None,
        least_ms=None,
        repeats=0,
        core_mask=None,
        memory=_memory(backend, manifest),
    )
    try:
        engine = backend.open(manifest)
    except Fault as fault:
        return dataclasses.replace(nothing, problem=f"it could not be loaded: {fault}")
    try:
        figures, seconds = _figures(kit, case, engine, repeats, watching, clock)
    except Fault as fault:
        return dataclasses.replace(nothing, problem=f"it could not be run: {fault}", core_mask=_core_mask(engine))
    finally:
        engine.close()
    return dataclasses.replace(
        nothing,
        passed=all(figure.passed for figure in figures),
        outputs=figures,
        ms=statistics.median(seconds) * _MS,
        least_ms=min(seconds) * _MS,
        repeats=repeats,
        core_mask=_core_mask(engine),
    )


def _figures(
    kit: OpenKit, case: Case, engine: Engine, repeats: int, watching: Watching, clock: Callable[[], float]
) -> tuple[tuple[OutputFigure, ...], list[float]]:
    """By output the worst figure of all feeds, and the times of the first feed's further runs, in seconds."""
    found: dict[str, list[OutputFigure]] = {}
    seconds: list[float] = []
    for number, run in enumerate(case.runs):
        feed = {given.name: kit.array(given.file) for given in run.inputs}
        expected = {output.name: kit.array(output.file) for output in run.outputs}
        _judge(run, expected, engine.run(feed), found)  # of the first feed this is the run that warms up
        if number == 0:
            with watching():
                for _ in range(repeats):
                    begun = clock()
                    outputs = engine.run(feed)
                    seconds.append(clock() - begun)
            # What is right once may be wrong when it is run again: buffers of the run before may show.
            _judge(run, expected, outputs, found)
    return tuple(worst(figures) for figures in found.values()), seconds


def _judge(
    run: CaseRun, expected: dict[str, Array], outputs: dict[str, Array], found: dict[str, list[OutputFigure]]
) -> None:
    for output in run.outputs:
        figures = found.setdefault(output.name, [])
        if output.name not in outputs:
            figures.append(OutputFigure(output.name, None, output.bound_db, None, "the engine did not give it"))
        else:
            figures.append(compared(output.name, expected[output.name], outputs[output.name], output.bound_db))


def _memory(backend: Backend, manifest: EngineManifest) -> CaseMemory | None:
    try:
        use = backend.memory(manifest)
    except Fault:  # why, loading the engine will say
        return None
    return None if use is None else CaseMemory(use.weight_bytes, use.internal_bytes, use.measured)


def _core_mask(engine: Engine) -> str | None:
    """The NPU cores that an engine was granted; None of one that has none."""
    mask = getattr(engine, "core_mask", None)
    return None if mask is None else str(mask)
