"""The catalogue of a folder of engines that no farm made: what their manifests say, and where they stand."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from contracts.errors import UserInput
from contracts.manifest import ENGINE_SCHEMA, Manifest
from farm.catalogue import EngineEntry, Failure, Fault
from farm.engine_entries import Standing, entry_of
from farm.engine_files import ENGINE_SUFFIX, MANIFEST_SUFFIX, Damaged, checked_manifest

_SCHEMA_WITHIN_BYTES = 200
"""A manifest begins with its schema (contracts.manifest.manifest_text); larger files need not be read."""


def gather_folder(output: Path) -> tuple[list[EngineEntry], list[Failure]]:
    """The engines below the folder `output`, and what is wrong with those that are none.

    Raises:
        UserInput: there is none.
    """
    paths = {*engines_below(output), *_manifests_below(output)}
    if not paths:
        raise UserInput(f"{output}: there is no engine in this folder, and no plan of a farm.")
    engines: list[EngineEntry] = []
    failures: list[Failure] = []
    for path in sorted(paths):
        try:
            manifest = checked_manifest(output, path)
        except Damaged as error:
            failures.append(_failure(path, str(error)))
            continue
        engines.append(entry_of(manifest, Standing(_voice(path, manifest), "", path, page=_page(output, path))))
    return engines, failures


def engines_below(output: Path) -> Iterator[str]:
    """Paths of all engines below `output`, relative to it, in order; hidden folders are left out."""
    return _files_below(output, ENGINE_SUFFIX)


def _manifests_below(output: Path) -> Iterator[str]:
    """Where the engines of the manifests below `output` would stand."""
    for path in _files_below(output, MANIFEST_SUFFIX):
        if _is_manifest(output / path):
            yield f"{path.removesuffix(MANIFEST_SUFFIX)}{ENGINE_SUFFIX}"


def _files_below(output: Path, suffix: str) -> Iterator[str]:
    for folder, folders, files in os.walk(output):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if name.endswith(suffix) and not name.startswith("."):
                yield (Path(folder) / name).relative_to(output).as_posix()


def _is_manifest(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return ENGINE_SCHEMA.encode() in file.read(_SCHEMA_WITHIN_BYTES)
    except OSError:
        return False


def _voice(path: str, manifest: Manifest) -> str:
    """The folders that the engine stands in, its target's left out; else the name of its checkpoint."""
    folders = [part for part in PurePosixPath(path).parent.parts if part != manifest.target]
    return "/".join(folders) or PurePosixPath(manifest.source.name).stem


def _page(output: Path, path: str) -> str | None:
    """The page of the engine at `path`: its own, or that of all in its folder (`rknn-tts report`)."""
    pages = (PurePosixPath(path).with_suffix(".html"), PurePosixPath(path).with_name("report.html"))
    return next((page.as_posix() for page in pages if (output / page).is_file()), None)


def _failure(path: str, sentence: str) -> Failure:
    voice = PurePosixPath(path).parent.as_posix()
    return Failure(Fault.DAMAGED, sentence, None, "engine", None, None, "" if voice == "." else voice, "", None, path)
