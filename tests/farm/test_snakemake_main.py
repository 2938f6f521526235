"""Snakemake as the farm starts it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from engine.processes import descendants
from farm.launch import SNAKEMAKE

PATIENCE_S = 60.0

SNAKEFILE = """
rule wait:
    output: "made"
    shell: "touch begun; exec sleep 600"
"""


def test_snakemake_ends_with_who_started_it_though_interrupts_were_ignored_there(
    tmp_path: Path, farm_python: Path
) -> None:
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    command = [str(farm_python), "-E", "-s", str(SNAKEMAKE), "--cores", "1", "--directory", str(tmp_path)]
    with subprocess.Popen(
        [*command, "--snakefile", str(tmp_path / "Snakefile")],
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        # As a shell's script starts what it has in the background: rknn-tts farm m.toml &
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    ) as process:
        until = time.monotonic() + PATIENCE_S
        while not (tmp_path / "begun").exists() and time.monotonic() < until:
            time.sleep(0.05)
        below = [one.pid for one in descendants(process.pid)]
        assert below
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(PATIENCE_S / 4)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 1  # by itself: Snakemake's own code of a run that was interrupted
    assert not [pid for pid in below if Path(f"/proc/{pid}").exists()]


LOOKS = """
import sys, threading
sys.path.insert(0, sys.argv[1])
import snakemake_main
from snakemake.scheduling.job_scheduler import JobScheduler
class Scheduler:
    _open_jobs = threading.Semaphore(0)
scheduler = Scheduler()
snakemake_main._look_again_once()
for _ in range(2):
    for _ in range(5):
        JobScheduler._schedule_reevalutation(scheduler, 0.1)
    print(scheduler._open_jobs.acquire(timeout=60), scheduler._open_jobs.acquire(timeout=0.5))
"""


def test_scheduler_looks_again_once_when_many_ask_for_it(farm_python: Path) -> None:
    done = subprocess.run(
        [str(farm_python), "-E", "-s", "-c", LOOKS, str(SNAKEMAKE.parent)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["True False"] * 2


STARTS = """
import sys
sys.path.insert(0, sys.argv[1])
import snakemake_main
from snakemake_executor_plugin_slurm_jobstep import Executor
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
snakemake_main._quote_python()
print(RemoteExecutor.get_python_executable(None))
print(Executor.get_python_executable(None))
"""


def test_what_nodes_start_is_this_program_when_its_path_has_a_blank(tmp_path: Path, farm_python: Path) -> None:
    """A shell reads it as executors write it: `PYTHON -m snakemake WORDS`."""
    here = tmp_path / "a checkout"
    here.symlink_to(farm_python.parent.parent)
    python = here / "bin" / farm_python.name
    told = subprocess.run(
        [str(python), "-E", "-s", "-c", STARTS, str(SNAKEMAKE.parent)], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert len(told) == 2
    for line in told:
        done = subprocess.run(
            ["sh", "-c", f"{line} -m snakemake --version"], capture_output=True, text=True, check=True
        )
        assert shlex.split(line)[0] == str(python)
        assert done.stdout.startswith("9.")
