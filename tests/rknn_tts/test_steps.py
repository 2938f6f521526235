from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from contracts.errors import UserInput
from contracts.verdicts import Verdict, failure, passed, unproven
from rknn_tts import steps as module
from rknn_tts.steps import open_steps
from tests.rknn_tts.workshop import fresh_steps

PARTS = {"checkpoint": "ab", "options": "{}"}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RKNN_TTS_CACHE", str(tmp_path / "cache"))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    return scratch


@pytest.fixture
def made() -> list[int]:
    return []


@pytest.fixture
def work(made: list[int]) -> Callable[[Path], None]:
    def do(folder: Path) -> None:
        assert list(folder.iterdir()) == []
        made.append(len(made))
        (folder / "result").write_text(str(len(made)))

    return do


def test_step_is_found_again_when_nothing_has_changed(made: list[int], work: Callable[[Path], None]) -> None:
    first, second = fresh_steps(), fresh_steps()
    assert (first.folder("export", PARTS, work) / "result").read_text() == "1"
    assert (second.folder("export", dict(reversed(PARTS.items())), work) / "result").read_text() == "1"
    assert (first.reused, second.reused, made) == ([], ["export"], [0])


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("build", PARTS),
        ("export", {**PARTS, "checkpoint": "cd"}),
        ("export", {**PARTS, "options": '{"window": 93}'}),
        ("export", {**PARTS, "more": ""}),
        ("export", {"checkpoint": "ab"}),
    ],
)
def test_step_is_done_again_when_its_name_or_a_part_changes(
    made: list[int], work: Callable[[Path], None], name: str, parts: dict[str, str]
) -> None:
    fresh_steps().folder("export", PARTS, work)
    other = fresh_steps()
    other.folder(name, parts, work)
    assert (other.reused, made) == ([], [0, 1])


def test_step_is_done_again_when_code_changes(
    monkeypatch: pytest.MonkeyPatch, made: list[int], work: Callable[[Path], None]
) -> None:
    fresh_steps().folder("export", PARTS, work)
    monkeypatch.setattr(module, "code_digest", lambda *rooms: "edited")
    fresh_steps().folder("export", PARTS, work)
    assert made == [0, 1]


def test_step_that_some_rooms_decide_is_found_when_other_code_changes(
    monkeypatch: pytest.MonkeyPatch, made: list[int], work: Callable[[Path], None]
) -> None:
    rooms = ("engine", "logs")
    fresh_steps().folder("cost", PARTS, work, rooms)
    real = module.code_digest
    monkeypatch.setattr(module, "code_digest", lambda *given: real(*given) if given else "edited")
    again = fresh_steps()
    again.folder("cost", PARTS, work, rooms)
    assert (again.reused, made) == (["cost"], [0])
    fresh_steps().folder("cost", PARTS, work, ("engine",))
    assert made == [0, 1]


def test_step_is_done_again_when_forced_and_its_new_result_is_kept(
    made: list[int], work: Callable[[Path], None]
) -> None:
    fresh_steps().folder("export", PARTS, work)
    forced = fresh_steps(force=True)
    assert (forced.folder("export", PARTS, work) / "result").read_text() == "2"
    assert (fresh_steps().folder("export", PARTS, work) / "result").read_text() == "2"
    assert (forced.reused, made) == ([], [0, 1])


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_step_that_fails_leaves_nothing(
    own_cache: Path, made: list[int], work: Callable[[Path], None], error: type[BaseException]
) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").write_text("half a result")
        raise error

    with pytest.raises(error):
        fresh_steps().folder("export", PARTS, fail)
    assert list(own_cache.iterdir()) == []
    assert (fresh_steps().folder("export", PARTS, work) / "result").read_text() == "1"


@pytest.mark.parametrize("kind", ["folder", "value"])
def test_step_is_made_once_when_two_need_it_at_the_same_time(kind: str) -> None:
    begun, end = threading.Event(), threading.Event()
    made, said = [], []

    def slow() -> Verdict:
        made.append(kind)
        begun.set()
        assert end.wait(10)
        return passed("g", "", 8, "nodes")

    def need(steps: module.Steps) -> None:
        if kind == "folder":
            steps.folder("export", PARTS, lambda folder: (folder / slow().gate).touch())
        else:
            steps.value("export", Verdict, PARTS, slow)

    def told(sentence: str) -> None:
        said.append(sentence)
        end.set()

    first, second = fresh_steps(), open_steps(False, told)
    threads = [threading.Thread(target=need, args=[steps], daemon=True) for steps in (first, second)]
    threads[0].start()
    assert begun.wait(10)
    threads[1].start()
    for thread in threads:
        thread.join(10)
    assert (made, first.reused, second.reused) == ([kind], [], ["export"])
    assert [sentence[:29] for sentence in said] == ["Waiting for the step export, "]


def test_step_is_made_by_the_one_that_waited_when_the_first_fails(
    made: list[int], work: Callable[[Path], None]
) -> None:
    begun, end = threading.Event(), threading.Event()

    def fail(folder: Path) -> None:
        begun.set()
        assert end.wait(10)
        raise KeyboardInterrupt

    def first() -> None:
        with pytest.raises(KeyboardInterrupt):
            fresh_steps().folder("export", PARTS, fail)

    thread = threading.Thread(target=first, daemon=True)
    thread.start()
    assert begun.wait(10)
    assert (open_steps(False, lambda text: end.set()).folder("export", PARTS, work) / "result").read_text() == "1"
    thread.join(10)


def test_step_is_made_beside_another_when_it_is_forced(made: list[int], work: Callable[[Path], None]) -> None:
    def while_it_is_made(folder: Path) -> None:
        fresh_steps(force=True).folder("export", PARTS, work)
        (folder / "result").write_text("of the first")

    assert (fresh_steps().folder("export", PARTS, while_it_is_made) / "result").read_text() == "of the first"
    assert made == [0]


def test_steps_are_refused_when_the_limit_of_the_cache_is_no_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RKNN_TTS_CACHE_LIMIT_GB", "much")
    with pytest.raises(UserInput, match="RKNN_TTS_CACHE_LIMIT_GB is 'much'"):
        fresh_steps()


def test_step_leaves_nothing_beside_the_cache(own_cache: Path, work: Callable[[Path], None]) -> None:
    fresh_steps().folder("export", PARTS, work)
    assert list(own_cache.iterdir()) == []


def test_step_is_done_and_said_once_when_the_cache_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: Callable[[Path], None]
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("RKNN_TTS_CACHE", str(tmp_path / "file"))
    said: list[str] = []
    steps = open_steps(False, said.append)
    assert (steps.folder("export", PARTS, work) / "result").read_text() == "1"
    assert (steps.folder("build", PARTS, work) / "result").read_text() == "2"
    assert len(said) == 1
    assert "RKNN_TTS_CACHE" in said[0]


def test_step_that_is_not_kept_goes_with_the_process(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "temporary").mkdir()
    code = (
        "from rknn_tts.steps import open_steps\n"
        "folder = open_steps(False, print).folder('export', {}, lambda made: (made / 'result').touch())\n"
        "assert (folder / 'result').is_file()"
    )
    environment = {"RKNN_TTS_CACHE": str(tmp_path / "file"), "TMPDIR": str(tmp_path / "temporary")}
    subprocess.run([sys.executable, "-c", code], check=True, cwd=module.ROOT, env=environment)
    assert list((tmp_path / "temporary").iterdir()) == []


def test_step_in_the_making_goes_when_its_thread_ends_with_the_process(own_cache: Path) -> None:
    begun = threading.Event()

    def forever(folder: Path) -> None:
        (folder / "half").write_text("half a result")
        begun.set()
        threading.Event().wait()

    threading.Thread(target=lambda: fresh_steps().folder("export", PARTS, forever), daemon=True).start()
    assert begun.wait(10)
    assert [folder.name[:16] for folder in own_cache.iterdir()] == ["rknn-tts-export-"]
    module.remove_unfinished()
    assert list(own_cache.iterdir()) == []


@dataclass(frozen=True)
class Figures:
    worst_db: float
    names: tuple[str, ...]


def test_value_of_a_step_comes_back_as_it_was() -> None:
    figures = Figures(float("inf"), ("a", "b"))
    assert fresh_steps().value("judge", Figures, PARTS, lambda: figures) == figures
    assert fresh_steps().value("judge", Figures, PARTS, lambda: pytest.fail("done again")) == figures


def test_value_is_the_same_when_it_is_made_and_when_it_is_found() -> None:
    made, found = (fresh_steps().value("graph", Verdict, PARTS, lambda: passed("g", "", 8, "nodes")) for _ in range(2))
    assert (str(made.measured), str(found.measured)) == ("8.0", "8.0")


@dataclass(frozen=True)
class Judged:
    verdicts: tuple[Verdict, ...]


@pytest.mark.parametrize(
    ("kind", "value", "kept"),
    [
        (Verdict, passed("range.activations"), True),
        (Verdict, unproven("log.regtask", "a board can tell"), True),
        (Verdict, failure("range.activations", "it could not run: out of memory"), False),
        (Judged, Judged((passed("a"), passed("b"))), True),
        (Judged, Judged((passed("a"), failure("b", "out of memory"))), False),
    ],
)
def test_value_is_kept_unless_it_holds_a_failed_verdict(kind: type[Any], value: Any, kept: bool) -> None:
    made: list[int] = []

    def work() -> Any:
        made.append(len(made))
        return value

    for _ in range(2):
        assert fresh_steps().value("judge", kind, PARTS, work) == value
    assert len(made) == (1 if kept else 2)


def test_value_leaves_nothing_beside_the_cache_when_its_thread_dies_at_work(own_cache: Path) -> None:
    def work() -> Figures:
        assert list(own_cache.iterdir()) == []
        return Figures(1.0, ())

    fresh_steps().value("prove", Figures, PARTS, work)
    assert list(own_cache.iterdir()) == []


def test_code_digest_names_the_libraries_that_decide_results() -> None:
    digest = module.code_digest()
    for library in ("numpy", "onnx", "onnx-ir", "onnxruntime", "onnxslim", "protobuf", "python"):
        assert f"{library}==" in digest


def test_code_digest_covers_every_room_that_there_is() -> None:
    # Those that decide no result: where it runs, what starts it, and how it is shown.
    others = {"environments", "farm", "pages", "tests"}
    rooms = {path.parent.name for path in module.ROOT.glob("*/__init__.py")} - others
    assert rooms <= set(module.ROOMS)
