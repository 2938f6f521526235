"""A SLURM of two nodes on this machine: munged, slurmctld and two slurmd of its own, on free ports, in one folder.

Nothing of it outlives the tests: each daemon runs below a warden (engine/warden.py), which adopts what a daemon leaves
behind, and ends it all when the test ends or is killed. It needs no root, and reads nothing below /etc.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from engine.processes import descendants

WARDEN = Path(__file__).resolve().parents[2] / "engine" / "warden.py"
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel", "scontrol", "sinfo")
DAEMON_FOLDERS = ("/usr/sbin", "/sbin")
"""Where Debian has the daemons: not on every user's path."""

NODES = ("n1", "n2")
NODE_CPUS = 2
NODE_MEMORY_MB = 8000
"""What SLURM thinks a node has, whatever this machine has, which both nodes are."""

KEY_BYTES = 64
START_TIMEOUT_S = 30.0
"""Both nodes are idle after about a second; a loaded machine may take longer."""

_POLL_S = 0.05

# No accounting, as on the smallest clusters: then squeue alone knows what became of a job. A node that is lost is
# noticed after seconds instead of five minutes, and jobs start in the instant in which they can.
_CONFIGURATION = """\
ClusterName=rknntts
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1,bf_interval=1
PriorityType=priority/basic
ReturnToService=2
SlurmdTimeout=5
KillWait=1
NodeName={nodes} NodeHostname={host} NodeAddr=127.0.0.1 Port=[{ports}] CPUs={cpus} RealMemory={memory}
PartitionName=farm Nodes={nodes} Default=YES MaxTime=INFINITE State=UP
"""


def is_installed() -> bool:
    """Whether every program of SLURM that a cluster of two nodes needs is on this machine."""
    return all(_program(name) for name in PROGRAMS)


@dataclass(frozen=True)
class Record:
    """What SLURM knows of a job that has ended.

    Attributes:
        comment: as Snakemake's executor writes it: `rule_KIND_wildcards_JOB`.
        node, state: where and how it ended.
        exclusive: whether it had its node to itself.
        began, ended: on the clock, to the second, as SLURM writes them; such texts are in the order of time.
    """

    comment: str
    node: str
    state: str
    exclusive: bool
    began: str
    ended: str


@dataclass
class Cluster:
    """A cluster that runs.

    Attributes:
        folder: all its files, the daemons' logs among them.
        environment: the variables that make SLURM's commands speak to it.
        nodes: the warden of each node's slurmd, by the node's name.
    """

    folder: Path
    environment: Mapping[str, str]
    nodes: dict[str, subprocess.Popen[bytes]]

    def ask(self, *words: str) -> str:
        """What one of SLURM's commands prints."""
        done = subprocess.run(words, env=_with(self.environment), capture_output=True, text=True, check=True)
        return done.stdout

    def states(self) -> dict[str, str]:
        """What SLURM says of each node: idle, mixed, allocated, down, and a `*` behind it where it does not answer."""
        lines = self.ask("sinfo", "--noheader", "--Node", "--format=%N %t").splitlines()
        return dict(line.split() for line in lines)

    def records(self) -> list[Record]:
        """All jobs, in the order in which they were submitted."""
        lines = self.ask("squeue", "--states=all", "--noheader", "--sort=i", "--format=%k|%N|%T|%h|%S|%e").splitlines()
        rows = [line.split("|") for line in lines]
        return [Record(row[0], row[1], row[2], row[3] == "NO", row[4], row[5]) for row in rows]

    def lose(self, node: str) -> None:
        """Take a node away as a power cut would: all its processes are gone at once, and nobody says a word.

        SLURM is told that it is down, as it would find out for itself after SlurmdTimeout.
        """
        while living := [process for process in descendants(self.nodes[node].pid) if not process.zombie]:
            for process in living:
                _kill(process.pid)
            time.sleep(_POLL_S)
        self.ask("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=lost")


@contextmanager
def slurm_cluster(folder: Path) -> Iterator[Cluster]:
    """A cluster of two nodes, one processor each, all of whose files are in the new folder `folder`.

    Raises:
        AssertionError: it did not start; the message holds the daemons' own words.
    """
    folder.mkdir()
    _write_key(folder / "munge.key")
    configuration = folder / "slurm.conf"
    configuration.write_text(_configuration(folder))
    environment = {
        "SLURM_CONF": str(configuration),
        "PATH": f"{_bin(folder, configuration)}{os.pathsep}{os.environ['PATH']}",
    }
    with ExitStack() as running:

        def start(name: str, *command: str) -> subprocess.Popen[bytes]:
            return running.enter_context(_daemon(folder, name, command, environment))

        start("munged", _path("munged"), "--foreground", *_munge_files(folder))
        _wait(folder, lambda: (folder / "munge.socket").is_socket())
        start("slurmctld", _path("slurmctld"), "-D", "-c")
        nodes = {node: start(node, _path("slurmd"), "-D", "-N", node) for node in NODES}
        cluster = Cluster(folder, environment, nodes)
        _wait(folder, lambda: _all_idle(cluster))
        yield cluster


def _all_idle(cluster: Cluster) -> bool:
    try:
        return set(cluster.states().values()) == {"idle"}
    except subprocess.CalledProcessError:  # slurmctld does not answer yet
        return False


def _configuration(folder: Path) -> str:
    port, *ports = _free_ports(1 + len(NODES))
    return _CONFIGURATION.format(
        host=socket.gethostname().partition(".")[0],
        port=port,
        user=_user(),
        folder=folder,
        nodes=",".join(NODES),
        ports=",".join(map(str, ports)),
        cpus=NODE_CPUS,
        memory=NODE_MEMORY_MB,
    )


def _munge_files(folder: Path) -> list[str]:
    """munged's options for files of its own. `--force`: it distrusts folders that others may write above."""
    kinds = {"socket": "socket", "key-file": "key", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    return ["--force", *(f"--{option}={folder}/munge.{ending}" for option, ending in kinds.items())]


def _bin(folder: Path, configuration: Path) -> Path:
    """A folder with an srun that knows where its configuration is, for those who call it without our variables.

    Snakemake's executor takes all variables of SLURM's away before it calls srun; on a cluster it then finds
    /etc/slurm/slurm.conf.
    """
    made = folder / "bin"
    made.mkdir()
    srun = made / "srun"
    srun.write_text(f'#!/bin/sh\nSLURM_CONF="{configuration}" exec {_path("srun")} "$@"\n', encoding="utf-8")
    srun.chmod(0o755)
    return made


def _write_key(path: Path) -> None:
    path.touch(mode=0o600)
    path.write_bytes(secrets.token_bytes(KEY_BYTES))


@contextmanager
def _daemon(
    folder: Path, name: str, command: tuple[str, ...], environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """A daemon below a warden, which ends it and all that it left when the context ends."""
    own = folder / name
    own.mkdir()
    status_read, status_write = os.pipe()
    with (folder / f"{name}.log").open("wb") as log:
        warden = subprocess.Popen(
            [
                sys.executable,
                "-I",
                "-S",
                str(WARDEN),
                str(own),
                str(status_write),
                "0",
                *command,
            ],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=(status_write,),
            env=_with(environment),
            start_new_session=True,  # what ends the tests' process group shall not end the warden before its work
        )
    os.close(status_write)
    try:
        yield warden
    finally:
        assert warden.stdin is not None
        warden.stdin.close()
        warden.wait()
        os.close(status_read)


def _wait(folder: Path, ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not ready():
        if time.monotonic() > deadline:
            logs = "\n".join(f"{path.name}: {path.read_text()[-2000:]}" for path in sorted(folder.glob("*.log")))
            raise AssertionError(f"SLURM did not start within {START_TIMEOUT_S:g} s.\n{logs}")
        time.sleep(_POLL_S)


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens on; all are held until the last one is found, so that no two are the same."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]


def _user() -> str:
    import pwd

    return pwd.getpwuid(os.getuid()).pw_name


def _with(environment: Mapping[str, str]) -> dict[str, str]:
    return {**os.environ, **environment}


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _program(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(DAEMON_FOLDERS))


def _path(name: str) -> str:
    found = _program(name)
    assert found is not None, f"{name} is not installed"
    return found
