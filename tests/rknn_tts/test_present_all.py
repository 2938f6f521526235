"""What a person sees of all stages of a family, as plain text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contracts.manifest import CpuLayer, LogSummary, RegtaskCount, SharedAperture
from contracts.verdicts import at_least, passed, unproven
from rknn_tts.blocks import plain_text
from rknn_tts.outcome import Outcome
from rknn_tts.present_all import all_blocks
from rknn_tts.report import NOTHING, Report
from tests.rknn_tts.samples import MANIFEST, REQUEST

ALL = replace(REQUEST, family="twin", target="rk3588", all=True)
LAYERS = MANIFEST.layers
assert LAYERS is not None

KEY = RegtaskCount("RK_DDMA", "0x4010", 4, "0x3ff", "0x400", 36)
NET = replace(
    MANIFEST,
    engine=replace(MANIFEST.engine, file="twin-net.rknn", bytes=2_500_000),
    layers=replace(LAYERS, modelled_ms=12.345, cpu=(CpuLayer("Sin", "Sin:a", 4.0), CpuLayer("Sin", "Sin:b", 4.0))),
    log=replace(MANIFEST.log, regtask=(KEY, replace(KEY, count=4))),
)
TAIL = replace(
    MANIFEST, engine=replace(MANIFEST.engine, file="twin-tail.rknn", bytes=500_000), layers=None, log=LogSummary()
)
SIMULATED = (
    at_least("simulator.audio", 62.5, 40.0, "dB"),
    at_least("simulator.cache_out", 48.25, 40.0, "dB"),
    unproven("log.regtask", "only a board can tell"),
)
FILES = (
    *("engines/rk3588/" + name for name in ("twin-net.rknn", "twin-net.json", "twin-tail.rknn")),
    "build-logs/twin-net-rk3588.layers.json",
    *("engines/rk3588/" + name for name in ("twin.set.json", "MANIFEST.sha256")),
)


def outcome(*members: Outcome) -> Outcome:
    verdicts = tuple(verdict for member in members for verdict in member.verdicts)
    return replace(NOTHING, members=members, verdicts=verdicts, files=FILES, reused=("build",), notes=("a note",))


BOTH = outcome(
    replace(NOTHING, manifest=NET, verdicts=SIMULATED),
    replace(NOTHING, manifest=TAIL, verdicts=(passed("quality.cosine"),)),
)


def shown(told: Outcome) -> list[str]:
    return plain_text(all_blocks(Report(ALL, outcome=told))).splitlines()


def test_a_row_tells_what_an_engine_costs_and_what_is_unproven_of_it() -> None:
    lines = shown(BOTH)
    assert [line.split() for line in lines[1:3]] == [
        ["twin-net", "2.5", "MB", "12.3", "2", "40", "48.25", "1"],
        ["twin-tail", "500.0", "KB", "-", "-", "0", "-", "0"],
    ]


@pytest.mark.parametrize(
    "line",
    [
        "verdicts:  3 passed, 1 unproven (each manifest has its own; --json has all)",
        "size:      3.0 MB of engines",
        "folder:    engines/rk3588, 5 files",
        "set:       engines/rk3588/twin.set.json",
        "sha256:    engines/rk3588/MANIFEST.sha256",
        "reused:    build (finished before; --force does every step again)",
        "note: a note",
        "UNPROVEN: log.regtask: only a board can tell",
    ],
)
def test_what_all_come_to_and_where_they_are_stands_below(line: str) -> None:
    assert line in shown(BOTH)


def test_which_engines_fit_together_is_told_where_it_is_known() -> None:
    shared = SharedAperture(3 << 20, {"twin-net.json": 1 << 20, "twin-tail.json": 1 << 20}, (("twin-net.json",),))
    assert ["twin-net", "1"] in [line.split() for line in shown(replace(BOTH, aperture=shared))]


def test_nothing_is_shown_of_a_command_that_failed() -> None:
    assert all_blocks(Report(ALL, 1, "net: it failed.", replace(NOTHING, verdicts=SIMULATED))) == []
