"""Engines on the disk against their manifests: whether both are there, and belong together."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from contracts.errors import UserInput
from contracts.files import sha256_of
from contracts.manifest import Manifest, read_manifest
from farm.outcomes import MadeFile

ENGINE_SUFFIX, MANIFEST_SUFFIX = ".rknn", ".json"


class Damaged(Exception):
    """An engine cannot stand in the catalogue; the message is a sentence for the user."""


def checked_manifest(output: Path, path: str, made: MadeFile | None = None, made_ns: int = 0) -> Manifest:
    """The manifest of the engine at `path`, which is there and is the one that the manifest tells of.

    A job's digest is taken for that of the file as long as the file is older than the job's outcome and as large as it
    was: 8,000 engines are 160 GB, which is not read each time.

    Args:
        output: the catalogue's folder.
        path: of the engine, relative to it.
        made: what the job said of the file; None: it is read.
        made_ns: when the job's outcome was written, in ns since 1970, by the file system's clock.

    Raises:
        Damaged: something is missing, cannot be read or does not belong together.
    """
    if not is_inside(path):
        raise Damaged(f"{path}: lies outside of the folder of the catalogue; run the farm again.")
    engine = output / path
    try:
        manifest = read_manifest(engine.with_suffix(MANIFEST_SUFFIX))
        stat = engine.stat()
        trusted = made is not None and stat.st_size == made.bytes and stat.st_mtime_ns <= made_ns
        sha256 = made.sha256 if made is not None and trusted else sha256_of(engine)
    except UserInput as error:
        raise Damaged(f"{_relative(str(error), output)} Build it again.") from error
    except OSError as error:
        raise Damaged(f"{path}: cannot be read ({error.strerror}); build it again.") from error
    name = PurePosixPath(manifest.engine.file).name
    if name != engine.name:
        raise Damaged(f"{path}: its manifest is of another engine ({name}); build it again.")
    if sha256 != manifest.engine.sha256 or stat.st_size != manifest.engine.bytes:
        told = f"its digest is {sha256[:_DIGITS]}, the manifest's {manifest.engine.sha256[:_DIGITS]}"
        raise Damaged(f"{path}: is not the engine that its manifest tells of ({told}); build it again.")
    return manifest


_DIGITS = 16
"""Hex digits of a digest that are shown."""


def is_inside(path: str) -> bool:
    """Whether the relative `path` stays in its folder."""
    return path != "" and not PurePosixPath(path).is_absolute() and ".." not in PurePosixPath(path).parts


def _relative(sentence: str, output: Path) -> str:
    """`sentence` with paths as the catalogue has them: it may be read on another machine."""
    return sentence.replace(f"{output}/", "")
