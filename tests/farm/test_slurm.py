"""The farm on a real SLURM of two nodes on this machine, by the profile that users have.

Two farms run beside each other: `rknn-tts farm` on a small matrix, and one whose jobs hang, hunger and lose their node,
with a program that stands in for rknn-tts.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from farm.jobs import Job, Kind
from farm.launch import run_workflow
from farm.outcomes import Ended
from tests.farm.slurm_cluster import NODES, Cluster, Record, is_installed, slurm_cluster
from tests.farm.stub_farms import StubFarm, job, stub_farm
from tests.farm.tiny_matrix import TINY, TINY_MATRIX
from tests.vits_writer.voice import write_voice

ROOT = Path(__file__).resolve().parents[2]
PROFILE = ROOT / "farm" / "profiles" / "slurm"
PATIENCE_S = 120.0

ENGINE = job("voice", kind=Kind.COMPILE)
TWICE = job("voice", kind=Kind.TWICE, needs=[ENGINE])
LOST = job("lost", "hang-first")
HUNGRY = job("hungry", "short-memory")
JOBS = [TWICE, LOST, HUNGRY]
MADE_ON, KEPT_FOR = NODES
"""Where the engine was made first, and so where it is to be made again."""

TARGETS = ("rk3588", "rk3566")


@dataclass(frozen=True)
class Run:
    """Two farms that have ended on a cluster.

    Attributes:
        farm, code: the one of the stand-in, and Snakemake's exit code.
        output, told: the folder of `rknn-tts farm`, and the object that it printed.
        records: SLURM's, of all jobs.
        lost: the node that was lost.
    """

    farm: StubFarm
    code: int
    output: Path
    told: dict[str, Any]
    records: list[Record]
    lost: str

    def records_of(self, of: Job) -> list[Record]:
        """SLURM's of the attempts of a job, in order."""
        return [one for one in self.records if one.comment == _comment(of)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, farm_python: Path) -> Iterator[Run | None]:
    """None where SLURM is not installed."""
    if not is_installed():
        warnings.warn("SLURM is not installed: the farm is not tried on it.", stacklevel=1)
        yield None
        return
    folder = tmp_path_factory.mktemp("slurm")
    matrix = _matrix(folder / "a $matrix")
    farm = stub_farm(folder / "a $farm")
    farm.plan([ENGINE, *JOBS])
    farm.at_hand(ENGINE, MADE_ON)
    profile = _profile(folder)
    with slurm_cluster(folder / "cluster") as cluster, pytest.MonkeyPatch.context() as patch:
        # A user's own settings of Snakemake are no part of the farm, nor of its jobs' on their nodes.
        for name, value in {**farm.environment, **cluster.environment, "SNAKEMAKE_PROFILE": "/nowhere"}.items():
            patch.setenv(name, value)
        lost: list[str] = []
        losing = threading.Thread(target=_lose_node_of_hanging_job, args=(farm, cluster, lost))
        losing.start()
        command = [str(ROOT / "rknn-tts"), "farm", str(matrix), f"--profile={profile}", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=_own_cache(folder)) as ours:
            code = run_workflow(
                farm.places,
                python=farm_python,
                cores=None,
                memory_bytes=0,
                profile=profile,
                say=lambda _: None,
                program=farm.program,
            )
            told, _ = ours.communicate()
        losing.join()
        yield Run(farm, code, matrix.parent / "out", json.loads(told), cluster.records(), *lost)


def _matrix(folder: Path) -> Path:
    (folder / "voices").mkdir(parents=True)
    write_voice(folder / "voices" / "a.onnx", TINY)
    (folder / "m.toml").write_text(TINY_MATRIX, encoding="utf-8")
    return folder / "m.toml"


def _profile(folder: Path) -> Path:
    """The profile as a user edits it: SLURM is asked as often as a test is patient, and the disk is no network's."""
    shutil.copytree(PROFILE, folder / "profile")
    file = folder / "profile" / "config.yaml"
    text = file.read_text(encoding="utf-8")
    for ours, theirs in (
        ("slurm-init-seconds-before-status-checks: 5", "slurm-init-seconds-before-status-checks: 1"),
        ("latency-wait: 65", "latency-wait: 5"),
    ):
        assert ours in text
        text = text.replace(ours, theirs)
    file.write_text(text, encoding="utf-8")
    return file.parent


def _own_cache(folder: Path) -> dict[str, str]:
    return {**os.environ, "RKNN_TTS_CACHE": str(folder / "cache")}


def _lose_node_of_hanging_job(farm: StubFarm, cluster: Cluster, lost: list[str]) -> None:
    """Takes the node away that the hanging job is on, once it is alone of its farm there."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        records = {record.comment: record for record in cluster.records()}
        ended = {comment for comment, record in records.items() if record.state in ("COMPLETED", "FAILED")}
        if farm.lines("start", LOST.voice) and {_comment(TWICE), _comment(HUNGRY)} <= ended:
            node = records[_comment(LOST)].node
            lost.append(node)
            cluster.lose(node)
            return
        time.sleep(0.1)


def _comment(of: Job) -> str:
    return f"rule_{of.kind.value}_wildcards_{of.id}"


def test_workflow_ends_well_when_a_node_is_lost(run: Run | None) -> None:
    if run is not None:
        assert run.code == 0, run.farm.places.workflow_log.read_text(encoding="utf-8")
        assert {one: run.farm.outcome(one).ended for one in JOBS} == dict.fromkeys(JOBS, Ended.DONE)


def test_matrix_is_built_when_it_is_run_on_slurm(run: Run | None) -> None:
    if run is not None:
        assert run.told["exit_code"] == 0, run.told
        engines = run.told["catalogue"]["engines"]
        assert {engine["target"] for engine in engines} == set(TARGETS)
        assert all((run.output / engine["path"]).is_file() for engine in engines)


def test_both_nodes_are_used_when_there_are_two(run: Run | None) -> None:
    if run is not None:
        assert {record.node for record in run.records} == set(NODES)


def test_only_the_job_on_it_is_done_again_when_a_node_is_lost(run: Run | None) -> None:
    if run is not None:
        first, second = run.records_of(LOST)
        assert (first.node, first.state) == (run.lost, "NODE_FAIL")
        assert (second.node, second.state) == (*(set(NODES) - {run.lost}), "COMPLETED")
        assert run.farm.outcome(LOST).attempt == 2
        assert run.farm.outcome(LOST).node == second.node
        assert {record.node for record in run.records if record.state == "NODE_FAIL"} == {run.lost}


def test_job_has_a_node_to_itself_when_its_memory_was_too_little(run: Run | None) -> None:
    if run is not None:
        first, second = run.records_of(HUNGRY)
        assert (first.state, first.exclusive) == ("FAILED", False)
        assert (second.state, second.exclusive) == ("COMPLETED", True)
        others = [record for record in run.records if record != second and record.node == second.node]
        assert [one for one in others if one.began < second.ended and second.began < one.ended] == []


def test_job_is_on_another_node_when_it_is_made_twice(run: Run | None) -> None:
    if run is not None:
        assert run.farm.outcome(TWICE).node == KEPT_FOR
