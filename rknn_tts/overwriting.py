"""What must not be replaced by what is written: the user's own inputs, and another engine's files.

Asked as soon as the places are known, before anything is built.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from pathlib import Path

from contracts.contract import Contract, contract_from_metadata
from contracts.errors import RknnTtsError, UserInput
from contracts.files import holds, sha256_of
from contracts.manifest import Manifest, read_manifest
from rknn_tts.graph_at_hand import OnnxSource, twin_of
from rknn_tts.places import Places

NAME_LIMIT_BYTES = 255
"""Of one file's name, on every file system that Linux builds run on (NAME_MAX)."""

_MARK = b"rknn-tts/"
"""In every manifest (its schema) and in every ONNX that carries a contract (its key)."""

_ADVICE = "--output names another place."


def check_engine_places(source: OnnxSource, target: str, places: Places, chosen: bool) -> None:
    """See that the engine's files replace nothing but the same engine's.

    Args:
        source: what is compiled.
        target: for which chip.
        places: where its files go.
        chosen: whether the user named the place; our own names keep targets and voices apart.

    Raises:
        UserInput: one would replace an input of the command, or an engine for another target or of another voice, or
            two of them have one name.
    """
    host = _host_place(places.onnx, source)
    written = [places.engine, places.onnx, places.manifest, places.log, places.layers, places.failed]
    _check_names([*written, *host])
    _check_inputs([*written, *host], source, places.onnx)
    if not chosen:
        return
    _check_foreign([places.onnx, places.manifest])
    earlier = _manifest_at(places)
    if earlier is not None and (said := _differs(earlier, source.contract, target)):
        raise UserInput(f"{places.engine}: is an engine {said}, and would be replaced; {_ADVICE}")
    if host:
        _check_host(host[0], source.contract, earlier.host.sha256 if earlier and earlier.host else None)


def check_set_place(sources: Sequence[OnnxSource], place: Path, chosen: bool) -> None:
    """See that the manifest in `place`, of the set of engines made of `sources`, replaces nothing of the user's.

    Raises:
        UserInput: it would.
    """
    _check_names([place])
    for source in sources:
        _check_inputs([place], source, None)
    if chosen:
        _check_foreign([place])


def check_export_places(source: OnnxSource, place: Path, chosen: bool) -> None:
    """See that an exported ONNX in `place`, and its host half beside it, replace no input and no other voice's half.

    Raises:
        UserInput: they would.
    """
    host = _host_place(place, source)
    _check_names([place, *host])
    _check_inputs([place, *host], source, None)
    if host and chosen:
        _check_host(host[0], source.contract, _host_digest_in(place))


def check_saved_places(places: Sequence[Path], inputs: Sequence[Path]) -> None:
    """See that a saved checkpoint in `places` replaces none of the command's `inputs`.

    Raises:
        UserInput: it would.
    """
    given = {path.resolve() for path in inputs}
    for path in places:
        if path.resolve() in given:
            raise UserInput(
                f"{path}: is an input of this command, and would be replaced; --save-checkpoint names another place."
            )


def _host_place(onnx: Path, source: OnnxSource) -> list[Path]:
    """Where the host half goes, beside the graph `onnx`; nothing where there is none."""
    host = source.contract.host
    return [onnx.with_name(host.file)] if host is not None and source.host is not None else []


def _check_names(written: Sequence[Path]) -> None:
    for path in written:
        if len(os.fsencode(path.name)) > NAME_LIMIT_BYTES:
            raise UserInput(f"{path}: a file's name has at most {NAME_LIMIT_BYTES} bytes; {_ADVICE}")
        if written.count(path) > 1:
            raise UserInput(f"{path}: would be written twice, as the graph and as the host half; {_ADVICE}")


def _check_inputs(written: Sequence[Path], source: OnnxSource, twin: Path | None) -> None:
    inputs = {path.resolve() for path in source.inputs}
    for path in written:
        if path.resolve() not in inputs:
            continue
        # An exported ONNX may be compiled in its own folder: its twin is the same file, to the byte.
        if path == twin and source.exported and holds(path, twin_of(source, source.prove())):
            continue
        raise UserInput(f"{path}: is an input of this command, and would be replaced; {_ADVICE}")


def _check_foreign(beside: Sequence[Path]) -> None:
    """A graph or a JSON that the engine's name happens to fit, and that we did not write, is the user's."""
    for path in beside:
        if path.is_file() and not _is_marked(path):
            raise UserInput(f"{path}: is no file of rknn-tts, and would be replaced; {_ADVICE}")


def _is_marked(path: Path) -> bool:
    """Whether one of our schemas is named in the file, which is not read where it need not be."""
    with path.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return False
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return data.find(_MARK) >= 0


def _check_host(host: Path, contract: Contract, ours: str | None) -> None:
    """A host half that is neither the same nor the one of the file that is replaced belongs to something else."""
    if host.is_file() and contract.host is not None and sha256_of(host) not in (contract.host.sha256, ours):
        raise UserInput(f"{host}: is another host half than this one, and would be replaced; {_ADVICE}")


def _manifest_at(places: Places) -> Manifest | None:
    try:
        return read_manifest(places.manifest) if places.engine.is_file() else None
    except UserInput:
        return None


def _differs(earlier: Manifest, contract: Contract, target: str) -> str:
    if earlier.target != target:
        return f"for {earlier.target}"
    return f"of {earlier.source.name}" if earlier.source.name != contract.source.name else ""


def _host_digest_in(exported: Path) -> str | None:
    """The digest of the host half that the ONNX in `exported` names."""
    from converters.onnx_file import read_onnx

    try:
        metadata = read_onnx(exported, in_place=True).metadata_props if exported.is_file() else {}
        contract = contract_from_metadata(metadata)
    except (RknnTtsError, ValueError):
        return None
    return contract.host.sha256 if contract is not None and contract.host is not None else None
