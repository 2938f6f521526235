from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts.contract import Contract, Drift, Source
from contracts.manifest import Aperture
from contracts.quality import Quality
from engine.result import BuildResult
from gates import session
from logs.regtask import parse_accepted
from rknn_tts.build_gates import Judged, judge_build, kept_lines
from tests.gates.small_graphs import row, scale_proto
from tests.logs.build_logs import END, NEW_FIELD, START, UNKNOWN_TARGET, regtask, whole
from tests.logs.layer_tables import RK3588

FEEDS = ({"x": row(1, 2, 3, 4)}, {"x": row(4, 3, 2, 1)})
RIGHT = ({"y": row(2, 4, 6, 8)}, {"y": row(8, 6, 4, 2)})
LOG = START + RK3588 + END
ENGINE_BYTES = 20_000_000
WIDE_ADDRESS = regtask("lite", "0x1028", "0x7ff", "0x9ff")


def judged(
    folder: Path,
    log: str = LOG,
    simulated: Any = RIGHT,
    thresholds: dict[str, float] | None = None,
    accepted: tuple[str, ...] = (),
    originals: Any = (),
    unsimulated: str | None = None,
    drift: Drift | None = None,
    quality: tuple[Quality, ...] = (),
) -> Judged:
    graph, lines = folder / "model.onnx", folder / "lines.log"
    graph.write_bytes(scale_proto(2.0).SerializeToString())
    (folder / "engine.rknn").write_bytes(bytes(ENGINE_BYTES))
    lines.write_text(log, encoding="utf-8")
    build = BuildResult(
        engine=folder / "engine.rknn",
        engine_sha256="ab" * 32,
        lines=lines,
        simulated=simulated,
        versions={},
        fixed_addresses=True,
        disabled_rules=(),
        peak_rss_bytes=300_400_000,
        wall_s=2.125,
        cpu_s=1.5,
    )
    contract = Contract(None, None, Source("model.onnx", "ab" * 32, "checkpoint"), (), ())
    contract = replace(contract, thresholds=thresholds or {}, drift=drift, quality=quality)
    keys = tuple(parse_accepted(text) for text in accepted)
    return judge_build(build, graph, contract, FEEDS, keys, "build-logs/x.layers.json", originals, unsimulated)


def status(made: Judged, gate: str) -> str:
    return next(verdict.status.value for verdict in made.verdicts if verdict.gate == gate)


def test_good_build_passes_every_gate(tmp_path: Path) -> None:
    made = judged(tmp_path)
    assert {verdict.status.value for verdict in made.verdicts} == {"passed"}
    assert {"log.complete", "log.layer_table", "simulator"} <= {verdict.gate for verdict in made.verdicts}
    assert made.layers is not None
    assert (made.layers.count, made.layers.file) == (8, "build-logs/x.layers.json")
    assert [(layer.op, layer.name) for layer in made.layers.cpu] == [("Slice", "Slice:/flow/flows.7/Slice")]
    assert len(made.every_layer) == 8
    assert made.memory is not None
    assert made.memory.internal_kb == 12212.5


def test_build_states_what_it_takes_of_the_address_space(tmp_path: Path) -> None:
    # 12212.5 KB of features and 20 MB of engine, each in pages of 4096 bytes; its contract here names no tensors.
    assert judged(tmp_path).aperture == Aperture(12_505_600 + 4096 - 12_505_600 % 4096 + 20_000_768, 20_000_768)
    assert status(judged(tmp_path), "log.aperture") == "passed"


def test_build_fails_when_it_needs_more_than_the_address_space(tmp_path: Path) -> None:
    wide = LOG.replace("0x00b12000*0x00bed200 0x000db200", "0xf9e69c00*0x136ef9c00 0x3d090000")
    assert status(judged(tmp_path, wide), "log.aperture") == "failed"


def test_build_is_measured(tmp_path: Path) -> None:
    figures = {m.name: (m.measured, m.unit) for m in judged(tmp_path).measurements}
    assert figures == {"build.wall": (2.12, "s"), "build.cpu": (1.5, "s"), "build.peak_memory": (300, "MB")}


def test_build_fails_when_its_log_holds_no_layer_table(tmp_path: Path) -> None:
    made = judged(tmp_path, whole())
    assert status(made, "log.layer_table") == "failed"
    assert (made.layers, made.every_layer, made.memory) == (None, (), None)


def test_build_figures_say_that_they_are_of_the_build_and_not_of_this_command(tmp_path: Path) -> None:
    assert {"found again" in m.reason for m in judged(tmp_path).measurements} == {True}


TITLE = "".join(RK3588.splitlines(keepends=True)[:5])
FIRST_ROWS = RK3588[: RK3588.index("Total Internal Memory")]


@pytest.mark.parametrize(
    ("table", "says"), [(TITLE, "holds no layer"), (FIRST_ROWS, "does not state the memory totals")]
)
def test_build_fails_when_its_layer_table_is_cut_off(tmp_path: Path, table: str, says: str) -> None:
    (verdict,) = (v for v in judged(tmp_path, START + table + END).verdicts if v.gate == "log.layer_table")
    assert verdict.status.value == "failed"
    assert says in verdict.detail


@pytest.mark.parametrize("blank", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_kept_lines_end_at_line_feeds_alone(tmp_path: Path, blank: str) -> None:
    (tmp_path / "lines.log").write_text(f"I one{blank}E two\nthree\n", encoding="utf-8")
    assert kept_lines(tmp_path / "lines.log") == [f"I one{blank}E two", "three"]


def _off(decibels: float) -> tuple[dict[str, Any], ...]:
    return tuple({"y": (o["y"] * (1 + 10 ** (-decibels / 20))).astype(np.float32)} for o in RIGHT)


@pytest.mark.parametrize(
    ("simulated", "thresholds", "wanted"),
    [
        (RIGHT, {}, "passed"),
        (_off(41.0), {}, "passed"),
        (_off(39.0), {}, "failed"),
        (_off(41.0), {"simulator": 45.0}, "failed"),
        (_off(39.0), {"simulator": 30.0}, "passed"),
        (_off(39.0), {"fp32.whole": 30.0}, "failed"),
        (RIGHT[::-1], {}, "failed"),
        (RIGHT[:1], {}, "failed"),
        ((), {}, "failed"),
        (tuple({"z": o["y"]} for o in RIGHT), {}, "failed"),
        (tuple({"y": o["y"] * np.float32(np.nan)} for o in RIGHT), {}, "failed"),
    ],
)
def test_simulator_is_judged_by_the_contracts_threshold_or_40_db(
    tmp_path: Path, simulated: Any, thresholds: dict[str, float], wanted: str
) -> None:
    assert status(judged(tmp_path, simulated=simulated, thresholds=thresholds), "simulator") == wanted


OTHER = ({"y": row(3, 5, 7)}, {"y": row(7, 5, 3)})
"""What no run of the graph gives, and shorter."""


@pytest.mark.parametrize(
    ("simulated", "originals", "wanted"),
    [
        (({"y": row(3, 5, 7, 1)}, {"y": row(7, 5, 3, 2)}), OTHER, "passed"),
        (RIGHT, OTHER, "failed"),
        (({"y": row(3, 5, 7, 1)}, {"y": row(7, 5, 3, 2)}), (), "failed"),
        (({"y": row(3, 5, 7, 1)},), OTHER, "failed"),
    ],
)
def test_simulator_is_judged_by_the_original_where_the_stage_says_what_that_gives(
    tmp_path: Path, simulated: Any, originals: Any, wanted: str
) -> None:
    assert status(judged(tmp_path, simulated=simulated, originals=originals), "simulator") == wanted


@pytest.mark.parametrize(
    ("lines", "accepted", "wanted"),
    [
        ("", (), "passed"),
        (WIDE_ADDRESS * 3, (), "unproven"),
        (NEW_FIELD, (), "failed"),
        (NEW_FIELD, ("v2:0x7abc:0:0x3",), "unproven"),
    ],
)
def test_hardware_fields_are_judged_by_their_key_and_what_the_user_accepts(
    tmp_path: Path, lines: str, accepted: tuple[str, ...], wanted: str
) -> None:
    made = judged(tmp_path, START + lines + RK3588 + END, accepted=accepted)
    assert status(made, "log.regtask") == wanted
    assert made.log.accepted == accepted
    assert sum(entry.count for entry in made.log.regtask) == lines.count("REGTASK")


def test_simulator_that_was_not_run_is_unproven_and_says_why(tmp_path: Path) -> None:
    made = judged(tmp_path, simulated=(), unsimulated="it takes 20 GB")
    (verdict,) = (verdict for verdict in made.verdicts if verdict.gate.startswith("simulator"))
    assert (verdict.gate, verdict.status.value, verdict.detail) == ("simulator", "unproven", "it takes 20 GB")


def test_simulator_that_gave_nothing_fails_where_no_reason_was_stated(tmp_path: Path) -> None:
    assert status(judged(tmp_path, simulated=()), "simulator") == "failed"


def test_known_noise_is_counted(tmp_path: Path) -> None:
    made = judged(tmp_path, START + UNKNOWN_TARGET * 5 + RK3588 + END)
    assert made.log.unknown_target == 5
    assert {verdict.status.value for verdict in made.verdicts} == {"passed"}


@pytest.mark.parametrize("originals", [(), RIGHT])
def test_output_is_judged_by_its_own_threshold_where_the_contract_states_one(tmp_path: Path, originals: Any) -> None:
    off = tuple({"y": window["y"] * np.float32(1.01)} for window in RIGHT)  # 40 dB
    made = judged(tmp_path, simulated=off, thresholds={"simulator": 60.0, "simulator.y": 39.0}, originals=originals)
    found = [v for v in made.verdicts if v.gate.startswith("simulator")]
    assert [(v.gate, v.status.value, v.threshold) for v in found] == [("simulator.y", "passed", 39.0)]
    assert found[0].measured == pytest.approx(40.0, abs=0.01)
    made = judged(tmp_path, simulated=off, thresholds={"simulator.y": 41.0}, originals=originals)
    assert status(made, "simulator.y") == "failed"


def test_drift_is_owed_where_the_contract_states_one_and_fails_without_a_host_half(tmp_path: Path) -> None:
    made = judged(tmp_path, drift=Drift("durations", {}, {}, 7.0, "rounded up"))
    assert status(made, "simulator.drift") == "failed"
    assert "simulator.drift" not in {verdict.gate for verdict in judged(tmp_path).verdicts}


def test_drift_is_unproven_where_the_simulator_was_not_run(tmp_path: Path) -> None:
    made = judged(tmp_path, unsimulated="too little memory", simulated=(), drift=Drift("durations", {}, {}, 7.0, ""))
    assert (status(made, "simulator"), status(made, "simulator.drift")) == ("unproven", "unproven")


def test_graph_runs_once_for_the_simulator_and_the_drift(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[object] = []

    class Counted(session.Session):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            opened.append(arguments)
            super().__init__(*arguments, **options)

    monkeypatch.setattr(session, "Session", Counted)
    judged(tmp_path, drift=Drift("durations", {}, {}, 7.0, ""))
    assert len(opened) == 1


HALF_OFF = tuple({"y": o["y"] + np.float32(0.5)} for o in RIGHT)


@pytest.mark.parametrize(("bound", "wanted"), [(0.51, "passed"), (0.49, "failed")])
@pytest.mark.parametrize("originals", [(), RIGHT])
def test_quality_is_judged_where_the_contract_states_a_figure(
    tmp_path: Path, bound: float, wanted: str, originals: Any
) -> None:
    quality = (Quality("mel_l1", "y", bound), Quality("mel_cosine", "y"))
    made = judged(tmp_path, simulated=HALF_OFF, quality=quality, originals=originals)
    assert status(made, "quality.mel_l1") == wanted
    (figure,) = (m for m in made.measurements if m.name == "quality.mel_cosine")
    assert figure.measured == pytest.approx(0.99, abs=0.01)
    assert ("the unpatched original" if originals else "onnxruntime") in figure.reason


def test_quality_counts_no_padding_that_an_original_leaves_out(tmp_path: Path) -> None:
    simulated = ({"y": row(3, 5, 7, 99)}, {"y": row(7, 5, 3, 99)})
    made = judged(tmp_path, simulated=simulated, quality=(Quality("mel_l1", "y", 0.0),), originals=OTHER)
    assert status(made, "quality.mel_l1") == "passed"


def test_quality_is_unproven_where_the_simulator_was_not_run_and_fails_where_it_gave_nothing(tmp_path: Path) -> None:
    quality = (Quality("mel_l1", "y", 0.1), Quality("mel_cosine", "y"))
    made = judged(tmp_path, unsimulated="too little memory", simulated=(), quality=quality)
    assert status(made, "quality.mel_l1") == "unproven"
    made = judged(tmp_path, simulated=(), quality=quality)
    assert (status(made, "quality.mel_l1"), status(made, "quality.mel_cosine")) == ("failed", "failed")


def test_graph_runs_for_figures_once_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[object] = []
    true_init = session.Session.__init__

    def counted(self: session.Session, *arguments: Any, **options: Any) -> None:
        opened.append(arguments)
        true_init(self, *arguments, **options)

    monkeypatch.setattr(session.Session, "__init__", counted)
    judged(tmp_path, quality=(Quality("mel_l1", "y", 0.1), Quality("mel_cosine", "y")))
    assert len(opened) == 1
    judged(tmp_path, quality=(Quality("mel_l1", "y", 0.1),), originals=RIGHT)
    assert len(opened) == 1
