"""What an environment has installed, read from the packages' metadata, against its lock and the known breakages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.metadata import distributions
from pathlib import Path
from typing import NamedTuple

_PIN = re.compile(r"^([A-Za-z0-9][\w.-]*)==([^\s;\\]+)", re.MULTILINE)
# A lock also names packages for some of the Pythons alone, so only the absence of these is known to be wrong.
_ON_EVERY_PYTHON = frozenset({"rknn-toolkit2", "onnx", "onnxruntime", "numpy", "protobuf", "typer", "rich", "torch"})


class Breakage(NamedTuple):
    """A version from which on the toolkit no longer works with a package, which its own metadata does not say."""

    package: str
    first_bad: tuple[int, ...]
    reason: str


BREAKAGES = (
    Breakage("onnx", (1, 19), "onnx 1.19 and newer have no onnx.mapping, which rknn-toolkit2 imports"),
    Breakage("setuptools", (81,), "setuptools 81 and newer have no pkg_resources, which rknn-toolkit2 imports"),
    Breakage("numpy", (2,), "rknn-toolkit2's binary modules are built for numpy 1 and do not load with numpy 2"),
)


class Broken(NamedTuple):
    """A package of an environment that the toolkit cannot work with."""

    package: str
    found: str
    reason: str


def installed_versions(folder: Path) -> dict[str, str]:
    """Package name (as PyPI normalises it) to version, for the environment in that folder."""
    sites = [str(site) for site in folder.glob("lib/python3.*/site-packages")]
    versions: dict[str, str] = {}
    for distribution in distributions(path=sites):
        # The metadata of a package whose removal was interrupted has no name.
        name = distribution.metadata["Name"]
        if name:
            versions[normalised(name)] = distribution.version
    return versions


def pinned_versions(lock: Path) -> dict[str, frozenset[str]]:
    """Package name to the versions that the lock names (more than one where they depend on the Python)."""
    pins: dict[str, set[str]] = {}
    for name, version in _PIN.findall(lock.read_text("utf-8")):
        pins.setdefault(normalised(name), set()).add(version)
    return {name: frozenset(versions) for name, versions in pins.items()}


def differences(versions: Mapping[str, str], pins: Mapping[str, frozenset[str]]) -> Iterator[tuple[str, str]]:
    """Each package of the lock that is missing or there in another version, and a text that says so."""
    for name, wanted in sorted(pins.items()):
        found = versions.get(name)
        locked = " or ".join(sorted(wanted))
        if found is None:
            if name in _ON_EVERY_PYTHON:
                yield name, f"{name} is missing (locked: {locked})"
        elif found.partition("+")[0] not in wanted:  # a build's own mark, 2.13.0+cpu, is not part of the version
            yield name, f"{name} {found} (locked: {locked})"


def breakages(versions: Mapping[str, str]) -> list[Broken]:
    """The packages of a converter environment with which the toolkit does not work."""
    broken = []
    for package, first_bad, reason in BREAKAGES:
        found = versions.get(package)
        if found is None:
            broken.append(Broken(package, "missing", f"rknn-toolkit2 needs {package}"))
        elif release(found) >= first_bad:
            broken.append(Broken(package, found, reason))
    return broken


def release(version: str) -> tuple[int, ...]:
    """The numbers a version begins with: (1, 19, 0) for 1.19.0rc1."""
    numbers = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in numbers.group().split(".")) if numbers else ()


def normalised(name: str) -> str:
    """The one spelling of a package's name."""
    return re.sub(r"[-_.]+", "-", name).lower()
