"""The runner on jobs whose commands end in every way, started as Snakemake starts it."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.memory import memory_bytes
from engine.processes import descendants
from farm.died import Died, read_died
from farm.jobs import Kind
from farm.outcomes import Ended, JobOutcome, MadeFile, write_outcome
from tests.farm.stub_farms import SMALL_MB, StubFarm, job, stub_farm

EXIT_WRITTEN, EXIT_AGAIN, EXIT_STOPPED = 0, 1, 130
PATIENCE_S = 10.0


@pytest.fixture
def farm(tmp_path: Path) -> StubFarm:
    return stub_farm(tmp_path / "a 'farm'")


def test_outcome_tells_what_was_made_when_a_job_goes_well(farm: StubFarm) -> None:
    one = job("anna")
    farm.plan([job("other"), one, job("third")])
    before_s = time.time()
    assert farm.attempt(one, attempt=2).returncode == EXIT_WRITTEN
    content = b"export anna\n"
    made = MadeFile("export/anna/anna.onnx", hashlib.sha256(content).hexdigest(), len(content))
    assert (farm.places.output / made.path).read_bytes() == content
    outcome = farm.outcome(one)
    assert (outcome.job, outcome.ended, outcome.sentence) == (one.id, Ended.DONE, None)
    assert (outcome.files, outcome.models, outcome.reused) == ((made,), (made.path,), ("graph",))
    assert (outcome.node, outcome.attempt) == (socket.gethostname(), 2)
    assert before_s <= outcome.started_s <= outcome.started_s + outcome.wall_s <= time.time()
    assert outcome.cpu_s > 0
    assert outcome.report is not None
    assert json.loads((farm.places.output / outcome.report).read_text(encoding="utf-8"))["models"] == ["anna.onnx"]
    assert farm.places.log(one.id).read_text(encoding="utf-8") == "anna says so\n"


def test_node_is_the_clusters_name_of_it_when_there_is_one(farm: StubFarm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURMD_NODENAME", "n17")
    one = job("anna", "fail")
    farm.plan([one])
    farm.attempt(one)
    assert farm.outcome(one).node == "n17"


def test_commands_are_given_what_their_needs_made_when_they_ask_for_it(farm: StubFarm) -> None:
    first = job("anna")
    second = job("anna", kind=Kind.COMPILE, needs=[first])
    third = job("anna", kind=Kind.PAGE, needs=[second])
    farm.plan([first, second, third])
    for one in (first, second, third):
        assert farm.attempt(one).returncode == EXIT_WRITTEN
    page = farm.places.output / "page" / "anna" / "anna.html"
    assert page.read_text(encoding="utf-8") == "export anna\ncompile anna\npage anna\n"
    memory = [line.words[2] for line in farm.lines("start")]
    assert memory == ["-", f"{SMALL_MB / 1000:.3f}", "-"]  # compile's own limit, in GB


def test_job_may_take_nine_tenths_of_its_machine_when_nobody_says_how_much(farm: StubFarm) -> None:
    one = job("anna", kind=Kind.COMPILE)
    farm.plan([one])
    assert farm.attempt(one, memory_mb=0).returncode == EXIT_WRITTEN
    assert farm.outcome(one).ended is Ended.DONE
    assert [line.words[2] for line in farm.lines("start")] == [f"{0.9 * memory_bytes() / 1e9:.3f}"]


@pytest.mark.parametrize(
    ("do", "ended", "sentence"),
    [
        ("fail", Ended.FAILED, "A gate failed on anna."),
        ("refuse", Ended.REFUSED, "anna is poisoned."),
    ],
)
def test_outcome_has_the_commands_sentence_when_it_says_no(
    do: str, ended: Ended, sentence: str, farm: StubFarm
) -> None:
    one = job("anna", do)
    farm.plan([one])
    assert farm.attempt(one).returncode == EXIT_WRITTEN
    outcome = farm.outcome(one)
    assert (outcome.ended, outcome.sentence, outcome.files) == (ended, sentence, ())
    assert outcome.report is not None


@pytest.mark.parametrize(
    ("do", "how"),
    [
        ("silent", "ended with exit code 1"),
        ("chatter", "ended with exit code 0"),
        ("crash", "was ended by signal 9"),
    ],
)
def test_job_is_tried_again_and_lost_in_the_end_when_its_command_says_nothing(
    do: str, how: str, farm: StubFarm
) -> None:
    one = job("anna", do)
    farm.plan([one])
    sentence = f"The command {how} without a word of its own; see {farm.places.log(one.id)}."
    for attempt in (1, 2):
        assert farm.attempt(one, attempt=attempt).returncode == EXIT_AGAIN
        assert not farm.places.outcome(one.id).exists()
        died = read_died(farm.places.died(one.id))
        assert died is not None
        assert died == Died(one.id, attempt, Ended.LOST, sentence, socket.gethostname(), died.peak_bytes)
    assert farm.attempt(one, attempt=3).returncode == EXIT_WRITTEN
    assert (farm.outcome(one).ended, farm.outcome(one).sentence) == (Ended.LOST, sentence)


def test_job_is_ended_and_tried_again_when_it_takes_more_memory_than_it_may(farm: StubFarm) -> None:
    one = job("anna", "eat")
    farm.plan([one])
    assert farm.attempt(one).returncode == EXIT_AGAIN
    assert not farm.lines("end")
    died = read_died(farm.places.died(one.id))
    assert died is not None
    assert died.ended is Ended.MEMORY
    assert died.peak_bytes > SMALL_MB * 10**6
    assert died.sentence == f"It took {died.peak_bytes / 1e9:.2f} GB of memory, and may take 0.10 GB."
    assert farm.attempt(one, attempt=2, alone=True, memory_mb=1000).returncode == EXIT_WRITTEN
    outcome = farm.outcome(one)
    assert outcome.ended is Ended.DONE
    assert outcome.peak_bytes > 150 * 10**6
    assert not farm.places.died(one.id).exists()


def test_job_ends_for_memory_when_it_had_the_machine_to_itself(farm: StubFarm) -> None:
    one = job("anna", "eat")
    farm.plan([one])
    assert farm.attempt(one).returncode == EXIT_AGAIN
    assert farm.attempt(one, attempt=2, alone=True).returncode == EXIT_WRITTEN
    assert farm.outcome(one).ended is Ended.MEMORY
    died = read_died(farm.places.died(one.id))
    assert died is not None  # for the next run, where it starts alone
    assert died.ended is Ended.MEMORY


def test_job_is_tried_again_when_its_command_says_that_memory_was_short(farm: StubFarm) -> None:
    one = job("anna", "short-memory")
    farm.plan([one])
    assert farm.attempt(one).returncode == EXIT_AGAIN
    died = read_died(farm.places.died(one.id))
    assert died is not None
    assert (died.ended, died.sentence) == (Ended.MEMORY, "The toolkit was stopped: too little memory.")
    assert farm.attempt(one, attempt=2).returncode == EXIT_WRITTEN
    assert farm.outcome(one).ended is Ended.DONE


def test_job_is_tried_once_more_when_room_was_wanting(farm: StubFarm) -> None:
    one, other = job("anna", "short-disk"), job("berta", "short-disk")
    farm.plan([one, other])
    assert farm.attempt(one).returncode == EXIT_AGAIN
    assert farm.attempt(one, attempt=2).returncode == EXIT_WRITTEN
    assert farm.outcome(one).ended is Ended.DONE
    assert farm.attempt(other, attempt=2).returncode == EXIT_WRITTEN  # of three
    assert (farm.outcome(other).ended, farm.outcome(other).sentence) == (
        Ended.DISK,
        "No space left on the scratch disk.",
    )


def test_runner_fails_in_a_sentence_when_the_outcome_cannot_be_written(farm: StubFarm) -> None:
    one = job("anna")
    farm.plan([one])
    with (farm.places.own / "outcomes").open("w", encoding="utf-8"):  # where a folder should be made
        done = farm.attempt(one)
    assert done.returncode == EXIT_AGAIN
    assert one.id in done.stderr
    assert "Traceback" not in done.stderr


def test_job_waits_when_what_it_needs_is_not_done(farm: StubFarm) -> None:
    first = job("anna", "refuse")
    second = job("anna", kind=Kind.COMPILE, needs=[first])
    farm.plan([first, second])
    farm.attempt(first)
    assert farm.attempt(second).returncode == EXIT_WRITTEN
    outcome = farm.outcome(second)
    assert outcome.ended is Ended.WAITING
    assert outcome.sentence == f"It starts from what {first.id} makes, which ended as refused: anna is poisoned."
    assert len(farm.lines("start")) == 1


def test_job_waits_when_the_outcome_that_it_needs_is_damaged(farm: StubFarm) -> None:
    first = job("anna")
    second = job("anna", kind=Kind.COMPILE, needs=[first])
    farm.plan([first, second])
    farm.attempt(first)
    farm.places.outcome(first.id).write_text("{", encoding="utf-8")
    assert farm.attempt(second).returncode == EXIT_WRITTEN
    assert farm.outcome(second).ended is Ended.WAITING
    assert farm.outcome(second).sentence == (
        f"It starts from what {first.id} makes, whose outcome is damaged; run the farm again."
    )


def test_job_is_lost_when_its_command_names_a_file_that_is_not_there(farm: StubFarm) -> None:
    one = job("anna", "missing")
    farm.plan([one])
    assert farm.attempt(one).returncode == EXIT_AGAIN
    assert farm.attempt(one, attempt=3).returncode == EXIT_WRITTEN
    outcome = farm.outcome(one)
    assert outcome.ended is Ended.LOST
    assert outcome.sentence is not None
    assert "anna.gone" in outcome.sentence


def test_what_is_made_twice_finds_no_finished_step_and_leaves_only_its_digests(farm: StubFarm) -> None:
    theirs = ("onnx/anna.onnx",)  # which is no longer there
    first = JobOutcome(job("anna", kind=Kind.COMPILE).id, Ended.DONE, None, "n", 1, 0.0, 0.0, 0.0, 0, models=theirs)
    one = job("anna", kind=Kind.TWICE, needs=[job("anna", kind=Kind.COMPILE)])
    scratch = farm.places.scratch / one.id
    (scratch / "cache").mkdir(parents=True)
    (scratch / "cache" / "of an attempt that was killed").touch()
    farm.plan([one])
    write_outcome(first, farm.places.outcome(first.job))
    assert farm.attempt(one).returncode == EXIT_WRITTEN
    content = b"export anna\ncompile anna\n"
    outcome = farm.outcome(one)
    assert [(Path(made.path).name, made.sha256) for made in outcome.files][1] == (
        "anna.rknn",
        hashlib.sha256(content).hexdigest(),
    )
    assert [line.words[3] for line in farm.lines("start")] == [str(scratch / "cache")] * 2
    assert not scratch.exists()


def test_nothing_is_left_running_when_a_command_leaves_a_process(farm: StubFarm) -> None:
    one = job("anna", "leave")
    farm.plan([one])
    assert farm.attempt(one).returncode == EXIT_WRITTEN
    assert not is_running(int(farm.lines("left")[0].words[1]))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_command_ends_without_an_outcome_when_the_runner_is_ended(number: signal.Signals, farm: StubFarm) -> None:
    one = job("anna", "hang")
    farm.plan([one])
    with subprocess.Popen(farm.runner(one), cwd=farm.places.own, env=dict(farm.environment)) as runner:
        until(lambda: bool(farm.lines("start")))
        command = descendants(runner.pid)[0].pid
        runner.send_signal(number)
        code = runner.wait(PATIENCE_S)
    assert code == (-number if number is signal.SIGKILL else EXIT_STOPPED)
    until(lambda: not is_running(command))
    assert not farm.places.outcome(one.id).exists()


def test_runner_ends_when_who_started_it_has(farm: StubFarm) -> None:
    one = job("anna")
    farm.plan([one])
    words = farm.runner(one)
    words[words.index("--parent") + 1] = "1"
    done = subprocess.run(words, cwd=farm.places.own, env=dict(farm.environment), check=False)
    assert done.returncode == EXIT_STOPPED
    assert not farm.lines("start")


def test_jobs_have_processors_of_their_own_when_there_are_enough(farm: StubFarm) -> None:
    jobs = [job("anna", "slow"), job("berta", "slow")]
    farm.plan(jobs)
    runners = [subprocess.Popen(farm.runner(one), cwd=farm.places.own, env=dict(farm.environment)) for one in jobs]
    assert [runner.wait(PATIENCE_S) for runner in runners] == [EXIT_WRITTEN] * 2
    seen = [line.words[4] for line in farm.lines("start")]
    assert len(seen) == 2
    if len(os.sched_getaffinity(0)) >= 2:
        assert all(len(processors.split(",")) == 1 for processors in seen)
        assert len(set(seen)) == 2


def test_sentence_names_the_job_when_it_is_none_of_the_farms(farm: StubFarm) -> None:
    farm.plan([job("anna")])
    done = farm.attempt(job("berta"))
    assert done.returncode == EXIT_AGAIN
    assert f"has no job {job('berta').id}" in done.stderr


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
