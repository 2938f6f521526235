"""The farm's profile for Kubernetes and its executor, by Snakemake itself, on a stand-in of a cluster.

It was not tried on a real one. What the stand-in answers is what Kubernetes documents, errors among it.
"""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from farm.jobs import Job, Kind
from farm.launch import run_workflow
from farm.outcomes import Ended
from tests.farm.kubernetes_stand_in import Kubernetes, Pod, kubernetes
from tests.farm.stub_farms import SMALL_MB, StubFarm, job, stub_farm

ROOT = Path(__file__).resolve().parents[2]
PROFILE = ROOT / "farm" / "profiles" / "kubernetes"
EXAMPLE = list(yaml.safe_load_all((ROOT / "examples" / "farm" / "kubernetes.yaml").read_text(encoding="utf-8")))

PATIENCE_S = 100.0
MARGIN = 1.2
"""What the farm asks for above what was measured (farm/needs.py)."""

ENGINE = job("voice", kind=Kind.COMPILE)
TWICE = job("voice", kind=Kind.TWICE, needs=[ENGINE])
HUNGRY = job("hungry", "short-memory")
LOST = job("lost", "hang-first")
POISONED = job("poisoned", "refuse")
JOBS = [LOST, HUNGRY, TWICE, POISONED]


@dataclass(frozen=True)
class Run:
    """A farm that has ended, and the cluster that it ran on."""

    farm: StubFarm
    cluster: Kubernetes
    code: int
    lost: str
    """The node that was lost."""

    def pods(self, of: Job) -> list[Pod]:
        """The pods of a job's attempts, in order."""
        return [pod for pod in self.cluster.pods.values() if f"{of.kind.value}:job={of.id}" in pod.container["args"][1]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, farm_python: Path) -> Iterator[Run]:
    folder = tmp_path_factory.mktemp("kubernetes")
    farm = stub_farm(folder / "a farm")
    farm.plan([ENGINE, *JOBS])
    farm.at_hand(ENGINE, "k1")
    with kubernetes(folder / "cluster") as cluster, pytest.MonkeyPatch.context() as patch:
        for name, value in {**farm.environment, **cluster.environment}.items():
            patch.setenv(name, value)
        cluster.faults = [500, 503]
        lost: list[str] = []
        losing = threading.Thread(target=_lose_node_of_hanging_job, args=(farm, cluster, lost))
        losing.start()
        code = run_workflow(
            farm.places,
            python=farm_python,
            cores=None,
            memory_bytes=0,
            profile=_profile(folder),
            say=lambda _: None,
            program=farm.program,
        )
        losing.join()
        yield Run(farm, cluster, code, *lost)


def _profile(folder: Path) -> Path:
    """The profile as a user edits it, asked as often as a test is patient."""
    shutil.copytree(PROFILE, folder / "profile")
    file = folder / "profile" / "config.yaml"
    text = file.read_text(encoding="utf-8")
    for ours, theirs in (
        ("REGISTRY/", "registry.example/"),
        ("farm-data:/data", f"farm-data:{folder}"),
        ("seconds-between-status-checks: 10", "seconds-between-status-checks: 1"),
    ):
        assert ours in text
        text = text.replace(ours, theirs)
    file.write_text(text, encoding="utf-8")
    return file.parent


def _lose_node_of_hanging_job(farm: StubFarm, cluster: Kubernetes, lost: list[str]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if farm.lines("start", LOST.voice):
            (pod,) = [pod for pod in cluster.pods.values() if LOST.id in pod.container["args"][1]]
            assert pod.node is not None
            lost.append(pod.node)
            cluster.lose(pod.node)
            return
        time.sleep(0.1)


def test_workflow_ends_well_when_a_node_is_lost_and_the_server_has_errors(run: Run) -> None:
    log = run.farm.places.workflow_log.read_text(encoding="utf-8")
    assert run.code == 0, log
    ends = {one: run.farm.outcome(one).ended for one in JOBS}
    assert ends == {**dict.fromkeys(JOBS, Ended.DONE), POISONED: Ended.REFUSED}
    assert run.cluster.mistakes == []
    assert run.cluster.faults == []


def test_pods_ask_for_what_was_measured_when_they_are_submitted(run: Run) -> None:
    (pod,) = run.pods(POISONED)
    assert pod.cpu_milli == 950  # the executor's share of a processor
    assert pod.memory_mb == SMALL_MB * MARGIN + 200  # and what the pod's Snakemake takes
    assert "limits" not in pod.container["resources"]


def test_pods_see_the_shared_disk_when_they_are_submitted(run: Run) -> None:
    for pod in run.cluster.pods.values():
        mounts = {mount["name"]: mount["mountPath"] for mount in pod.container["volumeMounts"]}
        claims = {
            volume["name"]: volume["persistentVolumeClaim"]["claimName"]
            for volume in pod.spec["volumes"]
            if "persistentVolumeClaim" in volume
        }
        assert mounts["farm-data"] == str(run.farm.places.output.parent)
        assert claims == {"farm-data": "farm-data"}
        assert pod.container["image"] == "registry.example/rknn-tts-farm:latest"
        assert "pip install" not in pod.container["args"][1]


def test_job_is_done_again_on_another_node_when_its_node_is_lost(run: Run) -> None:
    first, second = run.pods(LOST)
    assert first.lost
    assert first.node == run.lost != second.node
    assert run.farm.outcome(LOST).attempt == 2
    assert run.farm.outcome(LOST).node == second.node


def test_job_runs_alone_on_its_node_when_its_memory_was_too_little(run: Run) -> None:
    first, second = run.pods(HUNGRY)
    assert not first.alone
    assert second.alone
    assert run.farm.outcome(HUNGRY).attempt == 2
    beside = [pod for pod in run.cluster.pods.values() if pod is not second and pod.node == second.node]
    assert [pod.job for pod in beside if pod.began_s < second.ended_s and second.began_s < pod.ended_s] == []


def test_failed_pods_log_is_kept_when_it_is_tried_again(run: Run) -> None:
    first, _ = run.pods(HUNGRY)
    kept = run.farm.places.own / ".snakemake" / "auxiliary" / "kubernetes-logs" / f"{first.job}.log"
    assert HUNGRY.id in kept.read_text(encoding="utf-8")


def test_job_rather_runs_on_another_node_when_it_is_made_twice(run: Run) -> None:
    (pod,) = run.pods(TWICE)
    assert pod.rather_not == {"k1"}
    assert run.farm.outcome(TWICE).node == pod.node


def test_cluster_is_left_as_it_was_when_the_workflow_has_ended(run: Run) -> None:
    left = {pod.job for pod in run.cluster.pods.values() if not pod.lost} - run.cluster.deleted
    assert left == set()
    assert run.cluster.secrets == 0


def test_role_of_the_example_allows_what_the_executor_asks_for(run: Run) -> None:
    (role,) = (part for part in EXAMPLE if part["kind"] == "Role")
    allowed = {(verb, resource) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]}
    assert run.cluster.asked == allowed


def test_example_and_image_have_the_profiles_names() -> None:
    profile = yaml.safe_load((PROFILE / "config.yaml").read_text(encoding="utf-8"))
    (claim,) = profile["kubernetes-shared-persistent-volumes"]
    name, _, path = claim.partition(":")
    parts = {part["kind"]: part for part in EXAMPLE}
    namespaces = {part["metadata"].get("namespace", part["metadata"]["name"]) for part in EXAMPLE}
    assert namespaces == {profile["kubernetes-shared-namespace"]}
    assert parts["PersistentVolumeClaim"]["metadata"]["name"] == name
    pod = parts["Job"]["spec"]["template"]["spec"]
    assert pod["volumes"] == [{"name": name, "persistentVolumeClaim": {"claimName": name}}]
    (container,) = pod["containers"]
    assert container["volumeMounts"] == [{"name": name, "mountPath": path}]
    assert container["image"] == profile["container-image"]
    image = (ROOT / "farm" / "Containerfile").read_text(encoding="utf-8")
    assert f"COPY . {container['workingDir']}\n" in image
    assert f"RKNN_TTS_CACHE={path}/" in image


def test_image_makes_environments_that_there_are() -> None:
    image = (ROOT / "farm" / "Containerfile").read_text(encoding="utf-8")
    toolkits = re.findall(r'^ARG TOOLKITS="(.+)"$', image, re.MULTILINE)
    (words,) = re.findall(r"^RUN environments/run (.+)$", image, re.MULTILINE)
    names = words.replace("$TOOLKITS", *toolkits).replace("+", " ").split()
    assert {name for name in names if not (ROOT / "requirements" / f"{name}.txt").is_file()} == set()
    assert {"toolchain", "farm"} <= set(names)
