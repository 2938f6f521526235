"""Every way a converter process can go wrong ends in one sentence, with nothing left behind.

The converter's Python is replaced by a script that misbehaves; `scratch` checks that no working directory stays, and
`mark` that no process does.
"""

from __future__ import annotations

import dataclasses
import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from contracts.errors import Shortage, ToolFailure
from contracts.verdicts import Status
from engine.build import build_engine
from engine.endings import StoppedByLog
from engine.request import BuildRequest

BOUND_S = 60.0
"""Far more than any of these needs (the slowest 2 s: 1 s between TERM and KILL), even on a busy machine."""

GB = 1 << 30


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A text in the environment of every process of the build; none of them may be left in the end."""
    text = f"mark-{os.getpid()}-{time.monotonic_ns()}"
    monkeypatch.setenv("LD_LIBRARY_PATH", f"/nowhere/{text}")  # one of the few variables that are passed on
    yield text
    assert marked(text) == []


def marked(text: str) -> list[str]:
    """The command lines of all processes with `text` in their environment but this one."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                if text.encode() in (folder / "environ").read_bytes():
                    found.append((folder / "cmdline").read_bytes().decode())
            except OSError:
                continue
    return found


@pytest.fixture
def request_for(fake_converter: Callable[[str], Path], tmp_path: Path, mark: str) -> Callable[[str], BuildRequest]:
    (tmp_path / "a.onnx").write_bytes(b"no toolkit reads it")

    def make(lines: str) -> BuildRequest:
        return BuildRequest(
            onnx=tmp_path / "a.onnx",
            target="rk3588",
            toolkit="2.3.2",
            converter_python=fake_converter(lines),
            result_folder=tmp_path / "results" / "result",
            log=tmp_path / "logs" / "build.log",
            timeout_s=30.0,
        )

    return make


FAILURES = [
    pytest.param(
        'report(step="build"); print("D fuse_ops ...", flush=True); os.kill(os.getpid(), signal.SIGSEGV)',
        {},
        ["crashed", "SIGSEGV", "step build", "fuse ops"],
        id="segfault",
    ),
    pytest.param("os.abort()", {}, ["crashed", "SIGABRT"], id="abort"),
    pytest.param("os.kill(os.getpid(), signal.SIGKILL)", {}, ["killed from outside", "SIGKILL", "memory"], id="killed"),
    pytest.param("os.kill(os.getpid(), signal.SIGTERM)", {}, ["ended from outside", "SIGTERM"], id="terminated"),
    pytest.param("time.sleep(9999)", {"timeout_s": 0.5}, ["time limit of 0.5 s"], id="hang"),
    pytest.param(
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(9999)",
        {"timeout_s": 0.5},
        ["time limit of 0.5 s"],
        id="hang that ignores TERM",
    ),
    pytest.param(
        "os.close(1); os.close(2)\ntime.sleep(9999)", {"timeout_s": 0.5}, ["time limit"], id="hang with closed output"
    ),
    pytest.param("os.kill(os.getpid(), signal.SIGSTOP)", {"timeout_s": 0.5}, ["time limit"], id="stopped"),
    pytest.param("", {}, ["ended without an error before its end"], id="nothing"),
    pytest.param('report(step="done")', {}, ["wrote no engine"], id="no export"),
    pytest.param(
        'report(step="done"); (folder / "engine.rknn").touch()', {}, ["wrote an empty engine"], id="empty export"
    ),
    pytest.param(
        'report(step="done"); (folder / "engine.rknn").write_bytes(b"<html>")',
        {},
        ["is no engine", "<htm"],
        id="export of something else",
    ),
    pytest.param(
        'report(step="load_onnx", codes={"load_onnx": -1}, error="load_onnx returned -1"); sys.exit(3)',
        {},
        ["step load_onnx", "load_onnx returned -1"],
        id="return code",
    ),
    pytest.param(
        'print("E build: Catch exception when building RKNN model!")\n'
        'report(step="build", error="build returned -1"); sys.exit(3)',
        {},
        ["build returned -1", "Catch exception when building RKNN model!"],
        id="return code with an error line",
    ),
    pytest.param(
        'print("E build: Traceback (most recent call last):", flush=True); time.sleep(0.1)\n'
        'report(step="build", error="KeyError: \'cond\'"); sys.exit(3)',
        {},
        ["step build", "KeyError: 'cond'"],
        id="exception",
    ),
    pytest.param(
        'report(step="import", error="ImportError: no rknn"); sys.exit(4)',
        {},
        ["converter environment", "is broken", "no rknn", "doctor"],
        id="broken environment",
    ),
    pytest.param("sys.exit(77)", {}, ["exit code 77"], id="exit code"),
    pytest.param('raise ImportError("libpython")', {}, ["exit code 1", "ImportError: libpython"], id="uncaught"),
    pytest.param(
        'report(step="export_rknn", error="OSError: x", disk_full=True); sys.exit(3)', {}, ["disk is full"], id="ENOSPC"
    ),
    pytest.param(
        'print("OSError: [Errno 28] No space left on device"); sys.exit(1)',
        {},
        ["disk is full"],
        id="ENOSPC in the log",
    ),
    pytest.param(
        "data = []\nwhile True: data.append(bytearray(os.urandom(1 << 20) * 32)); time.sleep(0.05)",
        {"memory_limit_bytes": GB // 4},
        ["held 0.", "its limit of 0.268 GB"],
        id="memory",
    ),
    pytest.param(
        "code = 'import os, time; data = os.urandom(1 << 20) * 200; time.sleep(9999)'\n"
        "for _ in range(2): subprocess.Popen([sys.executable, '-c', code])\n"
        "time.sleep(9999)",
        {"memory_limit_bytes": GB // 3},
        ["its limit of"],
        id="memory of its children together",
    ),
]


@pytest.mark.parametrize(("lines", "changes", "words"), FAILURES)
def test_build_says_what_happened_when_the_converter(
    lines: str, changes: dict[str, float], words: list[str], request_for: Callable[[str], BuildRequest]
) -> None:
    request = dataclasses.replace(request_for(lines), **changes)  # type: ignore[arg-type] # numbers all
    with pytest.raises(ToolFailure) as caught:
        build_engine(request)
    sentence = str(caught.value)
    for word in words:
        assert word in sentence
    assert sentence.endswith(f"The log is kept in {request.log}.")
    assert "\n" not in sentence
    assert caught.value.log == request.log
    assert request.log.is_file()
    assert not request.result_folder.parent.exists() or not list(request.result_folder.parent.iterdir())


@pytest.mark.parametrize(
    ("lines", "limit_bytes", "shortage"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", None, Shortage.MEMORY),
        ("data = os.urandom(1 << 20) * 400; time.sleep(9999)", GB // 4, Shortage.MEMORY),
        ('report(step="export_rknn", error="OSError: x", disk_full=True); sys.exit(3)', None, Shortage.DISK),
        ('print("OSError: [Errno 28] No space left on device"); sys.exit(1)', None, Shortage.DISK),
        ("os.kill(os.getpid(), signal.SIGSEGV)", None, None),
        ("sys.exit(1)", None, None),
    ],
)
def test_build_says_what_the_machine_lacked_when_the_converter(
    lines: str, limit_bytes: int | None, shortage: Shortage | None, request_for: Callable[[str], BuildRequest]
) -> None:
    request = dataclasses.replace(request_for(lines), memory_limit_bytes=limit_bytes)
    with pytest.raises(ToolFailure) as caught:
        build_engine(request)
    assert caught.value.shortage is shortage


@pytest.mark.parametrize(
    ("number", "shortage"), [(errno.ENOSPC, Shortage.DISK), (errno.EDQUOT, Shortage.DISK), (errno.EACCES, None)]
)
def test_build_says_what_the_machine_lacked_when_its_own_files_cannot_be_written(
    number: int,
    shortage: Shortage | None,
    request_for: Callable[[str], BuildRequest],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> NoReturn:
        raise OSError(number, os.strerror(number), "engine.rknn")

    monkeypatch.setattr("engine.build.keep_build", refuse)
    lines = 'report(step="done"); (folder / "engine.rknn").write_bytes(b"RKNN")'
    with pytest.raises(ToolFailure, match=r"could not write its files: .* \(engine\.rknn\)") as caught:
        build_engine(request_for(lines))
    assert caught.value.shortage is shortage


RANDOM_WEIGHTS = "W load_onnx: Load external data for 'w' failed! Generate random data for test!"


@pytest.mark.parametrize("error", [None, "build returned -1"], ids=["silent", "after it has said why it failed"])
def test_build_is_stopped_by_its_log_when_that_holds_what_no_engine_may_and_the_converter_hangs(
    error: str | None, request_for: Callable[[str], BuildRequest]
) -> None:
    """It would hang for hours, and its time limit is hours as well."""
    lines = f"report(step='build', error={error!r}); print({RANDOM_WEIGHTS!r}, flush=True); time.sleep(9999)"
    request = dataclasses.replace(request_for(lines), timeout_s=9999.0)
    with pytest.raises(StoppedByLog, match="random") as caught:
        build_engine(request)
    assert str(caught.value).endswith(f"The log is kept in {request.log}.")
    assert "from outside" not in str(caught.value)
    assert caught.value.log == request.log
    assert request.log.read_text() == f"{RANDOM_WEIGHTS}\n"
    bad = [verdict.gate for verdict in caught.value.verdicts if verdict.status is Status.FAILED]
    assert bad == ["log.random_weights"]
    assert "log.complete" not in [verdict.gate for verdict in caught.value.verdicts]


def test_build_says_the_disk_is_full_when_that_is_in_the_log_of_a_stopped_one(
    request_for: Callable[[str], BuildRequest],
) -> None:
    lines = f"print('No space left on device'); print({RANDOM_WEIGHTS!r}, flush=True); time.sleep(9999)"
    with pytest.raises(ToolFailure, match="disk is full"):
        build_engine(request_for(lines))


def test_build_leaves_an_earlier_log_until_it_ends(request_for: Callable[[str], BuildRequest]) -> None:
    """Two builds of one engine do not write into each other's log."""
    request = request_for('print("I rknn building ...", flush=True); sys.exit(1)')
    request.log.parent.mkdir()
    request.log.write_text("earlier")
    seen: list[str] = []
    with pytest.raises(ToolFailure):
        build_engine(request, progress=lambda _: seen.append(request.log.read_text()))
    assert seen == ["earlier"]
    assert request.log.read_text() == "I rknn building ...\n"


def test_build_keeps_its_log_when_the_caller_ends_it(request_for: Callable[[str], BuildRequest]) -> None:
    def give_up(stage: str) -> None:
        raise KeyboardInterrupt(stage)

    request = request_for('print("I rknn building ...", flush=True); time.sleep(9999)')
    with pytest.raises(KeyboardInterrupt, match=r"^compiling$"):
        build_engine(request, progress=give_up)
    assert request.log.read_text() == "I rknn building ...\n"


def test_build_is_stopped_when_its_log_would_fill_the_disk(
    request_for: Callable[[str], BuildRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_bytes = 1_000_000
    monkeypatch.setattr("engine.build.LOG_LIMIT_BYTES", limit_bytes)
    request = request_for('while True: os.write(1, b"I still building\\n" * 4096)')
    with pytest.raises(ToolFailure, match="more than 1 MB"):
        build_engine(request)
    assert request.log.stat().st_size == limit_bytes


def test_build_keeps_an_earlier_result_when_it_fails(request_for: Callable[[str], BuildRequest]) -> None:
    request = request_for("sys.exit(1)")
    request.result_folder.mkdir(parents=True)
    (request.result_folder / "engine.rknn").write_bytes(b"RKNN earlier")
    with pytest.raises(ToolFailure):
        build_engine(request)
    assert (request.result_folder / "engine.rknn").read_bytes() == b"RKNN earlier"


@pytest.mark.parametrize("daemon", [False, True], ids=["child", "daemon in its own session"])
def test_build_leaves_no_grandchild_when_the_converter_ends(
    daemon: bool, request_for: Callable[[str], BuildRequest]
) -> None:
    """`mark` sees to it that none is left."""
    begin = "if os.fork(): sys.exit(1)\nos.setsid()\nif os.fork(): sys.exit(1)\n" if daemon else ""
    begin = begin.replace("\n", "\n    ")
    lines = f"if not os.fork():\n    {begin}time.sleep(9999)\ntime.sleep(0.2)\nsys.exit(1)"
    with pytest.raises(ToolFailure, match="exit code 1"):
        build_engine(request_for(lines))


PARENT = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background of a shell ignores it
from engine.build import build_engine
from engine.request import BuildRequest
onnx, converter, result = map(Path, sys.argv[2:5])
request = BuildRequest(
    onnx=onnx, target="rk3588", toolkit="2.3.2", converter_python=converter, result_folder=result,
    log=result.with_name("build.log"), timeout_s=60.0,
)
build_engine(request, progress=lambda stage: print(stage, flush=True))
"""


CRASH_IN_A_RULE = """
if not json.loads((folder / "request.json").read_text())["disable_rules"]:
    print("W You can add disable_rules=['rule_a'] in rknn.config() to temporarily disable the error rule!")
    print("E build: Traceback (most recent call last):", flush=True)
    report(step="build", error="IndexError: x")
    sys.exit(3)
"""


@pytest.mark.parametrize("first", ["", CRASH_IN_A_RULE], ids=["first attempt", "second attempt"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda n: n.name)
def test_build_leaves_nothing_when_we_are_interrupted(
    number: signal.Signals, first: str, request_for: Callable[[str], BuildRequest], mark: str, scratch: Path
) -> None:
    """The converter ignores SIGINT and SIGTERM, and has a child; all of it and the working directory must go."""
    request = request_for(
        f"{first}\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN); signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "if not os.fork(): time.sleep(9999)\n"
        'print("I rknn building ...", flush=True)\ntime.sleep(9999)'
    )
    root = str(Path(__file__).resolve().parents[2])
    arguments = [root, str(request.onnx), str(request.converter_python), str(request.log.parent / "result")]
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(scratch)},
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"compiling\n"
        assert len(marked(mark)) == 4  # the parent, the warden, the converter, its child
        parent.send_signal(number)
        _, errors = parent.communicate(timeout=BOUND_S)
    if number is signal.SIGINT:
        assert b"KeyboardInterrupt" in errors
    wait_until(lambda: not marked(mark) and not list(scratch.iterdir()))


def wait_until(holds: Callable[[], bool]) -> None:
    """Returns once `holds()`; fails when it does not within the bound."""
    deadline_s = time.monotonic() + BOUND_S
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def test_build_keeps_its_reason_when_the_log_cannot_be_kept(request_for: Callable[[str], BuildRequest]) -> None:
    request = request_for("sys.exit(77)")
    request.log.parent.touch()  # a file, where its folder should be
    with pytest.raises(ToolFailure, match=r"exit code 77.* The log could not be kept in .*/build\.log \(") as caught:
        build_engine(request)
    assert caught.value.log is None


def test_build_fails_when_it_went_well_and_its_log_cannot_be_kept(request_for: Callable[[str], BuildRequest]) -> None:
    request = request_for('report(step="done"); (folder / "engine.rknn").write_bytes(b"RKNN")')
    request.log.parent.touch()
    with pytest.raises(ToolFailure, match="could not write its files"):
        build_engine(request)
    assert not request.result_folder.exists()
