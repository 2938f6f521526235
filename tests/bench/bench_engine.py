"""What `rknn-tts engine piper --window 109` costs over a bare conversion script of the same graph: time, CPU, memory.

`make bench` runs it. It fails only where a command fails: figures are reported beside their bounds, in a table and in
`build-logs/bench-engine.json`. Run it on a machine that does nothing else.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from engine.environment import converter_python
from rknn_tts.carried import without_carried
from rknn_tts.steps import CHECKPOINTS_FOLDER, ROOT
from tests.bench.measured import Measured, measure
from tests.bench.ratios import Figure

FAMILY, TARGET, WINDOW = "piper", "rk3588", "109"
"""One window, where the default is a ladder: the bare script builds one graph."""

ROUNDS = 3
"""Of which the median counts; ours and the bare script take turns, so that a slow spell of the machine hits both."""

BOUND = 2.0
"""Issue 2: cold wall and CPU over the bare script's."""

REPORT = ROOT / "build-logs" / "bench-engine.json"


@dataclass(frozen=True)
class Round:
    """One round: the cold command, the same again, and the bare script on the graph that the first compiled."""

    cold: Measured
    repeated: Measured
    bare: Measured


def test_engine_over_a_bare_conversion_script(
    fetched_voice: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rounds = [run_round(tmp_path / str(number), fetched_voice) for number in range(ROUNDS)]
    found, shares = figures(rounds), where_the_time_goes(middle(rounds, lambda r: r.cold.wall_s).cold)
    data = {
        "figures": [{**asdict(figure), "ratio": figure.ratio} for figure in found],
        "cold_seconds": shares,
        "rounds": [{name: numbers_of(run) for name, run in vars(each).items()} for each in rounds],
        "load_average": os.getloadavg(),
    }
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    with capsys.disabled():
        print("\n".join(["", *table(found), "", *breakdown(shares), "", f"All figures: {REPORT}"]))  # noqa: T201


def numbers_of(run: Measured) -> dict[str, float]:
    """The figures of `run` alone."""
    return {name: value for name, value in vars(run).items() if isinstance(value, float)}


def run_round(folder: Path, voice: Path) -> Round:
    """One round in the new `folder`, with an empty step cache that holds the checkpoint `voice` alone."""
    folder.mkdir()
    cache = folder / "cache"
    shutil.copytree(voice, cache / CHECKPOINTS_FOLDER / voice.name)
    environment = {**os.environ, "RKNN_TTS_CACHE": str(cache)}
    command: list[str | Path] = [ROOT / "rknn-tts", "engine", FAMILY, "--target", TARGET, "--window", WINDOW, "--json"]
    cold = measure(command, folder, environment)
    repeated = measure(command, folder, environment)
    twin = next((folder / "engines" / TARGET).glob("*decoder*.onnx"))
    bare_folder = folder / "bare"
    bare_folder.mkdir()
    (bare_folder / "model.onnx").write_bytes(without_carried(twin.read_bytes()))
    script = ROOT / "tests" / "bench" / "bare_conversion.py"
    arguments: list[str | Path] = [ROOT / "engine" / "torch_standin.py", "model.onnx", TARGET, "engine.rknn"]
    bare = measure([converter_python(), script, *arguments], bare_folder, os.environ)
    assert (bare_folder / "engine.rknn").stat().st_size > 0
    return Round(cold, repeated, bare)


def figures(rounds: Sequence[Round]) -> list[Figure]:
    """The medians of `rounds`, ours over the bare script's."""

    def median(value: Callable[[Round], float]) -> float:
        return statistics.median(value(each) for each in rounds)

    cold_s, bare_s = median(lambda r: r.cold.wall_s), median(lambda r: r.bare.wall_s)
    again_s = median(lambda r: r.repeated.wall_s)
    cpu_s = median(lambda r: r.cold.cpu_s), median(lambda r: r.bare.cpu_s)
    tree_mb = median(lambda r: r.cold.tree_peak_mb), median(lambda r: r.bare.tree_peak_mb)
    toolkit_mb = median(lambda r: toolkit(r.cold)["build.peak_memory"]), median(lambda r: r.bare.process_peak_mb)
    return [
        Figure("cold command over the bare script, wall", "s", cold_s, bare_s, BOUND),
        Figure("cold command over the bare script, CPU", "s", *cpu_s, BOUND),
        Figure("repeated command over the cold one, wall", "s", again_s, cold_s),
        Figure("peak memory, all processes", "MB", *tree_mb),
        Figure("peak memory, the toolkit's process", "MB", *toolkit_mb),
    ]


def toolkit(run: Measured) -> dict[str, float]:
    """What a run measured of the toolkit's process, by name."""
    return {item["name"]: float(item["measured"]) for item in json.loads(run.output)["measurements"]}


def where_the_time_goes(run: Measured) -> dict[str, float]:
    """Seconds of each step of `run` as it announced them, and those of the toolkit, which runs beside the gates."""
    starts = [(0.0, "start-up"), *run.stamps]
    ends = [start for start, _ in starts[1:]] + [run.wall_s]
    shares = {text: round(end - start, 2) for (start, text), end in zip(starts, ends, strict=True)}
    measured = toolkit(run)
    return {
        **shares,
        "(the toolkit's process, wall)": measured["build.wall"],
        "(the toolkit's process, CPU)": measured["build.cpu"],
        "(everything else, CPU)": round(run.cpu_s - measured["build.cpu"], 2),
    }


def middle(rounds: Sequence[Round], value: Callable[[Round], float]) -> Round:
    """The round with the median of `value`."""
    return sorted(rounds, key=value)[len(rounds) // 2]


def table(found: Sequence[Figure]) -> list[str]:
    """The figures as lines."""
    lines = [f"{'median of ' + str(ROUNDS):48}{'rknn-tts':>10}{'against':>10}{'ratio':>8}  bound"]
    for figure in found:
        met = "met" if figure.bound is not None and figure.ratio <= figure.bound else "NOT MET"
        bound = "-" if figure.bound is None else f"<= {figure.bound:.1f} {met}"
        name = f"{figure.name}, {figure.unit}"
        lines.append(f"{name:48}{figure.ours:10.2f}{figure.theirs:10.2f}{figure.ratio:8.2f}  {bound}")
    return lines


def breakdown(shares: dict[str, float]) -> list[str]:
    """Where a cold run's time goes, as lines."""
    lines = [f"{seconds:8.2f} s  {name}" for name, seconds in shares.items()]
    return ["Where the time of the cold command goes:", *lines]
