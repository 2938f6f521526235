"""Snakemake's executor for Kubernetes, for pods that share a disk: `executor: kubernetes-shared`.

The published executor (0.5.1) says of itself that its pods share no disk (`implies_no_shared_fs`), so Snakemake refuses
to run it without a store such as S3, even where every pod mounts the same volume. It also drops a job whose state it
could not ask for once (then the run never ends), and asks for the log of a pod's previous container, of which there is
none (then the run ends at the first pod that fails). This one is that executor but for these three points, and it
places pods: one that shall be alone on its node, and one that shall not be on another's.

Snakemake finds an executor by the name of its module on the path, which farm/launch.py sees to. It is loaded in the
process that submits alone, not in the pods.
"""

from __future__ import annotations

import dataclasses
import shlex
from typing import Any

import snakemake_executor_plugin_kubernetes as published

_client = published.kubernetes.client

common_settings = dataclasses.replace(
    published.common_settings,
    implies_no_shared_fs=False,
    # There is nothing to send and nothing to install: pods see the workflow where it stands, and have the image's
    # environments.
    job_deploy_sources=False,
    auto_deploy_default_storage_provider=False,
)

ExecutorSettings = published.ExecutorSettings

LABELS = {"app": "snakemake"}
"""The published executor's label of its jobs; here their pods have it too, to be kept apart by."""

HOST_KEY = "kubernetes.io/hostname"
"""The label that every node has (Kubernetes: well-known labels)."""

NODE_VARIABLE = "NODE_NAME"
"""Tells a pod's processes the node's name; farm/attempt.py reads it."""

NOT_FOUND = 404

ALONE, ELSEWHERE = "alone", "elsewhere"
"""Resources of a job (farm/Snakefile): whether no other pod of a farm may be on its node; the node that it shall rather
not be on."""


class Executor(published.Executor):  # type: ignore[misc]  # it is published without types
    """The published executor over a shared disk."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._resources: dict[str, Any] = {}
        self._bear_with_the_server()

    def run_job(self, job: Any) -> None:
        """Submits `job`, placed as its resources say."""
        self._resources = dict(job.resources)
        super().run_job(job)

    def get_job_exec_prefix(self, job: Any) -> str:
        """Pods start in a folder of their own; the workflow's is on the shared disk."""
        return f"cd {shlex.quote(str(self.workflow.workdir_init))}"

    def _reauthenticate_and_retry(self, func: Any = None) -> Any:
        super()._reauthenticate_and_retry()
        self._bear_with_the_server()
        return func() if func else None

    def _bear_with_the_server(self) -> None:
        self.kubeapi = _Pods()
        self.batchapi = _Jobs(self)

    def place(self, body: Any) -> None:
        """Tells the pod of `body`, the job that is being submitted, its node, and where it may be."""
        template = body.spec.template
        template.metadata = _client.V1ObjectMeta(labels=dict(LABELS))
        source = _client.V1EnvVarSource(field_ref=_client.V1ObjectFieldSelector(field_path="spec.nodeName"))
        for container in template.spec.containers:
            container.env = [*(container.env or []), _client.V1EnvVar(name=NODE_VARIABLE, value_from=source)]
        template.spec.affinity = _client.V1Affinity(
            pod_anti_affinity=_alone() if self._resources.get(ALONE) else None,
            node_affinity=_not_on(node) if (node := self._resources.get(ELSEWHERE)) else None,
        )


class _Jobs(published.kubernetes.client.BatchV1Api):  # type: ignore[misc]  # as above
    def __init__(self, executor: Executor) -> None:
        super().__init__()
        self._executor = executor

    def create_namespaced_job(self, namespace: str, body: Any, **options: Any) -> Any:
        self._executor.place(body)
        return super().create_namespaced_job(namespace, body, **options)

    def read_namespaced_job_status(self, name: str, namespace: str, **options: Any) -> Any:
        """The job; None where there is none, and one that nothing is known of where the server has an error."""
        try:
            return super().read_namespaced_job_status(name, namespace, **options)
        except _client.rest.ApiException as error:
            return None if error.status == NOT_FOUND else _client.V1Job(status=_client.V1JobStatus())


class _Pods(published.kubernetes.client.CoreV1Api):  # type: ignore[misc]  # as above
    def list_namespaced_pod(self, namespace: str, **options: Any) -> Any:
        """The pods; none where the server has an error: the job is asked for again."""
        try:
            return super().list_namespaced_pod(namespace, **options)
        except _client.rest.ApiException:
            return _client.V1PodList(items=[])

    def read_namespaced_pod_log(self, name: str, namespace: str, **options: Any) -> Any:
        """What the pod has said; what the server says where that is gone."""
        options.pop("previous", None)
        try:
            return super().read_namespaced_pod_log(name, namespace, **options)
        except _client.rest.ApiException as error:
            return f"{name}: no log ({error.reason})"


def _alone() -> Any:
    """No pod of a farm beside this one, neither now nor while it runs: required anti-affinity holds both ways."""
    term = _client.V1PodAffinityTerm(label_selector=_client.V1LabelSelector(match_labels=LABELS), topology_key=HOST_KEY)
    return _client.V1PodAntiAffinity(required_during_scheduling_ignored_during_execution=[term])


def _not_on(node: str) -> Any:
    """Another node than `node`, where there is one with room."""
    other = _client.V1NodeSelectorRequirement(key="metadata.name", operator="NotIn", values=[node])
    term = _client.V1PreferredSchedulingTerm(weight=100, preference=_client.V1NodeSelectorTerm(match_fields=[other]))
    return _client.V1NodeAffinity(preferred_during_scheduling_ignored_during_execution=[term])
