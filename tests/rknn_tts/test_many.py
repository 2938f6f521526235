"""The driver of many children, with a stand-in for the command that each of them runs."""

from __future__ import annotations

import os
import signal
import textwrap
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contracts.errors import Refusal, Shortage, UserInput
from engine.processes import descendants
from rknn_tts import many, many_processes
from rknn_tts.many import Crew, budget_for, convert_many, report_of_many
from rknn_tts.many_budget import Budget
from rknn_tts.many_voices import Voice
from rknn_tts.progress import Say
from rknn_tts.report import Part, Report, report_json, report_of_failure
from rknn_tts.request import Request
from tests.rknn_tts.samples import OUTCOME
from tests.rknn_tts.workshop import Heard

ASKED = Request("engine", family="piper", target="rk3588", checkpoint="*.onnx")
GOOD = report_json(Report(ASKED, outcome=OUTCOME))
MB = 10**6
ROOMY = Budget(10**12, 8, 1)

CHILD = f"""
import os, sys, time
from pathlib import Path
parent, *words = sys.argv[1:]
name = next(word for word in words if word.startswith("--checkpoint=")).partition("=")[2].removesuffix(".onnx")
with open("started", "a") as started:
    started.write(name + "\\n")
GOOD = {GOOD!r}
"""
"""How the stand-ins begin; each runs in the test's folder."""


@pytest.fixture
def crew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Crew]:
    """Makes a crew of children that run the Python `lines`, one for each letter of `names`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(many, "LOOK_S", 0.02)

    def make(lines: str, names: str, budget: Budget = ROOMY, say: Heard | None = None) -> Crew:
        (tmp_path / "child.py").write_text(CHILD + lines, encoding="utf-8")
        monkeypatch.setattr(many_processes, "CHILD", tmp_path / "child.py")
        return Crew(ASKED, [Voice(name, Path(f"{name}.onnx")) for name in names], budget, say or Heard())

    return make


def started() -> str:
    return "".join(Path("started").read_text().split())


def test_crew_gives_what_each_child_reported_in_their_order(crew: Callable[..., Crew]) -> None:
    said = Heard()
    parts = crew("time.sleep(0.3 if name == 'a' else 0)\nprint(GOOD)", "abc", say=said).run()
    assert [part.voice for part in parts] == ["a", "b", "c"]
    for part in parts:
        assert (part.report.outcome, part.report.exit_code, part.report.error) == (OUTCOME, 0, None)
        assert (part.report.request.checkpoint, part.report.subject) == (f"{part.voice}.onnx", part.voice)
    assert 0.3 <= parts[0].seconds < 30
    assert said.steps[0] == "0 of 3 done, at work on a, b, c"
    assert "2 of 3 done, at work on a" in said.steps


def test_crew_goes_on_when_children_fail(crew: Callable[..., Crew]) -> None:
    refused = report_json(report_of_failure(ASKED, Refusal("Not such a voice.")))
    lines = f"""
if name == "a":
    print({refused!r}); sys.exit(2)
if name == "b":
    print("half of"); print("a trace", file=sys.stderr); sys.exit(1)
if name == "c":
    os.kill(os.getpid(), 9)
print(GOOD)
"""
    said = Heard()
    parts = crew(lines, "abcd", Budget(10**12, 1, 1), said).run()
    assert [part.report.exit_code for part in parts] == [2, 1, 1, 0]
    remedy = "the machine may be short of memory: --jobs 1 converts one at a time."
    assert [part.report.error for part in parts] == [
        "Not such a voice.",
        f"Its process ended with exit code 1 and reported nothing (a trace); {remedy}",
        f"Its process was ended by signal 9 and reported nothing; {remedy}",
        None,
    ]
    assert [part.report.shortage for part in parts] == [None, None, Shortage.MEMORY, None]
    assert said.steps[-1] == "3 of 4 done, 3 failed, at work on d"


def test_crew_runs_no_more_at_once_than_the_budget_lets(crew: Callable[..., Crew]) -> None:
    lines = """
Path(name + ".here").touch()
time.sleep(0.2)
Path(name + ".seen").write_text(str(len(list(Path().glob("*.here")))))
Path(name + ".here").unlink()
print(GOOD)
"""
    parts = crew(lines, "abcde", Budget(10**12, 2, 1)).run()
    assert max(int(path.read_text()) for path in Path().glob("*.seen")) <= 2
    assert len(parts) == 5


def test_crew_learns_what_one_takes_from_a_finished_build_alone(crew: Callable[..., Crew]) -> None:
    # Each is expected to take all there is, so they go one by one until one has shown that it takes little.
    found = GOOD.replace('"reused": ["export"]', '"reused": ["build"]')
    lines = f"time.sleep(0.3)\nprint({found!r} if name == 'a' else GOOD)"
    working = crew(lines, "abcd", Budget(1000 * MB, 3, 1000 * MB))
    said = working.say
    assert isinstance(said, Heard)
    working.run()
    steps = list(dict.fromkeys(said.steps))
    assert steps[:3] == ["0 of 4 done, at work on a", "1 of 4 done, at work on b", "2 of 4 done, at work on c, d"]
    assert MB < working.budget.measured_bytes < 300 * MB


HOLD = """
held = bytearray(150 * 10**6)
for index in range(0, len(held), 4096):
    held[index] = 1
"""


def test_crew_lets_the_last_wait_when_all_take_more_than_there_is(crew: Callable[..., Crew]) -> None:
    lines = f"""
again = Path("started").read_text().count(name) == 2
if name == "c" and not again:
    Path("c.pid").write_text(str(os.getpid()))
{HOLD}
if name == "c" and not again:
    time.sleep(60)  # it is stopped
while name == "b":
    time.sleep(0.02)
    pid = Path("c.pid").read_text() if Path("c.pid").exists() else ""
    if pid and not Path("/proc", pid).exists():
        break
print(GOOD)
"""
    working = crew(lines, "bc", Budget(260 * MB, 2, 1 * MB))
    parts = working.run()
    assert [part.report.exit_code for part in parts] == [0, 0]
    assert sorted(started()) == ["b", "c", "c"]
    assert parts[0].peak_bytes + working.budget.least_bytes > 260 * MB


def test_crew_fails_the_voice_that_alone_takes_more_than_there_is(crew: Callable[..., Crew]) -> None:
    lines = f"""
if name == "b":
{textwrap.indent(HOLD, "    ")}
    time.sleep(60)  # it is stopped
print(GOOD)
"""
    parts = crew(lines, "ba", Budget(100 * MB, 1, 1 * MB)).run()
    assert [part.report.exit_code for part in parts] == [1, 0]
    assert parts[0].report.error == "Alone it took more than the 0.1 GB that all may take; --memory N allows N GB."
    assert parts[0].report.shortage is Shortage.MEMORY


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C counts: a job in the background of a shell ignores it, and hands that down."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_crew_leaves_no_child_when_it_is_interrupted(crew: Callable[..., Crew]) -> None:
    # One ends when it is told, the other would not.
    lines = """
import signal
if name == "b":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
Path(name + ".up").touch()
time.sleep(60)
"""

    def interrupt() -> None:
        while not (Path("a.up").exists() and Path("b.up").exists()):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    working = crew(lines, "ab")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(many_processes, "TERM_PERIOD_S", 0.3)
        threading.Thread(target=interrupt, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            working.run()
    assert descendants(os.getpid()) == []


@pytest.mark.parametrize(
    ("codes", "exit_code", "error"),
    [
        ([0, 0], 0, None),
        ([0, 2], 2, "Of 2 voices, 1 refused; 1 done."),
        ([2, 1, 0], 1, "Of 3 voices, 1 failed and 1 refused; 1 done."),
        ([130, 2], 1, "Of 2 voices, 1 failed and 1 refused; 0 done."),
    ],
)
def test_report_of_many_has_the_worst_exit_code(codes: list[int], exit_code: int, error: str | None) -> None:
    parts = [Part("v", Report(ASKED, code), 1.0, 0) for code in codes]
    report = report_of_many(ASKED, parts, 2.34)
    assert report.extra == {"seconds": 2.3}
    assert (report.exit_code, report.error, len(report.parts)) == (exit_code, error, len(codes))


def test_budget_for_is_what_the_user_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "v.onnx").write_bytes(bytes(1000))
    voices = [Voice("v", tmp_path / "v.onnx")]
    said = budget_for(Request("engine", memory_gb=3.5, jobs=7), voices)
    assert said == Budget(3_500_000_000, 7, 1_000_000_000)
    monkeypatch.setattr(many, "available_bytes", lambda: 10 * 10**9)
    free = budget_for(Request("engine"), voices)
    assert (free.memory_bytes, free.jobs) == (9 * 10**9, len(os.sched_getaffinity(0)))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"checkpoint": "none*"}, "--checkpoint none*: there is no"),
        ({"text": "hi"}, "--text says what a sample speaks: name a folder"),
        ({"sample": "new", "ids": "a"}, "--ids a: whole numbers"),
    ],
)
def test_convert_many_refuses_before_anything_is_started(options: dict[str, Any], said: str) -> None:
    request = Request(**{"command": "engine", "family": "piper", "checkpoint": "*.onnx", **options})
    with pytest.raises(UserInput) as refused:
        convert_many(request, Heard())
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize(
    ("family", "text", "expected"),
    [("piper", None, []), ("piper", "hi", ["phonemes"]), ("inflect", None, ["torch"])],
)
def test_convert_many_installs_once_what_voices_and_a_text_need_before_children_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, family: str, text: str | None, expected: list[str]
) -> None:
    for name in ("v.onnx", "model.pth", "config.json"):  # a voice of Piper's, and weights of Inflect's
        (tmp_path / name).touch()
    order: list[object] = []

    def ensure(extras: Iterable[str], say: Say) -> None:
        order.append(sorted(extras))

    def run(crew: Crew) -> list[Part]:
        order.append("children")
        return [Part("v", Report(ASKED), 1.0, 0)]

    monkeypatch.setattr(many, "ensure_extras", ensure)
    monkeypatch.setattr(many, "converter_python", lambda toolkit: None)
    monkeypatch.setattr(Crew, "run", run)
    pattern = "*.pth" if family == "inflect" else "*.onnx"
    request = replace(ASKED, family=family, checkpoint=f"{tmp_path}/{pattern}", sample=f"{tmp_path}/wav", text=text)
    assert convert_many(request, Heard()).exit_code == 0
    assert order == [expected, "children"]
