"""What a build made, as the files of its result folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from contracts.files import sha256_of
from contracts.serial import from_json, to_json
from engine.child import ChildResult
from engine.endings import WorkerReport
from engine.folders import new_folder
from engine.request import Array

ENGINE_FILE, LINES_FILE, SIMULATED_FILE, SUMMARY_FILE = "engine.rknn", "lines.log", "simulated.npz", "build.json"


@dataclass(frozen=True)
class BuildResult:
    """What a build made.

    Attributes:
        engine: the engine's file, in the result folder.
        engine_sha256: its digest.
        lines: the clean lines of the log (UTF-8), in the result folder.
        simulated: for each window of feeds, each output by name as the toolkit's simulator computed it (float32, in
            the shape of the ONNX).
        versions: of "rknn-toolkit2", its libraries, "python", and "torch" ("stand-in" or a version).
        disabled_rules: fuse rules of the toolkit that were left out: those asked for, and one that crashed.
        fixed_addresses: whether the compiler ran in memory whose addresses are always the same
            (engine.steady_memory). Where it could not (`ulimit -v`), some 15 to 500 bytes may be others in another
            checkout or on another machine (measured, 2.3.2).
        peak_rss_bytes, wall_s, cpu_s: what the build took.
    """

    engine: Path
    engine_sha256: str
    lines: Path
    simulated: tuple[dict[str, Array], ...]
    versions: dict[str, str]
    disabled_rules: tuple[str, ...]
    fixed_addresses: bool
    peak_rss_bytes: int
    wall_s: float
    cpu_s: float


@dataclass(frozen=True)
class _Summary:
    """`build.json` of a result folder."""

    engine_sha256: str
    outputs: tuple[str, ...]
    windows: int
    fixed_addresses: bool
    peak_rss_bytes: int
    wall_s: float
    cpu_s: float
    versions: dict[str, str] = field(default_factory=dict)
    disabled_rules: tuple[str, ...] = ()


def read_build(result_folder: Path) -> BuildResult:
    """The result that `build_engine` left in `result_folder` (or that was copied there, as from a cache).

    Raises:
        OSError, ValueError: there is none, or it does not hold one array for each window and output.
    """
    summary = _read_summary(result_folder)
    simulated: tuple[dict[str, Array], ...] = ()
    if summary.windows:
        with np.load(result_folder / SIMULATED_FILE, allow_pickle=False) as arrays:
            simulated = _by_name(arrays, summary)
    return BuildResult(
        engine=result_folder / ENGINE_FILE,
        engine_sha256=summary.engine_sha256,
        lines=result_folder / LINES_FILE,
        simulated=simulated,
        versions=summary.versions,
        disabled_rules=summary.disabled_rules,
        fixed_addresses=summary.fixed_addresses,
        peak_rss_bytes=summary.peak_rss_bytes,
        wall_s=summary.wall_s,
        cpu_s=summary.cpu_s,
    )


def read_disabled_rules(result_folder: Path) -> tuple[str, ...]:
    """The fuse rules that the build in `result_folder` left out.

    Raises:
        OSError, ValueError: there is none.
    """
    return _read_summary(result_folder).disabled_rules


def _read_summary(result_folder: Path) -> _Summary:
    return from_json(_Summary, json.loads((result_folder / SUMMARY_FILE).read_text(encoding="utf-8")), SUMMARY_FILE)


def _by_name(arrays: Mapping[str, Array], summary: _Summary) -> tuple[dict[str, Array], ...]:
    expected = {f"{window}_{index}" for window in range(summary.windows) for index in range(len(summary.outputs))}
    if set(arrays) != expected:
        raise ValueError(
            f"{SIMULATED_FILE} holds {len(set(arrays))} arrays where {summary.windows} windows of "
            f"{len(summary.outputs)} outputs were simulated"
        )
    return tuple(
        {name: arrays[f"{window}_{index}"] for index, name in enumerate(summary.outputs)}
        for window in range(summary.windows)
    )


def keep_build(
    folder: Path,
    result_folder: Path,
    child: ChildResult,
    report: WorkerReport,
    windows: int,
    disabled_rules: tuple[str, ...] = (),
) -> None:
    """Moves what the worker made in `folder` to `result_folder`, whole or not at all.

    Raises:
        OSError: it cannot be written, or the disk is full.
    """
    summary = _Summary(
        engine_sha256=sha256_of(folder / ENGINE_FILE),
        outputs=report.outputs,
        windows=windows,
        fixed_addresses=report.fixed_addresses,
        peak_rss_bytes=max(child.peak_rss_bytes, report.peak_rss_bytes),
        wall_s=child.wall_s,
        cpu_s=child.cpu_s,
        versions=report.versions,
        disabled_rules=disabled_rules,
    )
    with new_folder(result_folder) as partial:
        for name in (ENGINE_FILE, LINES_FILE, *([SIMULATED_FILE] if windows else [])):
            shutil.move(folder / name, partial / name)
        (partial / SUMMARY_FILE).write_text(json.dumps(to_json(summary), indent=1), encoding="utf-8")
