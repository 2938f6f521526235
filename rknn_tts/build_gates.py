"""The gates on a build: what the toolkit printed, its layer table, and what it simulated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from contracts.contract import Contract
from contracts.manifest import Aperture, Layers, LogSummary, Memory
from contracts.thresholds import SIMULATOR, SIMULATOR_DB, own_simulator_db
from contracts.verdicts import Measurement, Verdict, failure, passed, unproven
from cost.aperture import aperture_of, judge_aperture
from cost.summary import summarise_layers, summarise_memory
from engine.build import BuildResult
from gates.drift import GATE as DRIFT
from logs.judge import judge_log
from logs.layer_table import Layer, LayerTable, parse_layer_table
from logs.regtask import RegtaskKey
from rknn_tts.carried import Feed, Outputs
from rknn_tts.numbers import BYTES_PER_MB


@dataclass(frozen=True)
class Judged:
    """What a build came to.

    Attributes:
        verdicts: of the log and of the simulator.
        measurements: time and memory of the build that made this engine.
        layers: the layer table in sum; None where the log held none.
        every_layer: its rows.
        memory: the memory totals.
        log: what the log said.
        aperture: what the engine takes of the NPU's address space; None where the log does not state its memory.
    """

    verdicts: tuple[Verdict, ...]
    measurements: tuple[Measurement, ...]
    layers: Layers | None
    every_layer: tuple[Layer, ...]
    memory: Memory | None
    log: LogSummary
    aperture: Aperture | None


def judge_build(
    build: BuildResult,
    onnx: Path,
    contract: Contract,
    feeds: Sequence[Feed],
    accepted: Sequence[RegtaskKey],
    layers_file: str,
    originals: Sequence[Outputs] = (),
    unsimulated: str | None = None,
    host: Path | None = None,
) -> Judged:
    """Judge the log, the layer table and the simulator's outputs of `build`, which compiled `onnx`.

    Args:
        build: the build's result.
        onnx: the graph the toolkit was given.
        contract: its contract; its threshold `simulator` counts, and `simulator.NAME` for the output NAME.
        feeds: what the simulator ran on.
        accepted: REGTASK keys the user builds past.
        layers_file: the file that will hold every layer, as the manifest names it.
        originals: what the unpatched original gives on each feed, whose last axis may be shorter than the simulator's:
            the rest is padding then; none: the simulator is compared with onnxruntime on `onnx`.
        unsimulated: why the simulator was not run, a sentence; None where it was.
        host: the host half's file, for a drift behind it; None where there is none.
    """
    lines = kept_lines(build.lines)
    judged = judge_log(lines, accepted)
    table = parse_layer_table(lines)
    memory = summarise_memory(table) if table else None
    tensors = (*contract.inputs, *contract.outputs)
    aperture = aperture_of(table, build.engine.stat().st_size, tensors) if table else None
    if unsimulated is None:
        figures = _judge_simulated(build, onnx, contract, feeds, originals, host)
    else:
        from gates.quality import unproven_quality  # numpy: only where a build is judged

        owed = (SIMULATOR, DRIFT) if contract.drift is not None else (SIMULATOR,)
        figures = [*(unproven(gate, unsimulated) for gate in owed), *unproven_quality(contract.quality, unsimulated)]
    return Judged(
        verdicts=(
            *judged.verdicts,
            layer_table_verdict(table, memory),
            *([judge_aperture(table, aperture)] if table and aperture else []),
            *(figure for figure in figures if isinstance(figure, Verdict)),
        ),
        measurements=(*_figures(build), *(figure for figure in figures if isinstance(figure, Measurement))),
        layers=summarise_layers(table, layers_file) if table else None,
        every_layer=table.layers if table else (),
        memory=memory,
        log=judged.summary,
        aperture=aperture,
    )


def _judge_simulated(
    build: BuildResult,
    onnx: Path,
    contract: Contract,
    feeds: Sequence[Feed],
    originals: Sequence[Outputs],
    host: Path | None,
) -> list[Verdict | Measurement]:
    """What the simulator's outputs come to, how they sound, and what the host half makes of them; see `judge_build`."""
    from gates.quality import judge_quality
    from gates.simulator import judge_simulator, judge_simulator_by_original

    threshold = contract.thresholds.get(SIMULATOR, SIMULATOR_DB)
    own_db = own_simulator_db(contract.thresholds)
    owed = _run(onnx, feeds) if not originals or contract.drift is not None else []
    judged: list[Verdict | Measurement] = []
    if originals:
        judged += judge_simulator_by_original(originals, build.simulated, threshold, own_db)
    else:
        judged += judge_simulator(owed, build.simulated, threshold, own_db=own_db)
    if contract.quantisation is not None and not contract.quantisation.insisted:
        judged = [_by_figures(contract, item) for item in judged]
    judged += judge_quality(contract.quality, feeds, originals or owed, build.simulated, by_original=bool(originals))
    if contract.drift is not None:
        from rknn_tts.host_drift import measure_drift

        called = contract.host.file if contract.host is not None else ""
        judged.append(measure_drift(contract.drift, host, feeds, owed, build.simulated, called))
    return judged


def _by_figures(contract: Contract, item: Verdict | Measurement) -> Verdict | Measurement:
    """The ratio of an engine that a stage offers in 8 bits: a measurement where bounded figures judge every output.

    8 bits keep 33 to 36 dB of a layer of Gaussian inputs (measured, 2.3.2), whatever the layer: what the ratio is asked
    in fp16 says nothing there. What could not be compared fails all the same.
    """
    bounded = {figure.output for figure in contract.quality if figure.bound is not None}
    if isinstance(item, Measurement) or not bounded or not bounded >= {spec.name for spec in contract.outputs}:
        return item
    if not isinstance(item.measured, float) or not math.isfinite(item.measured):
        return item
    reason = f"{item.detail}; an engine of 8 bits is judged by the figures of its outputs"
    return Measurement(name=item.gate, measured=item.measured, unit=item.unit, reason=reason)


def _run(onnx: Path, feeds: Sequence[Feed]) -> list[Outputs]:
    from converters.onnx_file import read_onnx
    from gates.session import Session  # onnxruntime: only where a build is judged, not where its verdicts are found

    session = Session(read_onnx(onnx, in_place=True), name=str(onnx))
    return [session.run(feed) for feed in feeds]


def kept_lines(file: Path) -> list[str]:
    """The clean lines of a build in `file`: none is empty, and only a line feed ends one, unlike `str.splitlines`."""
    return [line for line in file.read_text(encoding="utf-8").split("\n") if line]


def layer_table_verdict(table: LayerTable | None, memory: Memory | None) -> Verdict:
    """Whether a log's layer table is there as a whole, with the memory totals behind it."""
    gate = "log.layer_table"
    if table is None:
        return failure(gate, "the log holds no layer table, so nothing tells where layers run")
    if table.unread:
        return failure(gate, f"{len(table.unread)} rows of the layer table could not be read, first: {table.unread[0]}")
    if not table.layers:
        return failure(gate, "the log's layer table holds no layer, so nothing tells where layers run", 0, "layers")
    if memory is None:
        return failure(gate, "the log does not state the memory totals behind its layer table: it is cut off")
    return passed(gate, "where each layer runs, and what it costs, is known", len(table.layers), "layers")


def _figures(build: BuildResult) -> tuple[Measurement, ...]:
    # A build is found again by later commands, perhaps from a cache that another machine filled.
    reason = "of the machine and the moment that compiled this engine; a build that is found again measures nothing"
    peak_mb = round(build.peak_rss_bytes / BYTES_PER_MB)
    return (
        Measurement(name="build.wall", measured=round(build.wall_s, 2), unit="s", reason=reason),
        Measurement(name="build.cpu", measured=round(build.cpu_s, 2), unit="s", reason=reason),
        Measurement(name="build.peak_memory", measured=peak_mb, unit="MB", reason=reason),
    )
