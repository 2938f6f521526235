"""As much of a Kubernetes as Snakemake's executor speaks to: an API server, a scheduler, nodes that are this machine.

It takes the requests that the official client sends, and answers what Kubernetes answers, errors among them. A pod's
command is run here, in a folder of its own for the pod's, once a node has room for what the pod requests and its
affinities allow it. No image is pulled, and no volume mounted: what a pod mounts is looked at by the tests.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

_TICK_S = 0.05
MB = 10**6
NODE_CPU_MILLI = 1000
NODE_MEMORY_MB = 8000

_KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: here
contexts: [{{name: here, context: {{cluster: here, user: here}}}}]
clusters: [{{name: here, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: here, user: {{token: none}}}}]
"""

_JOB = re.compile(r"/apis/batch/v1/namespaces/farm/jobs(?:/(?P<name>[^/]+))?(?P<status>/status)?")
_POD = re.compile(r"/api/v1/namespaces/farm/pods(?:/(?P<name>[^/]+))?(?P<log>/log)?")
_SECRET = re.compile(r"/api/v1/namespaces/farm/secrets(?:/(?P<name>[^/]+))?")

_RESOURCE = re.compile(r"/.+/namespaces/farm/(?P<resource>\w+)(?:/(?P<name>[^/]+)(?P<part>/\w+)?)?")
_VERBS = {"POST": "create", "GET": "get", "DELETE": "delete"}


@dataclass
class Pod:
    """A job of the cluster's and its one pod.

    Attributes:
        job: the job's name.
        body: as it was submitted.
        node: where it runs, or ran.
        process: its command.
        code: the command's exit code; None until it has ended.
        lost: whether its node was lost under it.
        began_s, ended_s: on the clock; 0 until then.
    """

    job: str
    body: dict[str, Any]
    output: Path
    node: str | None = None
    process: subprocess.Popen[bytes] | None = None
    code: int | None = None
    lost: bool = False
    began_s: float = 0.0
    ended_s: float = 0.0

    @property
    def spec(self) -> dict[str, Any]:
        """The pod's."""
        return cast("dict[str, Any]", self.body["spec"]["template"]["spec"])

    @property
    def container(self) -> dict[str, Any]:
        """Its only container."""
        (one,) = self.spec["containers"]
        return cast("dict[str, Any]", one)

    @property
    def cpu_milli(self) -> int:
        """What it requests."""
        return int(self.container["resources"]["requests"]["cpu"].removesuffix("m"))

    @property
    def memory_mb(self) -> int:
        """What it requests."""
        return int(self.container["resources"]["requests"]["memory"].removesuffix("M"))

    @property
    def runs(self) -> bool:
        """Whether it is on a node and has not ended."""
        return self.process is not None and self.code is None and not self.lost

    @property
    def alone(self) -> bool:
        """Whether a pod with a label of its own may not be beside it."""
        anti = (self.spec.get("affinity") or {}).get("podAntiAffinity") or {}
        labels = self.body["spec"]["template"].get("metadata", {}).get("labels", {})
        terms = anti.get("requiredDuringSchedulingIgnoredDuringExecution", [])
        return any(
            term["topologyKey"] == "kubernetes.io/hostname"
            and term["labelSelector"]["matchLabels"].items() <= labels.items()
            for term in terms
        )

    @property
    def rather_not(self) -> set[str]:
        """The nodes that it prefers not to be on."""
        affinity = (self.spec.get("affinity") or {}).get("nodeAffinity") or {}
        return {
            node
            for term in affinity.get("preferredDuringSchedulingIgnoredDuringExecution", [])
            for expression in term["preference"]["matchFields"]
            if expression["key"] == "metadata.name" and expression["operator"] == "NotIn"
            for node in expression["values"]
        }


@dataclass
class Kubernetes:
    """The cluster.

    Attributes:
        folder: its files.
        nodes: the names of those that are there.
        pods: by the job's name; those whose job was deleted too.
        deleted: the names of jobs that were deleted.
        secrets: how many there are.
        faults: status codes with which the next requests for a job's state are answered.
        asked: what was asked for, as a role's rules name it: (verb, resource).
        mistakes: requests that nobody should make.
    """

    folder: Path
    nodes: list[str]
    pods: dict[str, Pod] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    secrets: int = 0
    faults: list[int] = field(default_factory=list)
    asked: set[tuple[str, str]] = field(default_factory=set)
    mistakes: list[str] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def environment(self) -> dict[str, str]:
        """What makes the official client speak to it."""
        return {"KUBECONFIG": str(self.folder / "kubeconfig"), "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}

    def lose(self, node: str) -> None:
        """Take a node away: its pods are gone at once, as after the eviction that follows a lost node."""
        with self.lock:
            self.nodes.remove(node)
            for pod in self.pods.values():
                if pod.runs and pod.node == node:
                    pod.lost = True
                    _end(pod)

    def tick(self) -> None:
        """Notes what has ended, and starts what may start, in the order in which it was submitted."""
        with self.lock:
            for pod in self.pods.values():
                if pod.runs and pod.process is not None and (code := pod.process.poll()) is not None:
                    pod.code, pod.ended_s = code, time.time()
            for pod in self.pods.values():
                if pod.process is None and pod.job not in self.deleted and (node := self._place(pod)):
                    self._start(pod, node)

    def _place(self, pod: Pod) -> str | None:
        fitting = [node for node in self.nodes if self._fits(pod, node)]
        return min(fitting, key=lambda node: (node in pod.rather_not, node), default=None)

    def _fits(self, pod: Pod, node: str) -> bool:
        there = [other for other in self.pods.values() if other.runs and other.node == node]
        if there and (pod.alone or any(other.alone for other in there)):
            return False
        cpu_milli = pod.cpu_milli + sum(other.cpu_milli for other in there)
        memory_mb = pod.memory_mb + sum(other.memory_mb for other in there)
        return cpu_milli <= NODE_CPU_MILLI and memory_mb <= NODE_MEMORY_MB

    def _start(self, pod: Pod, node: str) -> None:
        folder = self.folder / pod.job
        folder.mkdir()
        given = {
            one["name"]: node if one["valueFrom"]["fieldRef"]["fieldPath"] == "spec.nodeName" else ""
            for one in pod.container.get("env", [])
        }
        with pod.output.open("wb") as output:
            pod.process = subprocess.Popen(
                [*pod.container["command"], *pod.container["args"]],
                cwd=folder,
                env={**os.environ, **given},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        pod.node, pod.began_s = node, time.time()

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> tuple[int, Any]:
        """The status and the object, or the text, with which a request is answered."""
        with self.lock:
            if found := _RESOURCE.fullmatch(path):
                verb = _VERBS[method] if found["name"] or method != "GET" else "list"
                self.asked.add((verb, found["resource"] + (found["part"] or "")))
            if found := _SECRET.fullmatch(path):
                self.secrets += {"POST": 1, "DELETE": -1}[method]
                return 201 if method == "POST" else 200, body or {}
            if found := _JOB.fullmatch(path):
                return self._job(method, found["name"], body)
            if found := _POD.fullmatch(path):
                return self._pod(method, found["name"], bool(found["log"]), query)
            self.mistakes.append(f"{method} {path}")
            return _status(404, "not found")

    def _job(self, method: str, name: str | None, body: Any) -> tuple[int, Any]:
        if method == "POST":
            name = body["metadata"]["name"]
            self.pods[name] = Pod(name, body, self.folder / f"{name}.log")
            return 201, body
        if name not in self.pods or name in self.deleted:
            return _status(404, f'jobs.batch "{name}" not found')
        pod = self.pods[name]
        if method == "DELETE":
            self.deleted.add(name)
            _end(pod)
            return _status(200, "Success")
        if self.faults:
            return _status(self.faults.pop(), "the server has an error")
        status = {} if pod.code is None else {"succeeded": 1} if pod.code == 0 else {"failed": 1}
        if pod.lost:
            status = {"failed": 1}
        return 200, {**pod.body, "status": status}

    def _pod(self, method: str, name: str | None, log: bool, query: dict[str, list[str]]) -> tuple[int, Any]:
        if name is None:
            (selector,) = query["labelSelector"]
            job = selector.removeprefix("job-name=")
            pod = self.pods.get(job)
            there = pod is not None and pod.process is not None and not pod.lost and job not in self.deleted
            return 200, {"kind": "PodList", "items": [_pod_object(pod)] if there and pod else []}
        if log and query.get("previous") == ["True"]:
            # As kubelet answers for a container that was never started again.
            return _status(400, f'previous terminated container "snakemake" in pod "{name}" not found')
        pod = self.pods[name.removesuffix("-pod")]
        return (200, pod.output.read_text()) if log else _status(200, "Success")


@contextmanager
def kubernetes(folder: Path) -> Iterator[Kubernetes]:
    """A cluster of two nodes with one processor each, whose files are in the new folder `folder`."""
    folder.mkdir()
    cluster = Kubernetes(folder, ["k1", "k2"])

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            url = urlsplit(self.path)
            text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, told = cluster.answer(
                self.command, url.path, parse_qs(url.query), json.loads(text) if text else None
            )
            reply = (told if isinstance(told, str) else json.dumps(told)).encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain" if isinstance(told, str) else "application/json")
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        do_GET = do_POST = do_DELETE = _answer  # noqa: N815 - http.server's names

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        (folder / "kubeconfig").write_text(_KUBECONFIG.format(port=server.server_port))
        serving = threading.Thread(target=server.serve_forever, args=(_TICK_S,))
        stopped = threading.Event()
        ticking = threading.Thread(target=lambda: _tick_until(stopped, cluster))
        serving.start()
        ticking.start()
        try:
            yield cluster
        finally:
            stopped.set()
            ticking.join()
            server.shutdown()
            serving.join()
            for pod in cluster.pods.values():
                _end(pod)


def _tick_until(stopped: threading.Event, cluster: Kubernetes) -> None:
    while not stopped.wait(_TICK_S):
        cluster.tick()


def _end(pod: Pod) -> None:
    """Ends the pod's command with all that it has started."""
    if pod.process is None:
        return
    with suppress(ProcessLookupError):
        os.killpg(pod.process.pid, signal.SIGKILL)
    pod.process.wait()


def _pod_object(pod: Pod) -> dict[str, Any]:
    state = {"running": {}} if pod.code is None else {"terminated": {"exitCode": pod.code}}
    container = {"name": "snakemake", "state": state, "ready": True, "restartCount": 0, "image": "", "imageID": ""}
    return {"metadata": {"name": f"{pod.job}-pod"}, "status": {"containerStatuses": [container]}}


def _status(code: int, message: str) -> tuple[int, Any]:
    return code, {"kind": "Status", "code": code, "message": message}
