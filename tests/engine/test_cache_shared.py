"""A cache that many processes share, on one node and on several: what is found is whole, and is made once."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from engine.cache import StepCache, step_key
from engine.step_claims import look
from tests.engine.network_disk import NetworkDisk

ROOT = Path(__file__).resolve().parents[2]
KEY = step_key("build", {"onnx": "aa"})

PROCESSES, STEPS, KILLS = 8, 40, 12


def result(folder: Path, text: str = "R" * 10) -> Path:
    """A step's result."""
    folder.mkdir(parents=True)
    (folder / "engine.rknn").write_text(text)
    return folder


def elsewhere(cache: Path, text: str, root: Path = ROOT) -> None:
    """Another node stores the step: a process that knows nothing of this one's view of the disk."""
    code = (
        "import sys, tempfile; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path\nfrom engine.cache import StepCache\n"
        "with tempfile.TemporaryDirectory() as made:\n"
        "    (Path(made) / 'engine.rknn').write_text(sys.argv[4])\n"
        "    StepCache(Path(sys.argv[2])).store(sys.argv[3], Path(made))\n"
    )
    subprocess.run([sys.executable, "-c", code, str(root), str(cache), KEY, text], check=True)


def test_every_step_is_whole_and_made_once_when_processes_are_killed_at_work(tmp_path: Path) -> None:
    cache, notes, chance = tmp_path / "cache", tmp_path / "notes", random.Random(5)
    worker = [sys.executable, str(ROOT / "tests" / "engine" / "cache_worker.py"), str(ROOT), str(cache), str(notes)]

    def start(seed: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*worker, str(seed), str(STEPS)])

    running, killed = [start(seed) for seed in range(PROCESSES)], set()
    while not notes.exists():
        time.sleep(0.01)
    for kill in range(KILLS):
        time.sleep(chance.uniform(0.02, 0.06))
        victim = running.pop(chance.randrange(PROCESSES))
        if victim.poll() is None:
            victim.send_signal(signal.SIGKILL)
        if victim.wait() == -signal.SIGKILL:
            killed.add(victim.pid)
        else:
            assert victim.returncode == 0
        running.append(start(PROCESSES + kill))
    assert [process.wait(timeout=60) for process in running] == [0] * PROCESSES
    assert killed
    begun: dict[int, list[int]] = {}
    for line in notes.read_text().splitlines():
        pid, number = map(int, line.split())
        begun.setdefault(number, []).append(pid)
    assert sorted(begun) == list(range(STEPS))
    assert [pids for pids in begun.values() if not set(pids[:-1]) <= killed] == []
    assert all(StepCache(cache).find(step_key("stress", {"number": str(n)})) for n in range(STEPS))
    left = [look(path) for path in cache.glob("??/*.claim*")]  # of those killed once their step was there
    assert {claim.holder.pid for claim in left if claim and claim.holder} <= killed


def test_step_that_another_node_made_is_found_when_it_was_missing_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = StepCache(tmp_path / "cache")
    (tmp_path / "cache" / KEY[:2]).mkdir(parents=True)
    disk = NetworkDisk(monkeypatch)
    assert cache.find(KEY) is None
    elsewhere(tmp_path / "cache", "by another")
    assert disk.missing == set()  # else this node would not see it yet
    found = cache.find(KEY)
    assert found is not None
    assert (found / "engine.rknn").read_text() == "by another"


def test_step_is_replaced_whole_when_two_names_cannot_be_exchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    NetworkDisk(monkeypatch)
    cache = StepCache(tmp_path / "cache")
    cache.store(KEY, result(tmp_path / "a", "first"))
    entry = cache.store(KEY, result(tmp_path / "b", "second"))
    assert cache.find(KEY) == entry
    assert (entry / "engine.rknn").read_text() == "second"
    assert [path.name for path in entry.parent.iterdir()] == [KEY]


def test_step_is_replaced_when_another_node_stores_it_between_two_renames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, others = Path.rename, iter(["by another", "by a third"])

    def rename(path: Path, target: Path) -> Any:
        made = real(path, target)
        if path.name == KEY:  # the earlier one was set aside: there is none now
            for text in others:
                elsewhere(tmp_path / "cache", text)
                break
        return made

    cache = StepCache(tmp_path / "cache")
    cache.store(KEY, result(tmp_path / "a", "first"))
    NetworkDisk(monkeypatch)
    monkeypatch.setattr(Path, "rename", rename)
    entry = cache.store(KEY, result(tmp_path / "b", "second"))
    assert (entry / "engine.rknn").read_text() == "second"
    assert list(others) == []
    assert [path.name for path in entry.parent.iterdir()] == [KEY]


def test_step_goes_whole_and_can_be_stored_again_when_a_file_of_it_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = StepCache(tmp_path / "cache")
    entry = cache.store(KEY, result(tmp_path / "a"))
    NetworkDisk(monkeypatch).open_files.add("engine.rknn")
    cache.clean()
    assert not entry.exists()
    (left,) = entry.parent.iterdir()
    assert [path.name for path in left.iterdir()] == [".nfsengine.rknn"]
    assert cache.store(KEY, tmp_path / "a") == cache.find(KEY) == entry
    monkeypatch.undo()  # the file is closed, and a day passes
    os.utime(left, (0, 0))
    StepCache(tmp_path / "cache", limit_bytes=1).store(step_key("other", {}), tmp_path / "a")
    assert not left.exists()
    assert entry.exists()


def test_step_is_not_found_and_nothing_is_said_when_another_node_removes_it_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stale(path: Path, *_: object, **__: object) -> Any:
        raise OSError(errno.ESTALE, "Stale file handle", str(path))

    cache = StepCache(tmp_path / "cache", say=pytest.fail)
    cache.store(KEY, result(tmp_path / "a"))
    monkeypatch.setattr(Path, "open", stale)
    assert cache.find(KEY) is None


@pytest.mark.parametrize("ahead_s", [-2 * 86400.0, 2 * 86400.0])
def test_step_in_use_stays_when_the_clock_of_this_node_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead_s: float
) -> None:
    folder, real = tmp_path / "cache", time.time
    StepCache(folder).store(KEY, result(tmp_path / "a"))
    unfinished = folder / KEY[:2] / ".partial-other"
    unfinished.mkdir()
    monkeypatch.setattr(time, "time", lambda: real() + ahead_s)
    StepCache(folder, limit_bytes=1).store(step_key("other", {}), tmp_path / "a")
    assert StepCache(folder).find(KEY) is not None
    assert unfinished.exists()


def test_whole_step_stays_when_it_replaced_the_damaged_one_that_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, real = StepCache(tmp_path / "cache"), Path.rename
    entry = cache.store(KEY, result(tmp_path / "a", "first"))
    (entry / "engine.rknn").write_text("damaged")

    def rename(path: Path, target: Path) -> Any:
        if path == entry:
            monkeypatch.undo()
            elsewhere(tmp_path / "cache", "whole")  # just before the damaged one is taken away
        return real(path, target)

    monkeypatch.setattr(Path, "rename", rename)
    assert cache.find(KEY) is None
    assert (entry / "engine.rknn").read_text() == "whole"
    assert cache.find(KEY) == entry
