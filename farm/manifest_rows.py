"""Rows of the table from the manifests of engines that stand in the output folder, of jobs that left no outcome.

A manifest tells what the toolkit took (`build.wall`, `build.cpu`, `build.peak_memory`); rknn-tts beside it takes more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from contracts.errors import UserInput
from contracts.manifest import Manifest, read_manifest
from farm.jobs import Job, Kind
from farm.rows import Key, Row, Table, merged, table_of

OWN_BYTES = 420 * 10**6
"""What rknn-tts holds beside the toolkit when that holds most: 303 MB of Inflect, 335 of Piper, 419 of Kokoro (measured
of whole ladders and sets, rk3588, 2.3.2)."""

OWN_TIMES = 1.3
"""How many times the toolkit's time a compile takes: 1.15 of Kokoro, 1.3 of Piper, 1.5 of Inflect (measured alike)."""

BYTES_PER_MB = 10**6


def from_manifests(output: Path, jobs: Iterable[Job]) -> Table:
    """What those compile jobs of `jobs` took whose engines stand in their folder below `output`.

    Manifests that cannot be read, of another stage, target or toolkit, or that tell nothing of their build, are passed
    over: they are a farm's engines by chance, and their jobs are measured when they are done.
    """
    rows: dict[Key, Row] = {}
    for job in jobs:
        if job.kind is not Kind.COMPILE:
            continue
        row = _row_of(job, _manifests(output / job.folder, job))
        if row is not None:
            rows[row.key] = merged(rows[row.key], row) if row.key in rows else row
    return table_of(rows, 0.0)


def _manifests(folder: Path, job: Job) -> list[tuple[Path, Manifest]]:
    """The manifests of the engines that `job` makes, with their places."""
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            manifest = read_manifest(path)
        except UserInput:
            continue
        made = (manifest.family, manifest.stage, manifest.target, manifest.toolkit.version)
        if made == (job.family, job.stage, job.target, job.toolkit):
            found.append((path, manifest))
    return found


def _row_of(job: Job, manifests: Sequence[tuple[Path, Manifest]]) -> Row | None:
    """What the engines of one job took together, built one after the other; None where one does not tell."""
    told = [_figures(manifest) for _, manifest in manifests]
    figures = [figure for figure in told if figure is not None]
    if not figures or len(figures) < len(told):
        return None
    wall_s = OWN_TIMES * sum(wall for wall, _, _ in figures)
    cpu_s = OWN_TIMES * sum(cpu for _, cpu, _ in figures)
    return Row(
        kind=job.kind,
        family=job.family,
        stage=job.stage,
        width=job.width,
        target=job.target,
        toolkit=job.toolkit,
        checkpoint_bytes=job.checkpoint_bytes,
        times=1,
        peak_bytes=OWN_BYTES + max(round(peak_mb * BYTES_PER_MB) for _, _, peak_mb in figures),
        wall_s=wall_s,
        largest_wall_s=wall_s,
        cpu_s=cpu_s,
        largest_cpu_s=cpu_s,
        disk_bytes=sum(_left_bytes(path, manifest) for path, manifest in manifests),
    )


def _figures(manifest: Manifest) -> tuple[float, float, float] | None:
    """Seconds on the clock and of processors, and MB, of one build; None where one of them is missing."""
    told = {figure.name: figure.measured for figure in manifest.measurements}
    wall, cpu, peak = (told.get(f"build.{name}") for name in ("wall", "cpu", "peak_memory"))
    if isinstance(wall, (int, float)) and isinstance(cpu, (int, float)) and isinstance(peak, (int, float)):
        return wall, cpu, peak
    return None


def _left_bytes(path: Path, manifest: Manifest) -> int:
    """The size of an engine, its twin and its manifest."""
    files = [path, path.parent / manifest.onnx.file, path.parent / manifest.engine.file]
    return sum(file.stat().st_size for file in files if file.is_file())
