"""The engine that a kit is about: its file, its manifest and its twin, seen to belong together."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import onnx_ir as ir

from contracts.errors import UserInput
from contracts.files import sha256_of
from contracts.manifest import Manifest
from rknn_tts.inspection import inspect_file

_NAMES = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,149}")
"""Of files that a kit takes (`rknn_tts_runtime.probing.kit_reading`); a few characters are left for our endings."""


@dataclass(frozen=True)
class Probed:
    """An engine with all that a kit needs of it.

    Attributes:
        engine: its file.
        manifest: what stands beside it.
        place: the manifest's file.
        twin: the ONNX that it was compiled from.
    """

    engine: Path
    manifest: Manifest
    place: Path
    twin: Path

    @cached_property
    def model(self) -> ir.Model:
        """The twin's graph."""
        from converters.onnx_file import read_onnx

        return read_onnx(self.twin, in_place=True)


def open_subject(path: Path) -> Probed:
    """The engine in the file `path`.

    Raises:
        UserInput: it is no engine, its manifest or twin is missing or of another one, or a kit cannot hold its name.
    """
    found = inspect_file(path, Path.cwd())
    if found.kind != "engine":
        what = {"manifest": "a manifest", "set": "the manifest of a set", "layers": "a layer table", "onnx": "an ONNX"}
        raise UserInput(f"{path}: is {what[found.kind]}; name the engine itself, a file ending in .rknn.")
    manifest, place = found.manifest, path.with_suffix(".json")
    if manifest is None:
        raise UserInput(f"{path}: {found.notes[-1] if found.notes else 'there is no manifest beside it.'}")
    if manifest.engine.file != path.name:
        raise UserInput(f"{place}: is the manifest of {manifest.engine.file}, not of {path.name}; copy the right one.")
    twin = path.with_name(manifest.onnx.file)
    if not twin.is_file():
        raise UserInput(
            f"{twin}: the ONNX that {path.name} was compiled from is missing; copy it there, or build again."
        )
    if sha256_of(twin) != manifest.onnx.sha256:
        raise UserInput(
            f"{twin}: is not the ONNX that {path.name} was compiled from (its manifest tells of sha256 "
            f"{manifest.onnx.sha256[:16]}); copy the right one, or build again."
        )
    for name in (path.name, place.name, twin.name):
        if not _NAMES.fullmatch(name):
            raise UserInput(
                f"{path.parent / name}: a kit takes names of letters, digits, '.', '_', '+' and '-' only, at most 150; "
                "build the engine under such a name: --output NAME.rknn."
            )
    return Probed(path, manifest, place, twin)
