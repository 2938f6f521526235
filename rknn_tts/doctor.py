"""Examines the machine and the environments: what was found, whether it will do, and what to do where it will not.

Pure data: nothing is printed, changed or imported from what is examined. Versions come from the metadata that
packages leave beside themselves, so a broken environment is examined as easily as a good one.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engine.environment import CONVERTER_PYTHON
from engine.memory import memory_bytes
from environments.host import libc_name, system_problem
from environments.locks import (
    DEFAULT_TOOLKIT,
    ENVIRONMENTS,
    TOOLCHAIN,
    Lock,
    Wanted,
    extras,
    parse_name,
    size_text,
    toolkit_versions,
)
from environments.pythons import explain, survey
from environments.stamp import judge
from environments.trouble import Trouble
from rknn_tts.installed import breakages, differences, installed_versions, pinned_versions
from rknn_tts.numbers import BYTES_PER_MB

Status = Literal["ok", "warning", "problem"]

# Modules that the toolkit imports by name: a file or folder of that name in the working directory comes first.
SHADOWED = ("onnx", "rknn", "cv2")
# What stages (`Stage.extras`, `Stage.text_extras`) and checkpoints may ask for, and the package that says whether it is
# there: the others of a lock may have come with another. Named here as well: the stages themselves import what may be
# broken.
EXTRAS = {"hub": "huggingface-hub", "phonemes": "piper-tts", "torch": "torch"}
# What a converter build shows most of: the rest of its versions are in the lock.
_TOLD = ("rknn-toolkit2", "onnx", "onnxruntime", "numpy", "protobuf", "setuptools")
# Piper's decoder peaks at about 510 MB in the toolkit, and onnxruntime runs beside it.
_MEMORY_LEAST_MB, _MEMORY_ENOUGH_MB = 1000, 2000
_DISK_LEAST_MB, _DISK_ENOUGH_MB = 300, 1000


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `remedy` says what to do; it is empty where there is nothing to do."""

    name: str
    found: str
    status: Status
    remedy: str = ""


def examine(root: Path, workdir: Path, environ: Mapping[str, str] | None = None) -> list[Finding]:
    """Looks at everything that a build depends on.

    Args:
        root: the checkout of rknn-tts.
        workdir: the folder that commands are run from.
        environ: the variables to look at; the process's own by default.
    """
    root = Path(os.path.realpath(root))
    variables = os.environ if environ is None else environ
    return [
        examine_system(sys.platform, platform.machine(), libc_name()),
        examine_pythons(variables),
        *examine_variables(variables),
        *examine_environments(root),
        *examine_extras(root),
        *examine_named_converter(variables),
        *examine_shadows(workdir),
        examine_disk(root),
        examine_memory(Path("/proc/meminfo"), memory_bytes()),
    ]


def examine_system(system: str, machine: str, libc: str) -> Finding:
    """Whether the toolkit has wheels for this system."""
    problem = system_problem(system, machine, libc)
    return Finding("system", " ".join((system, machine, libc)).strip(), "problem" if problem else "ok", problem)


def examine_pythons(environ: Mapping[str, str]) -> Finding:
    """The Pythons on PATH: at least one must be able to make an environment."""
    pythons = survey(environ)
    told = [
        f"{python.version} ({python.command})" + ("" if python.usable else f", which {python.problem}")
        for python in pythons
        if python.version
    ]
    found = "; ".join(told) or "none"
    if any(python.usable for python in pythons):
        return Finding("Python", found, "ok")
    return Finding("Python", found, "problem", explain(pythons))


def examine_variables(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Variables that put other modules before those of an environment."""
    for name in ("PYTHONHOME", "PYTHONPATH"):
        if environ.get(name):
            yield Finding(
                name,
                environ[name],
                "warning",
                f"packages found there come before the locked ones: unset {name} when something behaves oddly",
            )


def examine_environments(root: Path) -> Iterator[Finding]:
    """The toolchain's environment and one for each toolkit version that has a lock."""
    for name in ("toolchain", *(f"rknn-{version}" for version in toolkit_versions(root))):
        try:
            wanted = parse_name(root, name)
        except Trouble as trouble:
            yield Finding(name, "unknown", "problem", str(trouble))
        else:
            yield from _examine_environment(wanted)


def _examine_environment(wanted: Wanted) -> Iterator[Finding]:
    state = judge(wanted)
    name = wanted.folder.name
    where = "" if wanted.is_toolchain or ENVIRONMENTS not in os.environ else f" in {wanted.folder.parent}"
    default = wanted.is_toolchain or wanted.name == f"rknn-{DEFAULT_TOOLKIT}"
    if state.kind == "absent":
        size = size_text(wanted.locks)
        when = "run `make setup` to have it now" if default else f"`environments/run {wanted.name}` makes it now"
        yield Finding(name, f"not set up yet{where}", "ok", f"it is set up when first needed ({size}); {when}")
        return
    if state.kind == "foreign":
        yield Finding(name, state.reason, "problem", f"move {wanted.folder} away: rknn-tts makes its own there")
        return
    if state.kind != "ready":
        yield Finding(
            name,
            f"{state.kind}: {state.reason}",
            "warning",
            f"it is set up again when next needed; `environments/run {wanted.name}` does it now",
        )
        return
    versions = installed_versions(wanted.folder)
    told = [f"{package} {versions[package]}" for package in _TOLD if package in versions]
    yield Finding(name, f"ready{where}: " + ", ".join(told), "ok")
    yield from _examine_packages(wanted, versions)


def _examine_packages(wanted: Wanted, versions: Mapping[str, str]) -> Iterator[Finding]:
    again = f"remove {wanted.folder} and run `environments/run {wanted.name}`"
    broken = [] if wanted.is_toolchain else breakages(versions)
    for package, found, reason in broken:
        yield Finding(f"{wanted.folder.name}: {package}", found, "problem", f"{reason}; {again}")
    told = {package for package, _, _ in broken}
    others = [
        text for package, text in differences(versions, pinned_versions(wanted.locks[0].path)) if package not in told
    ]
    if others:
        yield Finding(
            f"{wanted.folder.name}: packages", "; ".join(others), "warning", f"not what the lock says: {again}"
        )


def examine_extras(root: Path) -> Iterator[Finding]:
    """What some families and checkpoints need beyond the toolchain, in its environment: added when one first does."""
    for extra in sorted(EXTRAS.keys() & set(extras(root))):
        wanted = parse_name(root, f"{TOOLCHAIN}+{extra}")
        if judge(wanted).kind in ("ready", "lacking"):
            yield _examine_extra(wanted, extra, wanted.locks[1])


def _examine_extra(wanted: Wanted, extra: str, lock: Lock) -> Finding:
    name = f"{wanted.folder.name}: {extra}"
    versions, pins = installed_versions(wanted.folder), pinned_versions(lock.path)
    package = EXTRAS[extra]
    if package not in versions:
        when = f"it is added when a family or a checkpoint first needs it ({size_text([lock])})"
        return Finding(name, "not there yet", "ok", f"{when}; `environments/run {wanted.name}` adds it now")
    wrong = [text for _, text in differences(versions, pins)]
    if wrong:
        again = f"not what the lock says: remove {wanted.folder} and run `environments/run {wanted.name}`"
        return Finding(name, "; ".join(wrong), "warning", again)
    return Finding(name, f"{package} {versions[package]}", "ok")


def examine_named_converter(environ: Mapping[str, str]) -> Iterator[Finding]:
    """The converter environment that a variable names in the place of ours, as a pinned image of CI does."""
    python = environ.get(CONVERTER_PYTHON)
    if not python:
        return
    if not os.access(python, os.X_OK):
        yield Finding(CONVERTER_PYTHON, python, "problem", "it is missing or cannot be run: correct it, or unset it")
        return
    versions = installed_versions(Path(python).absolute().parent.parent)
    if "rknn-toolkit2" not in versions:
        remedy = "rknn-toolkit2 was not found beside it: name the python of an environment that has it"
        yield Finding(CONVERTER_PYTHON, python, "warning", remedy)
        return
    told = [f"{package} {versions[package]}" for package in _TOLD if package in versions]
    yield Finding(CONVERTER_PYTHON, f"{python}: " + ", ".join(told), "ok")
    for package, found, reason in breakages(versions):
        yield Finding(f"{CONVERTER_PYTHON}: {package}", found, "problem", f"{reason}; install an older one there")


def examine_shadows(workdir: Path) -> Iterator[Finding]:
    """Files and folders in the working directory that hide a package which the toolkit imports."""
    for module in SHADOWED:
        for path in (workdir / module, workdir / f"{module}.py"):
            if path.is_dir() if path.suffix == "" else path.is_file():
                yield Finding(
                    "working directory",
                    str(path),
                    "warning",
                    f"Python started in this folder imports it in the place of {module}: rename it, or work in "
                    "another folder (rknn-tts itself builds in a folder of its own)",
                )


def examine_disk(folder: Path) -> Finding:
    """Room for environments, engines and logs."""
    free = shutil.disk_usage(folder).free // BYTES_PER_MB
    return _room("disk", f"{free} MB free at {folder}", free, _DISK_LEAST_MB, _DISK_ENOUGH_MB, "make room on the disk")


def examine_memory(meminfo: Path, limit_bytes: int) -> Finding:
    """Memory that a build can have: what the machine has free, or all that we may ever have where that is less."""
    available = _available_mb(meminfo)
    if available is None:
        return Finding("memory", f"unknown: {meminfo} does not say", "warning", "a build needs about 1 GB")
    free = min(available, limit_bytes // BYTES_PER_MB)
    remedy = "close other programs, or raise the limit of the container"
    return _room("memory", f"{free} MB available", free, _MEMORY_LEAST_MB, _MEMORY_ENOUGH_MB, remedy)


def _room(name: str, found: str, free: int, least: int, enough: int, remedy: str) -> Finding:
    if free < least:
        return Finding(name, found, "problem", f"a build needs {least} MB: {remedy}")
    if free < enough:
        return Finding(name, found, "warning", f"larger models need {enough} MB and more: {remedy}")
    return Finding(name, found, "ok")


def _available_mb(meminfo: Path) -> int | None:
    try:
        lines = meminfo.read_text("ascii", "replace").splitlines()
    except OSError:
        return None
    amounts = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(amounts[0]) * 1024 // BYTES_PER_MB if amounts else None
