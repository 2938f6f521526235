"""An engine's entry in the catalogue, of what its manifest says."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from contracts.manifest import Manifest
from contracts.quantisation import FP16
from contracts.thresholds import simulator_db
from contracts.verdicts import Measurement, Status, Verdict
from cost.emission import emission_of
from farm.catalogue import EngineCost, EngineEntry, EngineMeasured, VerdictCounts

BUILD_WALL, BUILD_CPU, BUILD_MEMORY = "build.wall", "build.cpu", "build.peak_memory"
"""Measurements of a build, in its manifest: seconds, seconds, MB."""

BYTES_PER_MB = 10**6
MS_PER_S = 1000.0


@dataclass(frozen=True)
class Standing:
    """Where an engine stands, and what is known of it besides its manifest.

    Attributes:
        voice, width, language, job: as in its entry.
        path, page: relative to the catalogue's folder.
        node: where its job ran.
    """

    voice: str
    width: str
    path: str
    language: str | None = None
    page: str | None = None
    job: str | None = None
    node: str | None = None


def entry_of(manifest: Manifest, standing: Standing) -> EngineEntry:
    """The entry of the engine that `manifest` tells of."""
    quantisation = manifest.quantisation
    return EngineEntry(
        family=manifest.family,
        stage=manifest.stage,
        role=manifest.role,
        voice=standing.voice,
        width=standing.width,
        language=standing.language,
        target=manifest.target,
        toolkit=manifest.toolkit.version,
        precision=quantisation.dtype if quantisation else FP16,
        path=standing.path,
        sha256=manifest.engine.sha256,
        bytes=manifest.engine.bytes,
        onnx_sha256=manifest.onnx.sha256,
        source=manifest.source.name,
        source_sha256=manifest.source.sha256,
        source_kind=manifest.source.kind,
        verdicts=_counts(manifest.verdicts),
        notable=tuple(verdict for verdict in manifest.verdicts if verdict.status is not Status.PASSED),
        simulator_db=simulator_db(manifest.verdicts),
        cost=_cost(manifest),
        aperture=manifest.aperture,
        page=standing.page,
        job=standing.job,
        measured=_measured(manifest, standing.node),
    )


def _counts(verdicts: Iterable[Verdict]) -> VerdictCounts:
    counts = Counter(verdict.status for verdict in verdicts)
    return VerdictCounts(counts[Status.PASSED], counts[Status.FAILED], counts[Status.UNPROVEN])


def _cost(manifest: Manifest) -> EngineCost | None:
    layers, emission = manifest.layers, emission_of(manifest)
    if layers is None:
        return None
    cost = EngineCost(layers.modelled_ms, layers.cycles, layers.rw_kb, layers.count, len(layers.cpu))
    if emission is None:
        return cost
    audio_s = emission.audio_s
    return replace(
        cost,
        unit=emission.unit,
        emitted=emission.count,
        unit_ms=layers.modelled_ms / emission.count,
        real_time_factor=layers.modelled_ms / MS_PER_S / audio_s if audio_s else None,
    )


def _measured(manifest: Manifest, node: str | None) -> EngineMeasured:
    memory_mb = _figure(manifest.measurements, BUILD_MEMORY)
    return EngineMeasured(
        node=node,
        build_s=_figure(manifest.measurements, BUILD_WALL),
        build_cpu_s=_figure(manifest.measurements, BUILD_CPU),
        build_peak_bytes=None if memory_mb is None else round(memory_mb * BYTES_PER_MB),
        board_ms=manifest.board.ms if manifest.board else None,
    )


def _figure(measurements: Iterable[Measurement], name: str) -> float | None:
    found = (figure.measured for figure in measurements if figure.name == name)
    return next((value for value in found if isinstance(value, float) and math.isfinite(value)), None)
