"""`build_engine`: an ONNX to an engine, through the vendor toolkit in a child process of the converter environment.

That process is the boundary of versions, crashes, the log, the working directory and memory (design, Engine). Every way
it can end is one exception with one sentence.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from contracts.contract import SHORT_CONTRACT_LIMIT
from contracts.errors import GateFailure, ToolFailure, UserInput
from contracts.files import sha256_of
from contracts.serial import from_json, to_json
from engine.child import LOG_LIMIT_BYTES, Cause, ChildResult, Limits, private_folder, run_child
from engine.endings import DISK_FULL_TEXT, LogTail, WorkerReport, engine_fault, failure_sentence
from engine.folders import new_folder
from engine.stages import stage_of
from engine.worker import RESULT_FILE
from logs.live import LiveJudge
from logs.regtask import RegtaskKey

DEFAULT_TIMEOUT_S = 3600.0
"""The longest build known takes a few minutes on one core (Kokoro, W=128: 50 s)."""

OPTIMIZATION_LEVEL = 3
"""The toolkit's own default, every optimisation. Fixed here: any number passes without a word (toolkit-facts)."""

ENGINE_FILE, LINES_FILE, SIMULATED_FILE, SUMMARY_FILE = "engine.rknn", "lines.log", "simulated.npz", "build.json"

_ONNX_FILE, _FEEDS_FILE, _REQUEST_FILE = "model.onnx", "feeds.npz", "request.json"
_TAIL_ERRORS = 3

_PASSED_ON = ("LD_LIBRARY_PATH", "RKNN_TTS_TORCH")
"""What the toolkit may see of our environment, where it is set: no PYTHONPATH, no proxies, nothing of the user's."""

Array = NDArray[Any]


@dataclass(frozen=True)
class BuildRequest:
    """One build.

    Attributes:
        onnx: the graph as the toolkit shall see it: opset <= 19, static, its weights inside.
        target: one of `engine.targets.TARGETS`.
        toolkit: the version of rknn-toolkit2 that the converter environment must hold.
        converter_python: the interpreter of the converter environment (engine.environment).
        result_folder: where the results appear, whole or not at all; an earlier one is replaced.
        log: where the raw log is kept, also when the build fails.
        custom_string: text for the inside of the engine, ASCII, under 1024 bytes.
        feeds: windows for the simulator, each an array for every input by name, of the ONNX's dtype and shape; none:
            the simulator does not run.
        accepted: REGTASK keys that do not stop the build.
        disable_rules: fuse rules of the toolkit to leave out; an unknown name passes without a word.
        timeout_s, memory_limit_bytes: when the build is stopped.
    """

    onnx: Path
    target: str
    toolkit: str
    converter_python: Path
    result_folder: Path
    log: Path
    custom_string: str | None = None
    feeds: Sequence[Mapping[str, Array]] = ()
    accepted: Collection[RegtaskKey] = ()
    disable_rules: tuple[str, ...] = ()
    timeout_s: float = DEFAULT_TIMEOUT_S
    memory_limit_bytes: int | None = None


@dataclass(frozen=True)
class BuildResult:
    """What a build made.

    Attributes:
        engine: the engine's file, in the result folder.
        engine_sha256: its digest.
        lines: the clean lines of the log (UTF-8), in the result folder.
        simulated: for each window of feeds, each output by name as the toolkit's simulator computed it (float32, in
            the shape of the ONNX).
        versions: of "rknn-toolkit2", its libraries, "python", and "torch" ("stand-in" or a version).
        fixed_addresses: whether the system let it run without address randomisation. Where it does not (the default
            seccomp profile of Docker), engines whose graph begins with a 2-D convolution differ in about 150 bytes
            from build to build (measured, 2.3.2).
        peak_rss_bytes, wall_s, cpu_s: what the build took.
    """

    engine: Path
    engine_sha256: str
    lines: Path
    simulated: tuple[dict[str, Array], ...]
    versions: dict[str, str]
    fixed_addresses: bool
    peak_rss_bytes: int
    wall_s: float
    cpu_s: float


@dataclass(frozen=True)
class _Summary:
    """`build.json` of a result folder."""

    engine_sha256: str
    outputs: tuple[str, ...]
    windows: int
    fixed_addresses: bool
    peak_rss_bytes: int
    wall_s: float
    cpu_s: float
    versions: dict[str, str] = field(default_factory=dict)


def build_engine(request: BuildRequest, progress: Callable[[str], None] | None = None) -> BuildResult:
    """Build the engine that `request` describes; `progress` gets the name of each stage as it begins.

    Raises:
        UserInput: there is no such interpreter or ONNX, or the custom string does not fit.
        GateFailure: the log holds something that no engine may have; the build was stopped there.
        ToolFailure: the toolkit crashed, was killed, ran out of time, memory or disk, or said no.
    """
    _check(request)
    limits = Limits(request.timeout_s, request.memory_limit_bytes, LOG_LIMIT_BYTES)
    try:
        with private_folder() as folder:
            command = _prepare(request, folder)
            with (folder / LINES_FILE).open("w", encoding="utf-8") as lines:
                reader = _Reader(LiveJudge(request.accepted).feed, lines.write, progress or (lambda _: None))
                child = run_child(
                    command,
                    folder=folder,
                    environment=child_environment(os.environ),
                    log=request.log,
                    limits=limits,
                    on_line=reader.take,
                )
            report = _read_report(folder / RESULT_FILE)
            sentence = failure_sentence(
                child, report, reader.tail(), limits, request.target, request.converter_python
            ) or engine_fault(folder / ENGINE_FILE)
            if sentence is not None:
                _fail(sentence, child, report, request.log)
            _publish(request, folder, child, report)
    except OSError as error:
        raise ToolFailure(
            f"The build for {request.target} could not write its files: {error.strerror or error}"
            f"{f' ({error.filename})' if error.filename else ''}.",
            request.log,
        ) from error
    return read_build(request.result_folder)


def read_build(result_folder: Path) -> BuildResult:
    """The result that `build_engine` left in `result_folder` (or that was copied there, as from a cache).

    Raises:
        OSError, ValueError: there is none.
    """
    summary = from_json(_Summary, json.loads((result_folder / SUMMARY_FILE).read_text(encoding="utf-8")), SUMMARY_FILE)
    simulated: tuple[dict[str, Array], ...] = ()
    if summary.windows:
        with np.load(result_folder / SIMULATED_FILE, allow_pickle=False) as arrays:
            simulated = tuple(
                {name: arrays[f"{window}_{index}"] for index, name in enumerate(summary.outputs)}
                for window in range(summary.windows)
            )
    return BuildResult(
        engine=result_folder / ENGINE_FILE,
        engine_sha256=summary.engine_sha256,
        lines=result_folder / LINES_FILE,
        simulated=simulated,
        versions=summary.versions,
        fixed_addresses=summary.fixed_addresses,
        peak_rss_bytes=summary.peak_rss_bytes,
        wall_s=summary.wall_s,
        cpu_s=summary.cpu_s,
    )


def child_environment(ours: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of the converter process.

    It is the same for every build, down to its length: together with fixed addresses (engine.warden) that makes the
    addresses the same which some engines hold.
    """
    return {
        **{name: ours[name] for name in _PASSED_ON if name in ours},
        "PATH": "/usr/bin:/bin",
        "HOME": "/proc/self/cwd",  # the private working directory
        "TMPDIR": "/proc/self/cwd",
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
        "PYTHONUTF8": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONNOUSERSITE": "1",
        # An engine holds two runs of uninitialised heap memory: filled, two builds are byte-identical (toolkit-facts).
        "MALLOC_PERTURB_": "255",
        # A machine's number of cores must not change how a folded constant is rounded. Costs no time (measured on the
        # Piper decoder: 5.1 s of user time with one and with two threads).
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def _check(request: BuildRequest) -> None:
    if not os.access(request.converter_python, os.X_OK):
        raise UserInput(f"The converter's Python {request.converter_python} is missing or cannot be run.")
    if not request.onnx.is_file():
        raise UserInput(f"The ONNX {request.onnx} is missing.")
    text = request.custom_string or ""
    if len(text.encode()) >= SHORT_CONTRACT_LIMIT or not text.isascii():
        raise UserInput(
            f"The custom string of an engine must be ASCII and under {SHORT_CONTRACT_LIMIT} bytes: {text:.60}"
        )


def _prepare(request: BuildRequest, folder: Path) -> list[str]:
    """Fills the working directory; returns the command. All names are fixed, so that no path enters the engine."""
    (folder / _ONNX_FILE).symlink_to(request.onnx.resolve())
    names = list(request.feeds[0]) if request.feeds else []
    if request.feeds:
        with (folder / _FEEDS_FILE).open("wb") as file:
            arrays: dict[str, Any] = {  # Any: numpy's stub takes every keyword for its own `allow_pickle`
                f"{i}_{j}": np.asarray(feed[name])
                for i, feed in enumerate(request.feeds)
                for j, name in enumerate(names)
            }
            np.savez(file, **arrays)
    data = {
        "onnx": _ONNX_FILE,
        "engine": ENGINE_FILE,
        "target": request.target,
        "toolkit": request.toolkit,
        "custom_string": request.custom_string,
        "optimization_level": OPTIMIZATION_LEVEL,
        "disable_rules": list(request.disable_rules),
        "feeds": _FEEDS_FILE if request.feeds else None,
        "simulated": SIMULATED_FILE if request.feeds else None,
        "windows": len(request.feeds),
        "names": names,
    }
    (folder / _REQUEST_FILE).write_text(json.dumps(data), encoding="utf-8")
    worker = Path(__file__).resolve().with_name("worker.py")
    # absolute, but not resolved: an environment's python is a link, and is itself only under its own name
    return [str(request.converter_python.absolute()), "-s", "-u", str(worker), _REQUEST_FILE]


class _Reader:
    """Takes a build's lines: writes them down, judges them, reports stages and remembers the end."""

    def __init__(
        self, judge: Callable[[str], str | None], write: Callable[[str], object], progress: Callable[[str], None]
    ) -> None:
        self._judge, self._write, self._progress = judge, write, progress
        self._errors: deque[str] = deque(maxlen=_TAIL_ERRORS)
        self._last = self._stage = ""
        self._disk_full = False

    def take(self, line: str) -> str | None:
        self._write(line + "\n")
        self._last = line
        self._disk_full = self._disk_full or DISK_FULL_TEXT in line
        if line.startswith("E ") and "Traceback" not in line and "rknn-toolkit2 version" not in line:
            self._errors.append(line)
        if (stage := stage_of(line)) and stage != self._stage:
            self._stage = stage
            self._progress(stage)
        return self._judge(line)

    def tail(self) -> LogTail:
        return LogTail(tuple(self._errors), self._last, self._stage, self._disk_full)


def _read_report(path: Path) -> WorkerReport:
    try:
        return from_json(WorkerReport, json.loads(path.read_text(encoding="utf-8")), RESULT_FILE)
    except (OSError, ValueError):  # it ended before its first step, or while it wrote this
        return WorkerReport()


def _fail(sentence: str, child: ChildResult, report: WorkerReport, log: Path) -> NoReturn:
    text = f"{sentence} The log is kept in {log}."
    if child.cause is Cause.READER and report.error is None:
        raise GateFailure(text, log=log)
    raise ToolFailure(text, log)


def _publish(request: BuildRequest, folder: Path, child: ChildResult, report: WorkerReport) -> None:
    """Moves what the worker made to the result folder."""
    summary = _Summary(
        engine_sha256=sha256_of(folder / ENGINE_FILE),
        outputs=report.outputs,
        windows=len(request.feeds),
        fixed_addresses=report.fixed_addresses,
        peak_rss_bytes=max(child.peak_rss_bytes, report.peak_rss_bytes),
        wall_s=child.wall_s,
        cpu_s=child.cpu_s,
        versions=report.versions,
    )
    with new_folder(request.result_folder) as partial:
        for name in (ENGINE_FILE, LINES_FILE, *([SIMULATED_FILE] if request.feeds else [])):
            shutil.move(folder / name, partial / name)
        (partial / SUMMARY_FILE).write_text(json.dumps(to_json(summary), indent=1), encoding="utf-8")
