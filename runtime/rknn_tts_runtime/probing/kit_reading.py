"""Reads a probe kit, which is data from elsewhere: nothing of it is believed before it was checked.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping

from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.identity import sha256_of
from rknn_tts_runtime.json_keys import KeyReader, read_json
from rknn_tts_runtime.manifest import EngineManifest, TensorInfo, read_manifest
from rknn_tts_runtime.probing.arrays import Array, read_array, read_header
from rknn_tts_runtime.probing.kit import (
    ENGINE,
    KINDS,
    KIT_FILE,
    KIT_SCHEMA,
    Case,
    CaseInput,
    CaseOutput,
    CaseRun,
    Kit,
    Subject,
)

MOST_CASES = 1000
MOST_RUNS = 1000
"""Of a kit and of a case that are believed: a few dozen, and a few feeds each."""

LARGEST_BOUND_DB = 1000.0
"""float64 has some 320 dB."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}")
"""Of a file in the folder and of a case: no separator, no leading dot, nothing that a terminal acts on."""

_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class OpenKit:
    """A kit that was read and checked.

    Attributes:
        folder: where it stands.
        kit: what `probe.json` says.
        sha256: the digest of `probe.json`, and by the digests in it of everything.
        manifests: case to its engine's manifest.
    """

    folder: Path
    kit: Kit
    sha256: str
    manifests: Mapping[str, EngineManifest]

    def array(self, name: str) -> Array:
        """The array in the file `name`.

        Raises:
            BadInput: it cannot be read.
        """
        return read_array(self.folder / name)


def open_kit(folder: Path) -> OpenKit:
    """The kit in `folder`, all its files checked.

    Raises:
        BadInput: `probe.json` is missing or no kit, or a file is missing, damaged, no plain file of the folder, or
            not what its case's engine takes or gives.
    """
    path = folder / KIT_FILE
    try:
        found = path.is_file()
    except OSError:  # a name that is too long, or a folder that is not ours
        found = False
    if not found:
        raise BadInput(f"{folder}: is no probe kit, there is no {KIT_FILE} in it; `rknn-tts probe ENGINE` writes one.")
    kit = _read_kit(path, read_json(path, "a kit"))
    for name, digest in kit.files.items():
        _check_file(folder, name, digest)
    manifests = {case.name: _checked_manifest(folder, kit, case) for case in kit.cases}
    if kit.files.get(kit.subject.engine_file) != kit.subject.engine_sha256:
        raise BadInput(
            f"{path}: its subject {kit.subject.engine_file} is not the file of that digest in the folder; "
            "write the kit again."
        )
    return OpenKit(folder, kit, sha256_of(path), manifests)


def _check_file(folder: Path, name: str, digest: str) -> None:
    path = folder / name
    if path.is_symlink() or not path.is_file():
        raise BadInput(f"{path}: is missing, or no plain file; copy the whole kit again.")
    found = sha256_of(path)
    if found != digest:
        raise BadInput(
            f"{path}: is damaged, its SHA-256 is {found[:12]}... and not {digest[:12]}...; copy the kit again."
        )


def _checked_manifest(folder: Path, kit: Kit, case: Case) -> EngineManifest:
    manifest = read_manifest(folder / case.manifest)
    where = f"{folder / KIT_FILE}: case {case.name}"
    engine = manifest.engine.name
    if kit.files.get(engine) != manifest.engine_sha256:
        raise BadInput(f"{where}: {engine} is not the engine of its manifest, or not in the kit; write it again.")
    if manifest.twin.name not in kit.files and manifest.twin.exists():
        raise BadInput(f"{where}: {manifest.twin.name} is in the folder and not among the kit's files; remove it.")
    if case.kind == ENGINE and manifest.engine_sha256 != kit.subject.engine_sha256:
        raise BadInput(f"{where}: is of {engine}, and the kit's subject is {kit.subject.engine_file}; write it again.")
    inputs = {tensor.name: tensor for tensor in manifest.inputs}
    outputs = {tensor.name: tensor for tensor in manifest.outputs}
    for run in case.runs:
        if sorted(given.name for given in run.inputs) != sorted(inputs):
            raise BadInput(f"{where}: gives {[given.name for given in run.inputs]}, the engine takes {list(inputs)}.")
        for given in run.inputs:
            _check_array(folder, given.file, inputs[given.name])
        names = [expected.name for expected in run.outputs]
        for expected in run.outputs:
            if expected.name not in outputs or names.count(expected.name) > 1:
                raise BadInput(f"{where}: expects {names}, the engine gives {list(outputs)}.")
            _check_array(folder, expected.file, outputs[expected.name])
    return manifest


def _check_array(folder: Path, name: str, tensor: TensorInfo) -> None:
    header = read_header(folder / name)
    if header.dtype != tensor.dtype or header.shape != tensor.shape:
        raise BadInput(
            f"{folder / name}: holds {header.dtype} {list(header.shape)}, and {tensor.name} is {tensor.dtype} "
            f"{list(tensor.shape)}; write the kit again."
        )


class _Reader(KeyReader):
    """Reads keys of `probe.json`, and refuses what is not of its kind; `where` names the object that a key is in."""

    def table_of(self, value: object, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.wrong(where, value, "an object")
        return value

    def list_of(self, table: dict[str, Any], key: str, where: str, most: int, least: int = 1) -> list[Any]:
        value = table.get(key)
        if not isinstance(value, list) or not least <= len(value) <= most:
            raise self.wrong(f"{where}.{key}", value, f"a list of {least} to {most}")
        return value

    def text_of(self, table: dict[str, Any], key: str, where: str) -> str:
        return self.as_text(f"{where}.{key}", table.get(key))

    def text_or_none(self, table: dict[str, Any], key: str, where: str) -> str | None:
        return None if table.get(key) is None else self.text_of(table, key, where)

    def name(self, value: object, where: str) -> str:
        if not isinstance(value, str) or not _NAME.fullmatch(value):
            raise self.wrong(where, value, "a name of letters, digits, dots, dashes and such, no path")
        return value

    def digest(self, value: object, where: str) -> str:
        if not isinstance(value, str) or not _DIGEST.fullmatch(value):
            raise self.wrong(where, value, "a SHA-256 of 64 hex digits")
        return value

    def bound(self, table: dict[str, Any], where: str) -> float:
        value = table.get("bound_db")
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= LARGEST_BOUND_DB:
            raise self.wrong(f"{where}.bound_db", value, "a number of dB")
        return float(value)


def _read_kit(path: Path, data: object) -> Kit:
    read = _Reader(path, {}, "write the kit again")
    table = read.table_of(data, "it")
    if table.get("schema") != KIT_SCHEMA:
        raise read.wrong("schema", table.get("schema"), repr(KIT_SCHEMA))
    files = {
        read.name(name, "the name of a file"): read.digest(digest, f"files.{name:.80}")
        for name, digest in read.table_of(table.get("files"), "files").items()
    }
    cases = tuple(
        _read_case(read, read.table_of(item, f"cases[{place}]"), f"cases[{place}]", files)
        for place, item in enumerate(read.list_of(table, "cases", "kit", MOST_CASES))
    )
    names = [case.name for case in cases]
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise read.wrong("cases", twice, "each name once")
    return Kit(_read_subject(read, read.table_of(table.get("subject"), "subject"), files), cases, files)


def _read_subject(read: _Reader, table: dict[str, Any], files: Mapping[str, str]) -> Subject:
    return Subject(
        family=read.text_or_none(table, "family", "subject"),
        stage=read.text_or_none(table, "stage", "subject"),
        role=read.text_or_none(table, "role", "subject"),
        target=read.text_of(table, "target", "subject"),
        toolkit=read.text_of(table, "toolkit", "subject"),
        engine_sha256=read.digest(table.get("engine_sha256"), "subject.engine_sha256"),
        engine_file=_read_file(read, table, "engine_file", "subject", files),
    )


def _read_case(read: _Reader, table: dict[str, Any], where: str, files: Mapping[str, str]) -> Case:
    if table.get("kind") not in KINDS:
        raise read.wrong(f"{where}.kind", table.get("kind"), f"one of {', '.join(KINDS)}")
    proves = read.list_of(table, "proves", where, MOST_CASES, least=0)
    runs = []
    for place, item in enumerate(read.list_of(table, "runs", where, MOST_RUNS)):
        run, at = read.table_of(item, f"{where}.runs[{place}]"), f"{where}.runs[{place}]"
        inputs = [read.table_of(one, f"{at}.inputs") for one in read.list_of(run, "inputs", at, MOST_RUNS)]
        outputs = [read.table_of(one, f"{at}.outputs") for one in read.list_of(run, "outputs", at, MOST_RUNS)]
        runs.append(
            CaseRun(
                tuple(CaseInput(*_read_named(read, one, at, files)) for one in inputs),
                tuple(CaseOutput(*_read_named(read, one, at, files), read.bound(one, at)) for one in outputs),
            )
        )
    return Case(
        name=read.name(table.get("name"), f"{where}.name"),
        kind=str(table["kind"]),
        what=read.text_of(table, "what", where),
        manifest=_read_file(read, table, "manifest", where, files),
        runs=tuple(runs),
        proves=tuple(read.as_text(f"{where}.proves", gate) for gate in proves),
    )


def _read_named(read: _Reader, table: dict[str, Any], where: str, files: Mapping[str, str]) -> tuple[str, str]:
    return read.text_of(table, "name", where), _read_file(read, table, "file", where, files)


def _read_file(read: _Reader, table: dict[str, Any], key: str, where: str, files: Mapping[str, str]) -> str:
    name = read.name(table.get(key), f"{where}.{key}")
    if name not in files:
        raise read.wrong(f"{where}.{key}", name, "one of the kit's files, with its digest")
    return name
