"""Runs the jobs of a GitLab pipeline as a runner does: their scripts in bash, artefacts handed on by `needs`.

What a pipeline may hold is only what the example holds: everything else raises, so that a change of it is seen here.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

import yaml

from tests.docs.ci_machine import Machine, copy_folder, copy_paths
from tests.docs.pages import ROOT
from tests.programs import write_program

SHELL = "-eo pipefail"
"""What a runner's script for bash begins with (`set -eo pipefail`)."""

_JOB = {"stage", "cache", "script", "artifacts", "needs", "variables", "parallel"}
_FETCHES_TOOL = f"""
import os, sys
if sys.argv[1] == "init":
    os.symlink({str(ROOT)!r}, sys.argv[-1])
"""
"""A `git` whose init has this checkout at the place, its environments ready; it fetches nothing."""


def read_pipeline(path: Path) -> dict[str, Any]:
    told: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return told


@dataclass
class Gitlab:
    """The service: a pipeline, the repository it belongs to, and the artefacts of its jobs, by job.

    Attributes:
        pipeline: as it was read.
        repository: the files of the user's repository.
        store: where artefacts are kept, a folder a job.
    """

    pipeline: dict[str, Any]
    repository: Path
    store: Path

    def run(self, name: str, machine: Machine, **matrix: str) -> bool:
        """Run the job `name`, of a matrix the one with these values, on `machine`; whether it succeeded."""
        job = self.pipeline[name]
        assert job.keys() <= _JOB
        variables = {**self.pipeline["variables"], **job.get("variables", {}), **matrix}
        variables["CI_PROJECT_DIR"] = str(machine.folder)
        if variables.get("GIT_STRATEGY") != "none":
            copy_folder(self.repository, machine.folder)
        for needed in job.get("needs", []):
            for artefacts in sorted(self.store.glob(f"{needed}*")):
                copy_folder(artefacts, machine.folder)
        tools = self.store.parent / "tools"
        tools.mkdir(exist_ok=True)
        write_program(tools / "git", _FETCHES_TOOL)
        env = {key: Template(str(value)).safe_substitute(variables) for key, value in variables.items()}
        script = "\n".join([*self.pipeline["default"]["before_script"], *job["script"]])
        succeeded = machine.run(script, SHELL, {**env, "PATH": f"{tools}:{os.environ['PATH']}"}) == 0
        kept = job["artifacts"]
        if succeeded or kept["when"] == "always":
            copy_paths(machine.folder, kept["paths"], self.store / "-".join([name, *matrix.values()]))
        return succeeded
