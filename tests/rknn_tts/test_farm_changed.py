"""Jobs whose checkpoint changed under them."""

from __future__ import annotations

from pathlib import Path

import pytest

from farm.jobs import Job, Plan
from farm.outcomes import Ended, JobOutcome, MadeFile, read_outcome, write_outcome
from farm.places import FarmPlaces
from rknn_tts.farm_changed import disown_changed
from tests.rknn_tts.farm_matrices import PIPER, planned, touch


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    touch(tmp_path, "voices/a.onnx", "voices/b.onnx")
    return tmp_path


def plan_at(folder: Path) -> Plan:
    return planned(folder, PIPER, top='targets = ["rk3588"]\ntwice = 1')


def done(plan: Plan, places: FarmPlaces) -> None:
    """Every job of `plan` is."""
    for job in plan.jobs:
        outcome = JobOutcome(job.id, Ended.DONE, None, "n1", 1, 1.0, 2.0, 2.0, 10**9, (MadeFile("x", "0" * 64, 1),))
        write_outcome(outcome, places.outcome(job.id))


def ended(job: Job, places: FarmPlaces) -> tuple[Ended, str | None]:
    outcome = read_outcome(places.outcome(job.id))
    assert outcome is not None
    return outcome.ended, outcome.sentence


def test_all_that_was_made_of_a_checkpoint_counts_as_failed_when_it_changed_meanwhile(folder: Path) -> None:
    plan, places = plan_at(folder), FarmPlaces(folder / "out")
    done(plan, places)
    (folder / "voices/b.onnx").write_text("another voice")
    assert disown_changed(plan, plan_at(folder), (), places) == ["b"]
    assert len(plan.jobs) == 8  # of each voice export, compile, page and twice
    sentence = f"{folder}/voices/b.onnx: changed while the farm ran; run it again."
    for job in plan.jobs:
        assert ended(job, places) == ((Ended.FAILED, sentence) if job.voice == "b" else (Ended.DONE, None))


def test_what_was_at_hand_before_stays_done_when_its_checkpoint_changes(folder: Path) -> None:
    plan, places = plan_at(folder), FarmPlaces(folder / "out")
    done(plan, places)
    (folder / "voices/b.onnx").write_text("another voice")
    assert disown_changed(plan, plan_at(folder), [job.id for job in plan.jobs], places) == []
    assert {ended(job, places)[0] for job in plan.jobs} == {Ended.DONE}


def test_what_was_made_stays_done_when_the_checkpoint_is_gone(folder: Path) -> None:
    plan, places = plan_at(folder), FarmPlaces(folder / "out")
    done(plan, places)
    (folder / "voices/b.onnx").unlink()
    assert disown_changed(plan, plan_at(folder), (), places) == []
    assert {ended(job, places)[0] for job in plan.jobs} == {Ended.DONE}


def test_a_job_without_an_outcome_gets_none_when_its_checkpoint_changed(folder: Path) -> None:
    plan, places = plan_at(folder), FarmPlaces(folder / "out")
    (folder / "voices/b.onnx").write_text("another voice")
    assert disown_changed(plan, plan_at(folder), (), places) == []
    assert not places.outcome("x").parent.exists()
