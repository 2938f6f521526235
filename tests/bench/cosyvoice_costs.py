"""What CosyVoice's engines cost and give, of their manifests, beside the tables of their pages."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from contracts.manifest import Manifest, read_manifest
from cost.aperture import MIB
from rknn_tts.steps import ROOT
from tests.bench.measured import Measured, measure

TARGET = "rk3588"

SAME_DB = 0.5
"""Between the simulator's figure here and the page's: sums of other machines end in other digits."""

_BUILD = "build."
_BUILDING = f"building for {TARGET}"
"""What is said where the toolkit runs, and not where its engine is found; behind it, of which engine."""
_ROW = re.compile(r"^\| ([^|]+) \| ([\d.]+) MB \| ([\d.]+) \| (\d+) \| (\d+) \| (\d+) \| ([\d.]+) dB \|", re.MULTILINE)


@dataclass(frozen=True)
class Cost:
    """Of one engine, and of its build, which may have been an earlier command's.

    Attributes:
        stage, role: what the engine is called among others.
        nodes: of its graph, constants not counted.
        size_mb, layers, mcycles, rw_mb, modelled_ms: of the file and the layer table.
        cpu: layers on the CPU, by operator, without inputs and outputs; cpu_rw_mb: their traffic.
        regtask: REGTASK lines.
        context_mib, mapping_mib: what it takes of the address space, in all and in one mapping.
        gates: what each gate and figure of quality measured, by its name.
        build: seconds (`wall`, `cpu`) and `peak_memory` in MB of the toolkit's process, its simulator included in the
            memory.
    """

    stage: str | None
    role: str | None
    nodes: int
    size_mb: float
    layers: int
    mcycles: float
    rw_mb: float
    modelled_ms: float
    cpu: dict[str, int]
    cpu_rw_mb: float
    regtask: int
    context_mib: float
    mapping_mib: float
    gates: dict[str, float]
    build: dict[str, float]

    @property
    def cells(self) -> dict[str, float]:
        """What a page shows of it, but for the simulator and the build."""
        counts = {"layers": self.layers, "cpu": sum(self.cpu.values()), "regtask": self.regtask}
        return {"size": self.size_mb, "ms": self.modelled_ms, **counts}

    @property
    def least_fp32(self) -> tuple[str, float]:
        """The gate in fp32 that is nearest to nothing, and its dB."""
        return min(((name, db) for name, db in self.gates.items() if name.startswith("fp32.")), key=lambda it: it[1])


def cost_of(manifest: Manifest) -> Cost:
    """Of an engine of ours."""
    layers, aperture = manifest.layers, manifest.aperture
    assert layers is not None
    assert aperture is not None
    figures = {figure.name: float(figure.measured or 0) for figure in manifest.measurements}
    return Cost(
        stage=manifest.stage,
        role=manifest.role,
        nodes=manifest.onnx.nodes,
        size_mb=manifest.engine.bytes / 1e6,
        layers=layers.count,
        mcycles=layers.cycles / 1e6,
        rw_mb=layers.rw_kb / 1e3,
        modelled_ms=layers.modelled_ms,
        cpu=dict(Counter(layer.op for layer in layers.cpu)),
        cpu_rw_mb=sum(layer.rw_kb for layer in layers.cpu) / 1e3,
        regtask=sum(field.count for field in manifest.log.regtask),
        context_mib=aperture.context_bytes / MIB,
        mapping_mib=aperture.largest_mapping_bytes / MIB,
        gates={
            verdict.gate: float(verdict.measured or 0) for verdict in manifest.verdicts if _is_number(verdict.measured)
        },
        build={name.removeprefix(_BUILD): value for name, value in figures.items() if name.startswith(_BUILD)},
    )


def _is_number(measured: float | str | None) -> bool:
    """Whether a gate measured a number, and not names or nothing; "inf" is one."""
    return measured == "inf" or (isinstance(measured, (int, float)) and not isinstance(measured, bool))


@dataclass(frozen=True)
class Run:
    """A command: what it took, and the engines that it gave, by their stems."""

    measured: Measured
    engines: dict[str, Cost]

    @property
    def built(self) -> set[str]:
        """Which of the engines it built, and did not find."""
        said = {
            text.partition(": ")[0].removeprefix(_BUILDING) for _, text in self.measured.stamps if _BUILDING in text
        }
        return {
            stem
            for stem, cost in self.engines.items()
            if said & {f" ({cost.stage} {cost.role})", f" ({cost.role})", f" ({cost.stage})"}
            or (len(self.engines) == 1 and "" in said)
        }


def run(family: str, folder: Path, cache: Path, *options: str) -> Run:
    """`rknn-tts engine` of a stand-in of the published sizes, in the new `folder`."""
    folder.mkdir()
    command: list[str | Path] = [ROOT / "rknn-tts", "engine", family, "--checkpoint", "random", "--target", TARGET]
    command += [*options, "--output", folder / "engines", "--json"]
    measured = measure(command, folder, {**os.environ, "RKNN_TTS_CACHE": str(cache)})
    manifests = [path for path in (folder / "engines").glob("*.json") if not path.name.endswith(".set.json")]
    return Run(measured, {path.stem: cost_of(read_manifest(path)) for path in sorted(manifests)})


def rows_told(page: Path) -> dict[str, dict[str, str]]:
    """The engines of a page's table of costs, each to its cells as they stand there; `db` is the simulator's."""
    names = ("size", "ms", "layers", "cpu", "regtask", "db")
    return {row[0]: dict(zip(names, row[1:], strict=True)) for row in _ROW.findall(page.read_text(encoding="utf-8"))}


def told_otherwise(cost: Cost, told: dict[str, str]) -> list[str]:
    """The cells of a page's row that are not those of `cost`, to as many digits as the page has."""
    wrong = []
    for name, value in cost.cells.items():
        digits = len(told[name].partition(".")[2])
        if f"{value:.{digits}f}" != told[name]:
            wrong.append(f"{name} {value:.{digits}f}, the page has {told[name]}")
    simulated = cost.gates.get("simulator")
    if simulated is not None and abs(simulated - float(told["db"])) > SAME_DB:
        wrong.append(f"simulator {simulated:.1f} dB, the page has {told['db']}")
    return wrong


def lines_of(runs: Sequence[Run]) -> list[str]:
    """A line an engine, and one a command, for the person."""
    lines = []
    for each in runs:
        for stem, cost in each.engines.items():
            gate, least = cost.least_fp32
            build, db = cost.build, cost.gates.get("simulator")
            made = f"{build['cpu']:.0f} s of CPU, {build['peak_memory']:.0f} MB" if stem in each.built else "found"
            lines.append(
                f"{stem}: {cost.nodes} nodes, {cost.size_mb:.1f} MB, {cost.modelled_ms:.2f} modelled ms, {cost.layers} "
                f"layers, on the CPU {cost.cpu or 'nothing'}, REGTASK {cost.regtask}, {cost.context_mib:.0f} MiB, "
                f"simulator {'-' if db is None else f'{db:.1f} dB'}, {gate} {least:.0f} dB; {made}"
            )
        ran = each.measured
        lines.append(
            f"the command: {ran.wall_s:.0f} s, {ran.cpu_s:.0f} s of CPU, {ran.process_peak_mb:.0f} MB in one process, "
            f"{ran.tree_peak_mb:.0f} MB in all"
        )
    return lines


def write_figures(report: Path, runs: Mapping[str, Run]) -> None:
    """All figures of `runs`, as JSON in the file `report`."""
    data = {
        name: {
            "engines": {stem: asdict(cost) for stem, cost in each.engines.items()},
            "command": {key: value for key, value in vars(each.measured).items() if isinstance(value, float)},
            "steps": each.measured.stamps,
        }
        for name, each in runs.items()
    }
    report.parent.mkdir(exist_ok=True)
    report.write_text(json.dumps({**data, "load_average": os.getloadavg()}, indent=1) + "\n", encoding="utf-8")
