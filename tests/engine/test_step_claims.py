"""Claims: one of many makes a step, the others wait, and nobody waits for the dead."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine import step_claims as module
from engine.step_claims import STALE_CLAIM_S, Claim, Holder, claimed, is_abandoned, look

ROOT = str(Path(__file__).resolve().parents[2])

HOLDING = (
    "import sys; sys.path.insert(0, sys.argv[1])\n"
    "from pathlib import Path\nfrom engine.step_claims import claimed\n"
    "with claimed(Path(sys.argv[2]), lambda: False, print):\n"
    "    print('held', flush=True)\n"
    "    sys.stdin.read()\n"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "2f" / "2f81.claim"


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LONGEST_PAUSE_S", 0.02)


def unsaid(claim: Claim) -> None:
    pytest.fail(f"said {claim}")


def never() -> bool:
    return False


def holding(path: Path) -> subprocess.Popen[str]:
    """Another process that holds the claim until its stdin ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDING, ROOT, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def leave(path: Path, seconds_ago: float, **other: Any) -> Holder:
    """The claim of another node's process, whose last sign of life was so long ago."""
    holder = Holder("node7", "another boot", 17, "5", "0123456789abcdef")
    holder = dataclasses.replace(holder, **other)
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(dataclasses.asdict(holder)))
    then_s = time.time() - seconds_ago
    os.utime(path, (then_s, then_s))
    return holder


def test_claim_is_there_while_the_body_runs_and_nothing_is_left_of_it(path: Path) -> None:
    with claimed(path, never, unsaid):
        claim = look(path)
        assert claim is not None
        assert claim.holder is not None
        assert claim.holder.pid == os.getpid()
        assert [file.name for file in path.parent.iterdir()] == [path.name]
        assert path.stat().st_mode & 0o777 == 0o644
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_claim_is_gone_when_the_body_raises(path: Path, error: type[BaseException]) -> None:
    with pytest.raises(error), claimed(path, never, unsaid):
        raise error
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_another_waits_and_says_so_once_when_one_holds_the_claim(
    path: Path, links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(95, "Operation not supported")

    if not links:
        monkeypatch.setattr(os, "link", refuse)
    events: list[str] = []
    said: list[Claim] = []

    def second() -> None:
        with claimed(path, never, said.append):
            events.append("second")

    with claimed(path, never, unsaid):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
        events.append("first")
    thread.join(10)
    assert events == ["first", "second"]
    assert [claim.holder.pid for claim in said if claim.holder] == [os.getpid()]
    assert list(path.parent.iterdir()) == []


def test_nobody_waits_any_longer_when_the_step_is_made(path: Path) -> None:
    process, made = holding(path), threading.Event()
    said: list[Claim] = []

    def told(claim: Claim) -> None:
        said.append(claim)
        made.set()  # the step appears before its claim goes

    with claimed(path, made.is_set, told):
        assert process.poll() is None
        claim = look(path)
        assert claim is not None
        assert claim.holder is not None
        assert claim.holder.pid == process.pid
    assert look(path) is not None
    assert len(said) == 1
    process.communicate("")


@pytest.mark.parametrize("reaped", [True, False], ids=["gone", "zombie"])
def test_claim_is_taken_over_at_once_when_its_process_was_killed_on_this_node(path: Path, reaped: bool) -> None:
    process = holding(path)
    process.kill()
    if reaped:
        process.wait()
    else:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    with claimed(path, never, unsaid):
        claim = look(path)
        assert claim is not None
        assert claim.holder is not None
        assert claim.holder.pid == os.getpid()
    assert list(path.parent.iterdir()) == []
    process.communicate()


@pytest.mark.parametrize(
    ("change", "dead"),
    [
        ({}, False),
        ({"started": "1"}, True),  # another process has its number now
        ({"pid": 2**22 + 1}, True),  # larger than any number of a process (proc_sys_kernel(5), pid_max)
        ({"pid": 2**22 + 1, "machine": "another boot"}, False),
        ({"pid": 2**22 + 1, "machine": ""}, False),
    ],
)
def test_holder_is_dead_when_this_node_sees_no_such_process(change: dict[str, Any], dead: bool) -> None:
    holder = dataclasses.replace(module._this_process(), **change)
    assert is_abandoned(Claim(holder, 1000.0), 1001.0) is dead


@pytest.mark.parametrize(("silent_s", "abandoned"), [(STALE_CLAIM_S - 5, False), (STALE_CLAIM_S + 5, True)])
@pytest.mark.parametrize("damaged", [False, True])
def test_claim_of_another_node_is_taken_over_when_it_is_silent(
    path: Path, monkeypatch: pytest.MonkeyPatch, silent_s: float, abandoned: bool, damaged: bool
) -> None:
    leave(path, silent_s)
    if damaged:
        path.write_text("{")
        os.utime(path, (time.time() - silent_s,) * 2)
    monkeypatch.setattr(module, "LONGEST_WAIT_S", 0.2)
    said: list[Claim] = []
    with claimed(path, never, said.append):
        claim = look(path)
        assert claim is not None
        assert (claim.holder is not None and claim.holder.pid == os.getpid()) is abandoned
    assert (len(said) == 0) is abandoned
    assert path.exists() is not abandoned


def test_holder_gives_signs_of_life_by_the_clock_of_the_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HEARTBEAT_S", 0.01)
    with claimed(path, never, unsaid):
        os.utime(path, (0, 0))
        until = time.monotonic() + 10
        while path.stat().st_mtime < time.time() - 60 and time.monotonic() < until:
            time.sleep(0.01)
        assert path.stat().st_mtime > time.time() - 60


def test_holder_that_was_taken_over_leaves_the_claim_of_the_other_alone(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HEARTBEAT_S", 0.01)
    with claimed(path, never, unsaid):
        other = leave(path, 30)
        time.sleep(0.1)
    claim = look(path)
    assert claim is not None
    assert claim.holder == other
    assert claim.alive_s < time.time() - 25


def test_claim_is_ours_when_the_answer_to_its_making_got_lost(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real: Callable[..., None] = os.link

    def twice(*names: Any, **options: Any) -> None:
        real(*names, **options)
        real(*names, **options)  # asked again: File exists

    monkeypatch.setattr(os, "link", twice)
    with claimed(path, never, unsaid):
        assert path.exists()
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("node", ["this", "another"])
def test_take_over_that_was_killed_is_taken_over_too(path: Path, node: str) -> None:
    leave(path, STALE_CLAIM_S + 5)
    guard = path.with_name(path.name + "-over")
    if node == "this":
        here = dataclasses.asdict(module._this_process())
        leave(guard, 0, **{**here, "pid": 2**22 + 1})
    else:
        leave(guard, STALE_CLAIM_S + 5)
    with claimed(path, never, unsaid):
        claim = look(path)
        assert claim is not None
        assert claim.holder is not None
        assert claim.holder.pid == os.getpid()
    assert list(path.parent.iterdir()) == []


def test_fresh_claim_stays_when_another_took_over_just_before(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real: Callable[..., bool] = module._take_over

    def late(*arguments: Any) -> bool:
        leave(path, 0, token="fresh")
        return real(*arguments)

    leave(path, STALE_CLAIM_S + 5)
    monkeypatch.setattr(module, "_take_over", late)
    monkeypatch.setattr(module, "LONGEST_WAIT_S", 0.2)
    with claimed(path, never, lambda claim: None):
        claim = look(path)
        assert claim is not None
        assert claim.holder is not None
        assert claim.holder.token == "fresh"
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_only_one_has_the_claim_when_many_take_over_a_dead_one(path: Path) -> None:
    leave(path, STALE_CLAIM_S + 5)
    inside, most, done = [0], [0], [0]
    lock, start = threading.Lock(), threading.Barrier(8)

    def take() -> None:
        start.wait()
        with claimed(path, never, lambda claim: None):
            with lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
            time.sleep(0.01)
            with lock:
                inside[0] -= 1
                done[0] += 1

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (most, done) == ([1], [8])
    assert list(path.parent.iterdir()) == []


def test_claim_goes_with_the_process_when_its_thread_is_at_work(path: Path) -> None:
    code = (
        "import sys, threading; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path\nfrom engine.step_claims import claimed\n"
        "begun = threading.Event()\n"
        "def work():\n"
        "    with claimed(Path(sys.argv[2]), lambda: False, print):\n"
        "        begun.set()\n"
        "        threading.Event().wait()\n"
        "threading.Thread(target=work, daemon=True).start()\n"
        "begun.wait()\n"
        "assert Path(sys.argv[2]).exists()\n"
    )
    subprocess.run([sys.executable, "-c", code, ROOT, str(path)], check=True)
    assert list(path.parent.iterdir()) == []


def test_body_runs_without_a_claim_when_none_can_be_written() -> None:
    ran = []
    with claimed(Path("/proc/self/2f/2f81.claim"), never, unsaid):
        ran.append(True)
    assert ran
