"""What Qwen3's streaming step costs beside the reference's design, both built here, of 64 codes at the seam `hidden`.

The reference's design is `tests/qwen3_reference_step.py`, handed to the toolkit as its exporter writes it. Ours is what
`rknn-tts engine qwen3 --checkpoint random` makes, with all its gates, as a user runs it. Weights are random in both:
no layer's cost depends on them. `make bench` runs it, in ten minutes on a machine that does nothing else, and 16 GB; it
fails where a bound of issue 6 is not met. All figures are in `build-logs/bench-qwen3.json`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import pytest

from contracts.manifest import Manifest, read_manifest
from contracts.thresholds import OF_OUTPUT
from rknn_tts.steps import ROOT
from tests.bench.measured import Measured, measure
from tests.bench.qwen3_costs import Cost, built_reference, cost_of, ratios

TARGET, CODES = "rk3588", 64

BOUNDS = {"mcycles": 0.80, "rw_mb": 0.65, "modelled_ms": 0.50}
"""Issue 6: ours over the reference's, per code."""

WHY_MISSED = {
    "mcycles": "each affine step of a sine is a convolution, with which modelled time is least; with two a sine "
    "it is 0.79, at 1.50 of the traffic and 0.46 of the time",
    "rw_mb": "convolutions, weights and the sums behind the sines alone leave a sine fewer readings than it has pieces"
    " to be made of (docs/qwen3.md, What limits it)",
}
"""Bounds that are not met yet, and why; they fail."""

SIMULATED_CODES = 16
"""Of the small step, which is simulated: 64 codes would take 20 GB."""

MOST_CPU_LAYERS = 10
"""Issue 6, beyond inputs and outputs."""

LEAST_DB = {"audio": 33.0, "cache_out": 43.0}
"""Issue 6, of the toolkit's simulator."""

MOST_OWN_CPU_S = 60.0
"""Issue 6: what the whole command takes besides the toolkit's processes, in seconds of CPU."""

PUBLISHED = "published for the seam codes: 647 layers, 483 Mcycles, 3414 MB, 3111 modelled ms, 78 REGTASK, 777 s of CPU"
"""Of the reference's design (family-facts), which has the quantizer's tables inside."""

REPORT = ROOT / "build-logs" / "bench-qwen3.json"


@dataclass(frozen=True)
class Ours:
    """What the command made, and what it took."""

    manifest: Manifest
    first: Manifest
    run: Measured

    @property
    def cost(self) -> Cost:
        """Of the engine and the toolkit's process."""
        return cost_of(self.manifest)

    @property
    def own_cpu_s(self) -> float:
        """Of everything but the toolkit's process: converting, rewriting, every gate."""
        return self.run.cpu_s - self.cost.build_cpu_s - cost_of(self.first).build_cpu_s


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Cost:
    return built_reference(CODES, TARGET, tmp_path_factory.mktemp("qwen3") / "theirs")


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Ours:
    """From an empty cache of finished steps."""
    folder = tmp_path_factory.mktemp("qwen3-ours")
    command = [str(ROOT / "rknn-tts"), "engine", "qwen3", "--checkpoint", "random", "--codes"]
    command += [f"{CODES},{SIMULATED_CODES}", "--target", TARGET, "--output", str(folder / "engines"), "--json"]
    run = measure(command, folder, {**os.environ, "RKNN_TTS_CACHE": str(folder / "cache")})
    main, first = (next((folder / "engines").glob(f"*-{role}.json")) for role in ("main", "first"))
    return Ours(read_manifest(main), read_manifest(first), run)


def test_figures_are_shown(theirs: Cost, ours: Ours, capsys: pytest.CaptureFixture[str]) -> None:
    found = ratios(ours.cost, theirs)
    write_report(theirs, ours, found)
    with capsys.disabled():
        print("\n".join(["", *table(theirs, ours, found), f"All figures: {REPORT}"]))  # noqa: T201
    assert found.keys() == BOUNDS.keys()


@pytest.mark.parametrize("figure", BOUNDS)
def test_a_step_costs_less_than_the_reference_design(theirs: Cost, ours: Ours, figure: str) -> None:
    assert ratios(ours.cost, theirs)[figure] <= BOUNDS[figure], WHY_MISSED.get(figure)


def test_few_layers_of_a_step_run_on_the_cpu(ours: Ours) -> None:
    assert ours.cost.cpu_layers <= MOST_CPU_LAYERS, ours.cost.cpu


def test_a_step_overflows_fewer_hardware_fields_than_the_reference_design(theirs: Cost, ours: Ours) -> None:
    assert ours.cost.fatal == 0, ours.cost.regtask
    assert ours.cost.regtask_lines < theirs.regtask_lines, ours.cost.regtask


@pytest.mark.parametrize("output", LEAST_DB)
def test_the_simulator_computes_a_step_right(ours: Ours, output: str) -> None:
    measured = simulated_db(ours.first)
    assert measured[output] >= LEAST_DB[output], measured


def test_our_own_share_of_a_build_is_short(ours: Ours) -> None:
    assert ours.own_cpu_s < MOST_OWN_CPU_S, seconds_by_step(ours)


def simulated_db(manifest: Manifest) -> dict[str, float]:
    """The least SNR of each output in the toolkit's simulator, as its gate measured it."""
    measured = {verdict.gate: verdict.measured for verdict in manifest.verdicts}
    return {output: float(measured[f"{OF_OUTPUT}{output}"] or "nan") for output in LEAST_DB}


def seconds_by_step(ours: Ours) -> dict[str, float]:
    """Wall seconds of each step that the command announced."""
    starts = [(0.0, "start-up"), *ours.run.stamps]
    ends = [start for start, _ in starts[1:]] + [ours.run.wall_s]
    return {text: round(end - start, 1) for (start, text), end in zip(starts, ends, strict=True)}


def write_report(theirs: Cost, ours: Ours, found: Mapping[str, float]) -> None:
    """All figures, as JSON."""
    run = {name: value for name, value in vars(ours.run).items() if isinstance(value, float)}
    data = {
        "ours": asdict(ours.cost),
        "theirs": asdict(theirs),
        "ratios": dict(found),
        "bounds": BOUNDS,
        "simulator_db": simulated_db(ours.first),
        "command": {**run, "own_cpu_s": ours.own_cpu_s, "steps": seconds_by_step(ours)},
        "load_average": os.getloadavg(),
    }
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def table(theirs: Cost, ours: Ours, found: Mapping[str, float]) -> list[str]:
    """Lines for the person."""
    lines = [f"{'':20}{'ours':>10}{'reference':>11}{'ratio':>8}  bound"]
    for name in ("layers", "mcycles", "rw_mb", "modelled_ms", "cpu_layers", "cpu_rw_mb", "regtask_lines", "nodes",
                 "build_cpu_s", "build_wall_s", "peak_mb"):  # fmt: skip
        mine, other = float(getattr(ours.cost, name)), float(getattr(theirs, name))
        ratio = f"{mine / other:8.3f}" if other else f"{'-':>8}"
        bound = f"<= {BOUNDS[name]:.2f} {'met' if found[name] <= BOUNDS[name] else 'NOT MET'}" if name in BOUNDS else ""
        lines.append(f"{name:20}{mine:10.1f}{other:11.1f}{ratio}  {bound}".rstrip())
    share = ours.own_cpu_s / ours.cost.build_cpu_s
    return [
        *lines,
        f"on the CPU: ours {ours.cost.cpu or 'nothing'}; reference {theirs.cpu}",
        f"REGTASK: ours {ours.cost.regtask or 'none'}; reference {theirs.regtask}",
        f"simulator: {', '.join(f'{name} {value:.1f} dB' for name, value in simulated_db(ours.first).items())}",
        f"besides the toolkit: {ours.own_cpu_s:.1f} s of CPU (at most {MOST_OWN_CPU_S:g}), {share:.3f} of its",
        f"all processes held {ours.run.tree_peak_mb:.0f} MB at most",
        "build_* and peak_mb are of the toolkit's process; neither has its simulator in it",
        *(f"{seconds:8.1f} s  {step}" for step, seconds in seconds_by_step(ours).items()),
        PUBLISHED,
    ]
