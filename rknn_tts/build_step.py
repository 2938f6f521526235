"""The cached steps `build` and `judge`: the toolkit run on a graph, and the gates on what it printed and simulated."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from contracts.contract import short_contract
from contracts.files import sha256_of, sha256_of_bytes
from contracts.serial import to_json
from engine.environment import environment_digest
from engine.memory import available_bytes, memory_bytes
from logs.lines import clean_lines
from logs.regtask import RegtaskKey
from rknn_tts.build_gates import Judged, judge_build, kept_lines
from rknn_tts.carried import feeds_from_npz
from rknn_tts.graph_at_hand import OnnxSource
from rknn_tts.places import Places
from rknn_tts.progress import Say
from rknn_tts.publish import publish
from rknn_tts.request import Request
from rknn_tts.steps import ROOT, Steps

BUILD_FOLDER = "build"
GB = 10**9
"""What `--memory` counts in, as the sentence about a stopped build does."""
MEMORY_SHARE = 0.9
"""Of the machine's memory, what the toolkit may take unless the user says otherwise: the rest is for us and others."""


@dataclass(frozen=True)
class Build:
    """One build: what is built, for which chip, and where it goes."""

    request: Request
    target: str
    source: OnnxSource
    accepted: tuple[RegtaskKey, ...]
    places: Places
    python: Path

    @cached_property
    def unsimulated(self) -> str | None:
        """Why the simulator does not run, where this machine has too little memory for it; None where it does."""
        needed_bytes = self.source.contract.simulator_bytes
        room_bytes = min(memory_limit_bytes(self.request.memory_gb), available_bytes())
        if needed_bytes is None or needed_bytes <= room_bytes:
            return None
        return (
            f"simulating it takes about {needed_bytes / GB:.1f} GB of memory and {room_bytes / GB:.1f} GB are free, so "
            "that was not done: build it on a machine that has more; a smaller engine of the same set is simulated"
        )

    @cached_property
    def parts(self) -> dict[str, str]:
        """What the build depends on, code aside; the graph is read for it, so it is found out once."""
        return {
            "graph": sha256_of(self.source.graph),
            "feeds": sha256_of_bytes(self.source.feeds),
            "simulated": str(self.unsimulated is None),
            "target": self.target,
            "toolkit": self.request.toolkit,
            "environment": converter_digest(self.python, self.request.toolkit),
            "custom_string": short_contract(self.source.contract, self.target, self.request.toolkit),
            "accepted": " ".join(map(str, self.accepted)),
            "disabled": " ".join(self.source.contract.disabled_rules),
            "quantisation": json.dumps(to_json(self.source.contract.quantisation), sort_keys=True),
            "calibration": sha256_of_bytes(self.source.calibration),
        }


def built(build: Build, steps: Steps, say: Say, go_on: Callable[[], None]) -> Path:
    """The cached build's result folder; `go_on` is asked at every stage, and ends the build by raising."""
    parts, request = build.parts, build.request

    def work(folder: Path) -> None:
        from engine.build import DEFAULT_TIMEOUT_S, BuildRequest, build_engine

        say.step(f"building for {build.target}")
        wanted = BuildRequest(
            onnx=build.source.graph,
            target=build.target,
            toolkit=request.toolkit,
            converter_python=build.python,
            result_folder=folder / BUILD_FOLDER,
            log=build.places.log,
            custom_string=parts["custom_string"],
            feeds=() if build.unsimulated is not None else feeds_from_npz(build.source.feeds),
            accepted=build.accepted,
            disable_rules=build.source.contract.disabled_rules,
            quantisation=build.source.contract.quantisation,
            calibration=feeds_from_npz(build.source.calibration),
            timeout_s=DEFAULT_TIMEOUT_S if request.timeout_s is None else request.timeout_s,
            memory_limit_bytes=memory_limit_bytes(request.memory_gb),
        )

        def progress(stage: str) -> None:
            go_on()
            say.step(f"building for {build.target}: {stage}")

        def again(rule: str) -> None:
            go_on()
            say.step(f"building for {build.target} again, without the toolkit's fuse rule {rule}, which crashed")

        build_engine(wanted, progress, again)

    return steps.folder("build", parts, work) / BUILD_FOLDER


def memory_limit_bytes(asked_gb: float | None) -> int:
    """What the user allows; by default nearly all there is, so that a sentence comes before the kernel's killer."""
    if asked_gb is not None:
        return int(asked_gb * GB)
    return int(memory_bytes() * MEMORY_SHARE)


def judge(build: Build, folder: Path, steps: Steps, say: Say) -> Judged:
    """The cached gates on the log, the layer table and the simulator's outputs of the build in `folder`."""
    source, layers_file = build.source, str(build.places.layers)

    def work() -> Judged:
        from engine.build import read_build

        say.step("judging the log and the simulator")
        feeds, originals = feeds_from_npz(source.feeds), feeds_from_npz(source.originals)
        result = read_build(folder)
        return judge_build(
            result,
            source.graph,
            source.contract,
            feeds,
            build.accepted,
            layers_file,
            originals,
            build.unsimulated,
            source.host,
        )

    parts = {
        **build.parts,
        "originals": sha256_of_bytes(source.originals),
        "thresholds": json.dumps(to_json(source.contract.thresholds), sort_keys=True),
        "layers": layers_file,
        "drift": json.dumps(to_json(source.contract.drift), sort_keys=True),
        "quality": json.dumps(to_json(source.contract.quality), sort_keys=True),
        "host": sha256_of(source.host) if source.host is not None and source.contract.drift is not None else "",
    }
    return steps.value("judge", Judged, parts, work)


def restore_log(log: Path, lines: Path) -> None:
    """Put the clean `lines` of a build that was found again in the place of its raw log, unless that is still there."""
    kept = kept_lines(lines)
    if not log.is_file() or list(clean_lines(log.read_bytes())) != kept:
        publish([(log, lines.read_bytes())])


def converter_digest(python: Path, toolkit: str) -> str:
    """What the converter environment is: what is installed there, its lock, and the variables that it sees."""
    return environment_digest(python, ROOT / "requirements" / f"rknn-{toolkit}.txt", os.environ)
