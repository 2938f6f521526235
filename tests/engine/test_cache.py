"""The cache of finished steps: what it finds, what it drops, and that it never makes a command fail."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from contracts.errors import UserInput
from engine import folders
from engine.cache import StepCache, default_folder, limit_bytes, source_digest, step_key

KEY = step_key("build", {"onnx": "aa", "target": "rk3588"})


def result(folder: Path, size_bytes: int = 10, text: str = "log") -> Path:
    """A step's result."""
    (folder / "sub").mkdir(parents=True)
    (folder / "engine.rknn").write_bytes(b"R" * size_bytes)
    (folder / "sub" / "log.txt").write_text(text)
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.name.startswith("."))


def age(cache_folder: Path, key: str, days: float) -> None:
    """Makes an entry look last used so many days ago."""
    then_s = time.time() - days * 86400
    os.utime(cache_folder / key[:2] / key / ".contents.json", (then_s, then_s))


def test_step_is_found_when_it_was_stored_even_by_another_process(tmp_path: Path) -> None:
    made = result(tmp_path / "made")
    kept = StepCache(tmp_path / "cache").store(KEY, made)
    found = StepCache(tmp_path / "cache").find(KEY)
    assert found == kept != made
    assert found is not None
    assert names(found) == names(made) == ["engine.rknn", "sub", "sub/log.txt"]
    assert (found / "sub" / "log.txt").read_text() == "log"


def test_step_is_not_found_when_it_was_never_stored(tmp_path: Path) -> None:
    assert StepCache(tmp_path / "nowhere").find(KEY) is None
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda entry: (entry / "engine.rknn").write_bytes(b"R" * 9),
        lambda entry: (entry / "engine.rknn").write_bytes(b"Q" * 10),
        lambda entry: (entry / "engine.rknn").unlink(),
        lambda entry: (entry / "sub" / "extra").touch(),
        lambda entry: (entry / ".contents.json").write_text("{"),
        lambda entry: (entry / ".contents.json").write_text("[]"),
        lambda entry: (entry / ".contents.json").unlink(),
    ],
    ids=["truncated", "changed", "missing", "extra", "no json", "other json", "no list"],
)
def test_step_is_not_found_and_can_be_stored_again_when_it_was_damaged(tmp_path: Path, damage: object) -> None:
    cache = StepCache(tmp_path / "cache")
    made = result(tmp_path / "made")
    entry = cache.store(KEY, made)
    damage(entry)  # type: ignore[operator]
    assert cache.find(KEY) is None
    cache.store(KEY, made)
    found = cache.find(KEY)
    assert found is not None
    assert (found / "engine.rknn").read_bytes() == b"R" * 10


def test_least_recently_used_goes_when_the_cache_is_full(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    keys = [step_key("build", {"n": str(n)}) for n in range(4)]
    for n, key in enumerate(keys[:3]):
        StepCache(folder).store(key, result(tmp_path / str(n), size_bytes=1000))
    for key, days in zip(keys, (3, 2, 1), strict=False):
        age(folder, key, days)
    StepCache(folder).find(keys[0])  # the oldest is used again
    StepCache(folder, limit_bytes=3100).store(keys[3], result(tmp_path / "3", size_bytes=1000))
    assert [StepCache(folder).find(key) is not None for key in keys] == [True, False, True, True]


@pytest.mark.parametrize(("minutes", "stays"), [(55, True), (65, False)])
def test_step_stays_for_an_hour_when_another_process_has_found_it(tmp_path: Path, minutes: float, stays: bool) -> None:
    folder = tmp_path / "cache"
    other = step_key("build", {"n": "1"})
    StepCache(folder).store(KEY, result(tmp_path / "a"))
    age(folder, KEY, days=9)
    assert StepCache(folder).find(KEY)  # another process would have a cache of its own as well
    age(folder, KEY, days=minutes / 1440)
    StepCache(folder, limit_bytes=5).store(other, result(tmp_path / "b"))
    assert (StepCache(folder).find(KEY) is not None) is stays
    assert StepCache(folder).find(other) is not None


def test_step_is_kept_when_this_process_uses_it_or_it_alone_is_too_large(tmp_path: Path) -> None:
    cache = StepCache(tmp_path / "cache", limit_bytes=5)
    other = step_key("build", {"n": "1"})
    first = cache.store(KEY, result(tmp_path / "a"))
    age(tmp_path / "cache", KEY, days=1)
    second = cache.store(other, result(tmp_path / "b"))
    assert names(first) == names(second) == ["engine.rknn", "sub", "sub/log.txt"]


def test_cache_is_looked_through_as_often_as_its_limit_is_stored_64_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    monkeypatch.setattr(folders, "sync_tree", lambda folder: None)  # of time, and of no interest here
    monkeypatch.setattr(StepCache, "_evict", lambda cache: looked.append("looked"))
    made = result(tmp_path / "made", size_bytes=997)  # with the log, 1000 bytes a step
    cache = StepCache(tmp_path / "cache", limit_bytes=400 * 1000)
    for n in range(400):
        cache.store(step_key("build", {"n": str(n)}), made, given_up=True)
    assert 40 <= len(looked) <= 88  # 64 +- 3 standard deviations, the square root of 64
    looked.clear()
    StepCache(tmp_path / "cache", limit_bytes=64 * 1000).store(KEY, made)
    assert looked == ["looked"]


def test_cache_stays_near_its_limit_when_many_small_steps_are_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "sync_tree", lambda folder: None)
    made = result(tmp_path / "made", size_bytes=997)
    for n in range(150):
        key = step_key("build", {"n": str(n)})
        StepCache(tmp_path / "cache", limit_bytes=100 * 1000).store(key, made, given_up=True)
        age(tmp_path / "cache", key, days=1)
    size_bytes = StepCache(tmp_path / "cache").usage().size_bytes
    assert 90 * 1000 <= size_bytes <= 110 * 1000


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, 12 * 10**9),
        ({"RKNN_TTS_CACHE_LIMIT_GB": ""}, 12 * 10**9),
        ({"RKNN_TTS_CACHE_LIMIT_GB": "500"}, 500 * 10**9),
        ({"RKNN_TTS_CACHE_LIMIT_GB": " 0.5 "}, 5 * 10**8),
    ],
)
def test_limit_is_what_the_variable_says_else_that_of_a_person(environ: dict[str, str], expected: int) -> None:
    assert limit_bytes(environ) == expected


@pytest.mark.parametrize("asked", ["0", "-1", "12GB", "nan", "inf", "1e999"])
def test_limit_is_refused_in_a_sentence_when_it_is_no_size(asked: str) -> None:
    with pytest.raises(UserInput, match=rf"^RKNN_TTS_CACHE_LIMIT_GB is '{asked}', which is no number .* for 12\.$"):
        limit_bytes({"RKNN_TTS_CACHE_LIMIT_GB": asked})


def test_unfinished_folders_go_when_they_are_a_day_old(tmp_path: Path) -> None:
    cache = StepCache(tmp_path / "cache", limit_bytes=100)  # 13 bytes are more than the 64th part: each store looks
    cache.store(KEY, result(tmp_path / "made"))
    old, new = (tmp_path / "cache" / KEY[:2] / f".partial-{name}" for name in ("old", "new"))
    old.mkdir()
    new.mkdir()
    os.utime(old, (0, 0))
    cache.store(KEY, tmp_path / "made")
    assert not old.exists()
    assert new.exists()


@pytest.mark.parametrize("ending", ["claim", "claim-over"])
def test_claims_of_the_dead_go_when_the_cache_is_looked_through(ending: str, tmp_path: Path) -> None:
    cache = StepCache(tmp_path / "cache", limit_bytes=100)
    dead, alive = (tmp_path / "cache" / KEY[:2] / f"{name}.{ending}" for name in ("dead", "alive"))
    dead.parent.mkdir(parents=True)
    dead.touch()
    alive.touch()
    os.utime(dead, (0, 0))
    cache.store(KEY, result(tmp_path / "made"))
    assert (dead.exists(), alive.exists()) == (False, True)


def test_step_is_made_while_others_wait_and_they_are_told_who_makes_it(tmp_path: Path) -> None:
    said: list[str] = []
    found: list[Path | None] = []

    def second() -> None:
        other = StepCache(tmp_path / "cache", say=said.append)
        with other.claimed(KEY, "build"):
            found.append(other.find(KEY))

    thread = threading.Thread(target=second)
    cache = StepCache(tmp_path / "cache", say=pytest.fail)
    with cache.claimed(KEY, "build"):
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
        entry = cache.store(KEY, result(tmp_path / "made"))
    thread.join(10)
    assert found == [entry]
    assert said == [f"Waiting for the step build, which process {os.getpid()} on {socket.gethostname()} makes."]


def test_clean_removes_every_step_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    cache = StepCache(folder)
    cache.store(KEY, result(tmp_path / "made"))
    (folder / "mine.txt").write_text("a user's file")
    assert (cache.usage().entries, cache.usage().size_bytes) == (1, 13)
    assert cache.clean().entries == 1
    assert (cache.usage().entries, cache.usage().size_bytes) == (0, 0)
    assert cache.find(KEY) is None
    assert (folder / "mine.txt").exists()


@pytest.mark.parametrize("obstacle", ["file", "read-only system"])
def test_cache_says_once_that_it_keeps_nothing_when_it_cannot_be_written(tmp_path: Path, obstacle: str) -> None:
    folder = Path("/proc/self/cache")
    if obstacle == "file":
        folder = tmp_path / "file" / "cache"
        (tmp_path / "file").touch()
    said: list[str] = []
    cache = StepCache(folder, say=said.append)
    made = result(tmp_path / "made")
    assert cache.store(KEY, made) == made
    assert cache.store(KEY, made) == made
    assert cache.find(KEY) is None
    assert cache.clean().entries == 0
    assert len(said) == 1
    assert str(folder) in said[0]
    assert "RKNN_TTS_CACHE" in said[0]


def test_step_is_always_there_and_whole_when_many_processes_store_it_at_once(tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path\nfrom engine.cache import StepCache\n"
        "cache = StepCache(Path(sys.argv[2]), say=lambda text: sys.exit(text))\n"
        "for n in range(30):\n"
        "    (Path(sys.argv[4]) / 'sub' / 'log.txt').write_text('x' * n)\n"
        "    stored = cache.store(sys.argv[3], Path(sys.argv[4]))\n"
        "    assert cache.find(sys.argv[3]) == stored\n"
        "    assert (stored / 'sub' / 'log.txt').stat().st_size < 30\n"
        "    assert (stored / 'engine.rknn').stat().st_size == 200_000\n"
    )
    root = str(Path(__file__).resolve().parents[2])
    command = [sys.executable, "-c", code, root, str(tmp_path / "cache"), KEY]
    made = [result(tmp_path / name, size_bytes=200_000) for name in "abc"]
    writers = [subprocess.Popen([*command, str(folder)]) for folder in made]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0]
    assert StepCache(tmp_path / "cache").find(KEY) is not None
    assert [path.name for path in (tmp_path / "cache" / KEY[:2]).iterdir()] == [KEY]


def test_key_changes_when_any_part_does_and_only_then() -> None:
    keys = {
        KEY,
        step_key("build2", {"onnx": "aa", "target": "rk3588"}),
        step_key("build", {"onnx": "ab", "target": "rk3588"}),
        step_key("build", {"onnx": "aa"}),
        step_key("build", {"onnx": "aa", "target": "rk3588", "x": ""}),
        step_key("build", {"onnx": 'aa","target', "target": "rk3588"}),
    }
    assert len(keys) == 6
    assert step_key("build", {"target": "rk3588", "onnx": "aa"}) == KEY
    assert len(KEY) == 64


def test_source_digest_changes_when_code_does_and_only_then(tmp_path: Path) -> None:
    def checkout(name: str, files: dict[str, str]) -> str:
        for file, text in files.items():
            path = tmp_path / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return source_digest([tmp_path / name / "room", tmp_path / name / "other"])

    same = {"room/a.py": "1", "room/sub/b.py": "2", "other/c.py": "3"}
    first = checkout("first", same)
    assert checkout("second", {**same, "room/a.pyc": "9", "room/notes.md": "9", "unused/d.py": "9"}) == first
    assert checkout("edited", {**same, "room/a.py": "9"}) != first
    assert checkout("renamed", {"room/z.py": "1", "room/sub/b.py": "2", "other/c.py": "3"}) != first
    assert checkout("moved", {"room/sub/b.py": "2", "other/c.py": "3", "other/a.py": "1"}) != first


@pytest.mark.parametrize(("value", "folder"), [("/somewhere", "/somewhere"), (None, "/xdg/rknn-tts")])
def test_default_folder_is_the_variable_else_the_users_cache(
    value: str | None, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    monkeypatch.delenv("RKNN_TTS_CACHE", raising=False)
    if value:
        monkeypatch.setenv("RKNN_TTS_CACHE", value)
    assert default_folder() == Path(folder)


def test_contents_name_every_file_with_size_and_digest(tmp_path: Path) -> None:
    entry = StepCache(tmp_path / "cache").store(KEY, result(tmp_path / "made", size_bytes=0, text="abc"))
    assert json.loads((entry / ".contents.json").read_text()) == {
        "engine.rknn": [0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"],  # of nothing
        "sub/log.txt": [3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"],  # of "abc" (FIPS 180-2)
    }


def test_files_of_a_step_that_are_given_up_are_not_copied(tmp_path: Path) -> None:
    made = result(tmp_path / "made")
    cache = StepCache(tmp_path / "cache")
    kept = cache.store(KEY, made, given_up=True)
    assert (kept / "engine.rknn").samefile(made / "engine.rknn")
    assert cache.find(KEY) == kept
    assert not (cache.store(step_key("other", {}), made) / "engine.rknn").samefile(made / "engine.rknn")


def test_files_of_a_step_are_copied_when_they_cannot_have_a_second_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    made = result(tmp_path / "made")
    kept = StepCache(tmp_path / "cache").store(KEY, made, given_up=True)
    assert (kept / "engine.rknn").read_bytes() == (made / "engine.rknn").read_bytes()
    assert StepCache(tmp_path / "cache").find(KEY) == kept
