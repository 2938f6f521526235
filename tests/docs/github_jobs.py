"""Runs the jobs of a GitHub workflow as the service does: their `run` steps in bash, stand-ins for its actions.

What a workflow may hold is only what the example holds: everything else raises, so that a change of it is seen here.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.docs.ci_machine import Machine, copy_folder, copy_paths

SHELL = "-eo pipefail"
"""Options of bash where a workflow asks for `shell: bash` (GitHub's workflow syntax, `defaults.run.shell`)."""

SUMMARY = "summary.md"
PINNED = re.compile(r"(actions/[a-z-]+)@[0-9a-f]{40}")

_EXPRESSION = re.compile(r"\$\{\{ *(.+?) *\}\}")
_HASH_FILES = re.compile(r"hashFiles\((.+)\)")


@dataclass
class JobRun:
    """A job that has ended: whether all its steps succeeded, the machine it ran on, and the keys of its caches."""

    machine: Machine
    succeeded: bool = True
    codes: list[int] = field(default_factory=list)
    cache_keys: list[str] = field(default_factory=list)


def read_workflow(path: Path) -> dict[str, Any]:
    told: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert told["defaults"]["run"]["shell"] == "bash"
    return told


@dataclass
class Github:
    """The service: a workflow, the repository it belongs to, and the artefacts that were handed in.

    Attributes:
        workflow: as it was read.
        repository: the files of the user's repository.
        store: where artefacts are kept, a folder each.
    """

    workflow: dict[str, Any]
    repository: Path
    store: Path

    def run(self, name: str, machine: Machine, **matrix: str) -> JobRun:
        """Run the job `name`, of a matrix the one with these values, on `machine`."""
        job = self.workflow["jobs"][name]
        known = {
            "github.workspace": str(machine.folder),
            "github.run_id": "1",
            "runner.os": "Linux",
            "steps.python.outputs.python-version": "3.11.7",
            **{f"matrix.{key}": value for key, value in matrix.items()},
        }
        ran = JobRun(machine)
        env: dict[str, str] = {}
        for told in (self.workflow["env"], job.get("env", {})):
            env |= {key: self._filled(value, known, machine) for key, value in told.items()}
            known |= {f"env.{key}": value for key, value in env.items()}
        for step in job["steps"]:
            assert step.keys() <= {"name", "id", "if", "uses", "with", "run"}
            assert step.get("if", "always()") == "always()"
            if ran.succeeded or "if" in step:
                self._step(step, ran, known, env)
        return ran

    def _step(self, step: dict[str, Any], ran: JobRun, known: dict[str, str], env: dict[str, str]) -> None:
        if "run" in step:
            summary = {"GITHUB_STEP_SUMMARY": str(ran.machine.folder / SUMMARY)}
            code = ran.machine.run(self._filled(step["run"], known, ran.machine), SHELL, {**env, **summary})
            ran.codes.append(code)
            ran.succeeded = ran.succeeded and code == 0
            return
        pinned = PINNED.fullmatch(step["uses"])
        assert pinned, f"{step['uses']} is no commit"
        options = {key: self._filled(f"{value}", known, ran.machine) for key, value in step.get("with", {}).items()}
        ran.succeeded = self._action(pinned[1], options, ran) and ran.succeeded

    def _action(self, action: str, options: dict[str, str], ran: JobRun) -> bool:
        machine = ran.machine
        match action:
            case "actions/checkout" if "repository" in options:
                machine.check_out_tool(options["path"])
            case "actions/checkout":
                copy_folder(self.repository, machine.folder)
            case "actions/setup-python":
                assert options == {"python-version": "3.11"}
            case "actions/cache":
                ran.cache_keys.append(options["key"])
            case "actions/upload-artifact":
                return self._upload(options, machine)
            case "actions/download-artifact":
                return self._download(options, machine)
            case _:
                raise AssertionError(f"no stand-in for {action}")
        return True

    def _upload(self, options: dict[str, str], machine: Machine) -> bool:
        """Of one path its contents are kept, of several what is below the folder that they share."""
        paths = [path.strip("/ ") for path in options["path"].split("\n") if path.strip()]
        target = self.store / options["name"]
        assert not target.exists(), f"{target.name} is handed in twice"
        if len(paths) == 1 and (machine.folder / paths[0]).is_dir():
            found = copy_paths(machine.folder / paths[0], ["."], target)
        else:
            found = copy_paths(machine.folder, paths, target)
        return found or options.get("if-no-files-found") != "error"

    def _download(self, options: dict[str, str], machine: Machine) -> bool:
        found = sorted(self.store.glob(options.get("name") or options["pattern"]))
        assert len(found) < 2 or options["merge-multiple"] == "True"
        for artefact in found:
            copy_folder(artefact, machine.folder / options["path"])
        return bool(found)

    def _filled(self, text: object, known: dict[str, str], machine: Machine) -> str:
        return _EXPRESSION.sub(lambda match: _value(match[1], known, machine), str(text))


def _value(expression: str, known: dict[str, str], machine: Machine) -> str:
    hashed = _HASH_FILES.fullmatch(expression)
    if hashed is None:
        return known[expression]
    digest = hashlib.sha256()
    for pattern in re.findall(r"'([^']+)'", hashed[1]):
        files = sorted(machine.folder.glob(pattern))
        assert files, f"{pattern} names no file"
        for file in files:
            digest.update(file.read_bytes())
    return digest.hexdigest()
