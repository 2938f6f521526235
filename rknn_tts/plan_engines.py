"""What was built, as a plan needs it: engines with their manifests and host halves, none of them stale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from rknn_tts_runtime.engine_file import MAGIC
from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.json_keys import read_json

from contracts.errors import UserInput
from contracts.files import sha256_of
from contracts.manifest import ENGINE_SCHEMA, SET_SCHEMA, Manifest, SetManifest, read_manifest
from contracts.serial import from_json

_KINDS = "an engine (.rknn), its manifest or a set's (.json), or a folder of engines"


@dataclass(frozen=True)
class Built:
    """An engine that stands there as its manifest tells of it.

    Attributes:
        manifest: its manifest.
        engine: its file.
        host: the host half's; None where the stage has none.
    """

    manifest: Manifest
    engine: Path
    host: Path | None


def built_at(words: Sequence[str]) -> tuple[Built, ...]:
    """The engines that `words` name, each once, in order.

    Args:
        words: engines, manifests, manifests of sets, or folders of engines.

    Raises:
        UserInput: one of them is something else, or an engine, its manifest or its host half is missing or stale.
    """
    manifests = [path for word in words for path in _manifests_at(Path(word))]
    return tuple(_built(path) for path in {path.resolve(): path for path in manifests}.values())


def _manifests_at(path: Path) -> list[Path]:
    if path.is_dir():
        engines = sorted(path.glob("*.rknn"))
        if not engines:
            raise UserInput(f"{path}: there is no engine in this folder; name {_KINDS}.")
        return [_beside(engine) for engine in engines]
    if not path.is_file():
        raise UserInput(f"{path}: there is no such file; name {_KINDS}.")
    with path.open("rb") as file:
        is_engine = file.read(len(MAGIC)) == MAGIC
    if is_engine:
        return [_beside(path)]
    try:
        data = read_json(path, "a manifest")
    except BadInput as error:
        raise UserInput(f"{error} Name {_KINDS}.") from error
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema == ENGINE_SCHEMA:
        return [path]
    if schema != SET_SCHEMA:
        raise UserInput(f"{path}: is no manifest: its schema is {str(schema)[:40]!r}; name {_KINDS}.")
    try:
        members = from_json(SetManifest, data, "set").members
    except ValueError as error:
        raise UserInput(f"{path}: {error}; build the set again.") from error
    return [_member(path, name) for name in members]


def _beside(engine: Path) -> Path:
    """The manifest beside `engine`."""
    path = engine.with_suffix(".json")
    if not path.is_file():
        raise UserInput(f"{engine}: its manifest {path.name} is not beside it; copy the two together.")
    return path


def _member(place: Path, name: str) -> Path:
    path = place.with_name(PurePosixPath(name).name or "member")
    if not path.is_file():
        raise UserInput(f"{place}: its member {name} is not beside it; copy a set whole, or build it again.")
    return path


def _built(path: Path) -> Built:
    manifest = read_manifest(path)
    engine = _fresh(path, manifest.engine.file, manifest.engine.sha256, "engine")
    if engine.stem != path.stem:
        raise UserInput(
            f"{path}: is the manifest of {engine.name}; a board looks for it beside the engine, under its name: call "
            f"it {engine.stem}.json."
        )
    host = _fresh(path, manifest.host.file, manifest.host.sha256, "host half") if manifest.host else None
    return Built(manifest, engine, host)


def _fresh(manifest: Path, name: str, sha256: str, what: str) -> Path:
    """The file beside `manifest` that it tells of."""
    path = manifest.with_name(PurePosixPath(name).name or what)
    if not path.is_file():
        raise UserInput(f"{manifest}: its {what} {path.name} is not beside it; copy the two together.")
    if sha256_of(path) != sha256:
        raise UserInput(
            f"{manifest}: is stale: the {what} {path.name} beside it is another one than it tells of; build it again."
        )
    return path
