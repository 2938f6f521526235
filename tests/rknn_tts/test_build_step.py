from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contracts.contract import TensorSpec
from contracts.errors import UserInput
from contracts.files import sha256_of
from contracts.quality import Quality
from contracts.quantisation import Quantisation
from logs.regtask import parse_accepted
from rknn_tts import build_step as module
from rknn_tts.build_step import Build, built, judge, restore_log
from rknn_tts.request import Request
from tests.rknn_tts.sources import build_of, build_with
from tests.rknn_tts.stand_in_converter import DOUBLE, GOOD_LOG, write_converter
from tests.rknn_tts.workshop import Heard, fresh_steps


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    return build_with(DOUBLE, tmp_path, monkeypatch)


def test_built_leaves_the_result_and_the_raw_log_and_is_found_again(build: Build) -> None:
    first, again, said = fresh_steps(), fresh_steps(), Heard()
    folder = built(build, first, said, lambda: None)
    assert {path.name for path in folder.iterdir()} == {"engine.rknn", "lines.log", "simulated.npz", "build.json"}
    assert build.places.log.read_text(encoding="utf-8") == GOOD_LOG
    assert said.steps[:2] == ["building for rk3588", "building for rk3588: compiling"]
    assert built(build, again, said, lambda: pytest.fail("nothing is built")) == folder
    assert (first.reused, again.reused) == ([], ["build"])


def test_built_asks_at_every_stage_and_keeps_nothing_when_it_shall_not_go_on(build: Build) -> None:
    def stop() -> None:
        raise UserInput("no further")

    steps = fresh_steps()
    with pytest.raises(UserInput, match="no further"):
        built(build, steps, Heard(), stop)
    built(build, steps, Heard(), lambda: None)
    assert steps.reused == []


CHANGES: dict[str, Callable[[Build], Build]] = {
    "target": lambda build: dataclasses.replace(build, target="rk3566"),
    "toolkit": lambda build: dataclasses.replace(build, request=Request(command="compile", toolkit="2.5.0")),
    "accepted": lambda build: dataclasses.replace(build, accepted=(parse_accepted("v2:0x7abc:0:0x3"),)),
    "feeds": lambda build: _with_source(build, make_feeds=lambda: b"other"),
    "contract": lambda build: _with_source(
        build, contract=dataclasses.replace(build.source.contract, inputs=(TensorSpec("x", (1, 5)),))
    ),
    "graph": lambda build: _with_source(build, graph=build.python),
    "quantisation": lambda build: _with_source(
        build, contract=dataclasses.replace(build.source.contract, quantisation=Quantisation(algorithm="mmse"))
    ),
    "calibration": lambda build: _with_source(build, make_calibration=lambda: b"other"),
}


def _with_source(build: Build, **changes: Any) -> Build:
    return dataclasses.replace(build, source=dataclasses.replace(build.source, **changes))


@pytest.mark.parametrize("change", CHANGES)
def test_build_depends_on(build: Build, change: str) -> None:
    assert CHANGES[change](build).parts != build.parts


def test_build_does_not_depend_on_where_it_goes_or_how_long_it_may_take(build: Build) -> None:
    elsewhere = build_of(build.source, build.python, "there/other.rknn")
    hurried = dataclasses.replace(elsewhere, request=dataclasses.replace(build.request, timeout_s=1.0, memory_gb=1.0))
    assert hurried.parts == build.parts


def test_build_reads_its_graph_once_for_its_parts(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []
    monkeypatch.setattr(module, "sha256_of", lambda path: (read.append(path), sha256_of(path))[1])  # type: ignore[func-returns-value]
    assert build.parts is build.parts
    assert read == [build.source.graph]


@pytest.mark.parametrize(("asked_gb", "limit_bytes"), [(1.5, 1_500_000_000), (None, 900_000)])
def test_memory_limit_is_decimal_and_by_default_most_of_what_there_is(
    build: Build, monkeypatch: pytest.MonkeyPatch, asked_gb: float | None, limit_bytes: int
) -> None:
    monkeypatch.setattr(module, "memory_bytes", lambda: 1_000_000)
    wanted: list[Any] = []

    def take(request: Any, *told: object) -> None:
        wanted.append(request)

    monkeypatch.setattr("engine.build.build_engine", take)
    asked = dataclasses.replace(build, request=dataclasses.replace(build.request, memory_gb=asked_gb))
    built(asked, fresh_steps(), Heard(), lambda: None)
    assert wanted[0].memory_limit_bytes == limit_bytes


def test_judge_is_done_again_when_a_threshold_changes_and_the_build_is_not(build: Build) -> None:
    write_converter(build.python, DOUBLE.replace("2.0", "2.0002"))  # 80 dB
    folder = built(build, fresh_steps(), Heard(), lambda: None)
    for thresholds, status in (({}, "passed"), ({"simulator": 30.0}, "passed"), ({"simulator": 100.0}, "failed")):
        contract = dataclasses.replace(build.source.contract, thresholds=thresholds)
        steps = fresh_steps()
        judged = judge(_with_source(build, contract=contract), folder, steps, Heard())
        assert {v.gate: v.status.value for v in judged.verdicts}["simulator"] == status
        assert steps.reused == []
    steps = fresh_steps()
    judge(build, folder, steps, Heard())
    assert steps.reused == ["judge"]


def test_judge_is_done_again_when_a_figure_of_quality_changes(build: Build) -> None:
    write_converter(build.python, DOUBLE.replace("2.0", "2.0002"))  # 80 dB
    folder = built(build, fresh_steps(), Heard(), lambda: None)
    for bound, status in ((1e-3, "passed"), (1e-5, "failed")):
        (output,) = build.source.contract.outputs
        quality = (Quality("mel_l1_relative", output.name, bound),)
        contract = dataclasses.replace(build.source.contract, quality=quality)
        judged = judge(_with_source(build, contract=contract), folder, fresh_steps(), Heard())
        assert {v.gate: v.status.value for v in judged.verdicts}["quality.mel_l1_relative"] == status


def test_restore_log_leaves_the_raw_log_of_the_same_build(tmp_path: Path) -> None:
    log, lines = tmp_path / "raw.log", tmp_path / "lines.log"
    lines.write_text("I one\x85two\nE three\n", encoding="utf-8")
    raw = "\x1b[1;31mI one\x85two\x1b[0m\r\nE three\n".encode()
    log.write_bytes(raw)
    restore_log(log, lines)
    assert log.read_bytes() == raw


@pytest.mark.parametrize("there", [None, b"I another build\n"])
def test_restore_log_puts_the_clean_lines_where_the_raw_ones_are_not(tmp_path: Path, there: bytes | None) -> None:
    log, lines = tmp_path / "raw.log", tmp_path / "lines.log"
    lines.write_text("I one\n", encoding="utf-8")
    if there is not None:
        log.write_bytes(there)
    restore_log(log, lines)
    assert log.read_bytes() == b"I one\n"


@pytest.mark.parametrize(
    ("needed_gb", "memory_gb", "free_gb", "told"),
    [
        (None, None, 1.0, None),
        (5.0, None, 5.0, None),
        (5.1, None, 5.0, r"takes about 5\.1 GB of memory and 5\.0 GB are free"),
        (5.0, 4.0, 9.0, r"takes about 5\.0 GB of memory and 4\.0 GB are free"),
    ],
)
def test_simulator_is_left_out_only_where_it_does_not_fit(
    build: Build,
    monkeypatch: pytest.MonkeyPatch,
    needed_gb: float | None,
    memory_gb: float | None,
    free_gb: float,
    told: str | None,
) -> None:
    monkeypatch.setattr(module, "available_bytes", lambda: int(free_gb * 1e9))
    monkeypatch.setattr(module, "memory_bytes", lambda: 100 * 10**9)
    contract = dataclasses.replace(
        build.source.contract, simulator_bytes=None if needed_gb is None else int(needed_gb * 1e9)
    )
    source = dataclasses.replace(build.source, contract=contract)
    asked = dataclasses.replace(build.request, memory_gb=memory_gb)
    made = dataclasses.replace(build, source=source, request=asked)
    folder = built(build, fresh_steps(), Heard(), lambda: None)
    judged = {verdict.gate: verdict for verdict in judge(made, folder, fresh_steps(), Heard()).verdicts}
    windows: list[int] = []
    monkeypatch.setattr("engine.build.build_engine", lambda wanted, *rest: windows.append(len(wanted.feeds)))
    built(made, dataclasses.replace(fresh_steps(), force=True), Heard(), lambda: None)
    if told is None:
        assert (judged["simulator"].status.value, windows) == ("passed", [1])
    else:
        assert (judged["simulator"].status.value, windows) == ("unproven", [0])
        assert re.search(told, judged["simulator"].detail)
