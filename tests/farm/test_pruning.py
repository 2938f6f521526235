from __future__ import annotations

import os
from pathlib import Path

import pytest

from contracts.files import sha256_of
from farm import pruning
from farm.jobs import Job, Kind, Plan
from farm.outcomes import Ended, JobOutcome, MadeFile, write_outcome
from farm.places import FarmPlaces
from farm.pruning import Standing, prune, standing_of

HOUR_NS = 3600 * 10**9


def job(name: str, kind: Kind = Kind.COMPILE) -> Job:
    return Job(name, kind, (), "rk3588/a", (), "piper", "decoder", "a", "", "rk3588", "2.3.2")


def outcome(name: str, ended: Ended = Ended.DONE, files: tuple[MadeFile, ...] = ()) -> JobOutcome:
    sentence = None if ended is Ended.DONE else "Why."
    return JobOutcome(name, ended, sentence, "n", 1, 0.0, 1.0, 1.0, 1, files)


@pytest.fixture
def places(tmp_path: Path) -> FarmPlaces:
    return FarmPlaces(tmp_path / "out")


def made(places: FarmPlaces, name: str = "a.rknn", text: str = "engine") -> MadeFile:
    path = places.output / "rk3588/a" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return MadeFile(f"rk3588/a/{name}", sha256_of(path), len(text))


def standing(places: FarmPlaces, *jobs: Job) -> Standing:
    return standing_of(Plan("m.toml", jobs), places)


def test_a_job_is_at_hand_when_it_is_done_and_its_files_are_there(places: FarmPlaces) -> None:
    done = outcome("j", files=(made(places),))
    write_outcome(done, places.outcome("j"))
    assert standing(places, job("j"), job("other")) == Standing({"j": done}, {}, frozenset())


@pytest.mark.parametrize("ended", [ended for ended in Ended if ended is not Ended.DONE])
def test_a_job_is_tried_again_when_it_did_not_go_well(places: FarmPlaces, ended: Ended) -> None:
    failed = outcome("j", ended)
    write_outcome(failed, places.outcome("j"))
    assert standing(places, job("j")) == Standing({}, {"j": failed}, frozenset())


def test_a_job_is_done_again_when_a_file_is_gone_or_of_another_size(places: FarmPlaces) -> None:
    write_outcome(outcome("j", files=(made(places), made(places, "b.rknn"))), places.outcome("j"))
    path = places.output / "rk3588/a/b.rknn"
    path.write_text("engine and more")
    assert standing(places, job("j")) == Standing({}, {}, frozenset({"j"}))
    path.unlink()
    assert standing(places, job("j")) == Standing({}, {}, frozenset({"j"}))


@pytest.mark.parametrize("text", ["engin", "engines"])
def test_a_job_is_done_again_when_a_file_has_another_size_however_old_it_is(places: FarmPlaces, text: str) -> None:
    write_outcome(outcome("j", files=(made(places),)), places.outcome("j"))
    path = places.output / "rk3588/a/a.rknn"
    path.write_text(text)
    os.utime(path, (0, 0))
    assert standing(places, job("j")).gone == {"j"}


def test_a_file_is_not_read_when_it_is_older_than_the_outcome(
    places: FarmPlaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = made(places)
    os.utime(places.output / done.path, (0, 0))
    write_outcome(outcome("j", files=(done,)), places.outcome("j"))
    monkeypatch.setattr(pruning, "sha256_of", lambda path: pytest.fail("8,000 engines are 160 GB"))
    assert set(standing(places, job("j")).at_hand) == {"j"}


def test_a_job_is_done_again_when_another_state_of_the_checkpoint_wrote_over_its_file(places: FarmPlaces) -> None:
    write_outcome(outcome("j", files=(made(places),)), places.outcome("j"))
    path, before = places.output / "rk3588/a/a.rknn", places.outcome("j").stat().st_mtime_ns
    path.write_text("ENGINE")  # of the same size
    os.utime(path, ns=(before + HOUR_NS, before + HOUR_NS))
    assert standing(places, job("j")).gone == {"j"}


def test_a_job_is_at_hand_when_its_file_was_written_once_more_with_the_same_bytes(places: FarmPlaces) -> None:
    write_outcome(outcome("j", files=(made(places),)), places.outcome("j"))
    path, before = places.output / "rk3588/a/a.rknn", places.outcome("j").stat().st_mtime_ns
    os.utime(path, ns=(before + HOUR_NS, before + HOUR_NS))
    assert set(standing(places, job("j")).at_hand) == {"j"}


def test_a_job_that_left_nothing_is_done_again_but_what_was_made_twice(places: FarmPlaces) -> None:
    for name in ("j", "t"):
        write_outcome(outcome(name), places.outcome(name))
    found = standing(places, job("j"), job("t", Kind.TWICE))
    assert set(found.at_hand) == {"t"}
    assert found.gone == {"j"}


def test_prune_removes_what_is_done_again_and_nothing_else(places: FarmPlaces) -> None:
    write_outcome(outcome("done", files=(made(places),)), places.outcome("done"))
    write_outcome(outcome("failed", Ended.FAILED), places.outcome("failed"))
    write_outcome(outcome("elsewhere", Ended.FAILED), places.outcome("elsewhere"))
    places.outcome("damaged").write_text("{")
    plan = Plan("m.toml", tuple(map(job, ("done", "failed", "damaged", "new"))))
    prune(plan, standing_of(plan, places), places)
    left = {path.stem for path in places.outcome("x").parent.iterdir()}
    assert left == {"done", "elsewhere"}
    prune(plan, standing_of(plan, places), places, force=True)
    assert {path.stem for path in places.outcome("x").parent.iterdir()} == {"elsewhere"}
