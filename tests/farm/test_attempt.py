"""What one attempt makes of a system that says no; test_run_job.py has the rest, with commands that run."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from farm.attempt import Allotment, attempt_job
from farm.died import read_died
from farm.jobs import Kind
from farm.outcomes import Ended, JobOutcome, write_outcome
from farm.settings import read_settings
from farm.watch import Watched
from tests.farm.stub_farms import StubFarm, job, stub_farm

ONE = job("anna")


@pytest.fixture
def farm(tmp_path: Path) -> StubFarm:
    return stub_farm(tmp_path / "farm")


def attempted(farm: StubFarm, attempt: int) -> bool:
    allotment = Allotment(attempt, last=attempt == 3, memory_bytes=10**9)
    return attempt_job(ONE, farm.places, read_settings(farm.places.settings), allotment)


@pytest.mark.parametrize(
    ("number", "again", "ended", "sentence"),
    [
        (errno.ENOSPC, [True], Ended.DISK, "/x/report.json: No space left on device."),
        (errno.EDQUOT, [True], Ended.DISK, "/x/report.json: Disk quota exceeded."),
        (errno.EIO, [True, True], Ended.LOST, "/x/report.json: Input/output error."),
    ],
)
def test_system_is_asked_again_when_it_says_no(
    number: int, again: list[bool], ended: Ended, sentence: str, farm: StubFarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    def watch(*_: object) -> Watched:
        raise OSError(number, os.strerror(number), "/x/report.json")

    monkeypatch.setattr("farm.attempt.watch", watch)
    for attempt, _ in enumerate(again, start=1):
        assert not attempted(farm, attempt)
        died = read_died(farm.places.died(ONE.id))
        assert died is not None
        assert (died.ended, died.sentence, died.attempt) == (ended, sentence, attempt)
    assert attempted(farm, len(again) + 1)
    assert (farm.outcome(ONE).ended, farm.outcome(ONE).sentence) == (ended, sentence)


def test_nothing_stands_when_the_outcome_finds_no_room(farm: StubFarm, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(outcome: JobOutcome, path: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr("farm.attempt.watch", lambda *_: Watched(2, False, 1.0, 1.0, 1))
    monkeypatch.setattr("farm.attempt.read_command_report", lambda *_: None)
    monkeypatch.setattr("farm.attempt.write_outcome", full)
    with pytest.raises(OSError, match="No space left"):
        attempted(farm, 3)
    assert not farm.places.outcome(ONE.id).exists()


def test_outcome_tells_of_all_commands_together_when_there_are_several(
    farm: StubFarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = iter([Watched(0, False, 1.0, 2.0, 7), Watched(0, False, 4.0, 8.0, 5)])

    def watch(_: object, __: object, ___: object, report: Path, *____: object) -> Watched:
        report.write_text('{"exit_code": 0, "reused": ["graph"]}', encoding="utf-8")
        return next(ends)

    monkeypatch.setattr("farm.attempt.watch", watch)
    one = job("anna", kind=Kind.TWICE)
    assert attempt_job(one, farm.places, read_settings(farm.places.settings), Allotment(1, True, 10**9))
    outcome = farm.outcome(one)
    assert (outcome.wall_s, outcome.cpu_s, outcome.peak_bytes) == (5.0, 10.0, 7)
    assert outcome.reused == ("graph", "graph")
    assert outcome.report == f".farm/reports/{one.id}.1.json"


def test_outcome_names_no_file_when_a_later_command_fails(farm: StubFarm, monkeypatch: pytest.MonkeyPatch) -> None:
    told = iter(['{"exit_code": 0, "files": ["a.onnx"], "models": ["a.onnx"]}', '{"exit_code": 1, "error": "No."}'])
    codes = iter([0, 1])

    def watch(_: object, folder: Path, ___: object, report: Path, *____: object) -> Watched:
        (folder / "a.onnx").touch()
        report.write_text(next(told), encoding="utf-8")
        return Watched(next(codes), False, 1.0, 1.0, 1)

    monkeypatch.setattr("farm.attempt.watch", watch)
    one = job("anna", kind=Kind.TWICE)
    assert attempt_job(one, farm.places, read_settings(farm.places.settings), Allotment(1, True, 10**9))
    outcome = farm.outcome(one)
    assert (outcome.ended, outcome.sentence, outcome.files, outcome.models) == (Ended.FAILED, "No.", (), ())


def test_log_is_of_the_last_attempt_alone(farm: StubFarm, monkeypatch: pytest.MonkeyPatch) -> None:
    log = farm.places.log(ONE.id)
    log.parent.mkdir()
    log.write_text("of an earlier one\n", encoding="utf-8")
    monkeypatch.setattr("farm.attempt.watch", lambda *_: Watched(2, False, 1.0, 1.0, 1))
    write_outcome(JobOutcome(ONE.id, Ended.LOST, "x", "n", 1, 0.0, 0.0, 0.0, 0), farm.places.outcome(ONE.id))
    farm.places.report(ONE.id, 0).parent.mkdir()
    farm.places.report(ONE.id, 0).write_text('{"exit_code": 2, "error": "No."}', encoding="utf-8")
    assert attempted(farm, 1)
    assert farm.outcome(ONE).ended is Ended.REFUSED
    assert not log.exists()
