"""What an exported ONNX carries in its `metadata_props`: its contract, and the real inputs for the simulator.

So one file goes from the machine that exports to the one that compiles, and nothing is restated there.
"""

from __future__ import annotations

import base64
import hashlib
import io
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from numpy.typing import NDArray

from contracts.contract import METADATA_KEY, Contract, contract_from_metadata, contract_to_metadata
from contracts.contract_faults import contract_fault
from contracts.errors import Refusal, UserInput
from contracts.files import Pieces

FEEDS_KEY = "rknn-tts/feeds/1"
"""Key of `metadata_props`: base64 of a zlib-compressed npz whose arrays are named `WINDOW/INPUT`."""

ORIGINALS_KEY = "rknn-tts/originals/1"
"""Key of `metadata_props`: packed like the feeds, what the original gives on each, where a stage says so."""

CALIBRATION_KEY = "rknn-tts/calibration/1"
"""Key of `metadata_props`: packed like the feeds, what ranges of 8 bits are found on, where the engine has such."""

SEAL_KEY = "rknn-tts/seal/1"
"""Key of `metadata_props`: SHA-256 over the bare graph, the contract and all that is carried beside it. Against
mistakes, not forgers."""

_SEALED_KEYS = (METADATA_KEY, FEEDS_KEY, ORIGINALS_KEY, CALIBRATION_KEY)
CARRIED_KEYS = (*_SEALED_KEYS, SEAL_KEY)

FEEDS_LIMIT_BYTES = 1 << 30
"""No feed is larger unpacked; a file that claims more is refused before it is unpacked."""

Feed = Mapping[str, NDArray[Any]]
Outputs = Mapping[str, NDArray[Any]]

DAMAGES = (
    ValueError,
    TypeError,
    OSError,
    EOFError,
    KeyError,
    MemoryError,
    OverflowError,
    RuntimeError,
    zlib.error,
    zipfile.BadZipFile,
    tokenize.TokenError,
)
"""What base64, zlib, zipfile and numpy raise on what they cannot read; MemoryError and OverflowError where a header
claims too much, TokenError where it never ends."""

_NUMBERS = "fiubV"
"""Kinds of dtype that an engine's inputs have; V: bfloat16 and narrower floats, as numpy reads them back."""


def carry(
    graph: bytes,
    contract: Contract,
    feeds: Sequence[Feed],
    originals: Sequence[Outputs] = (),
    calibration: Sequence[Feed] = (),
) -> bytes:
    """The serialised ONNX `graph` with `contract` and `feeds` inside, what `originals` gave, and a seal over all."""
    bare = without_carried(graph)
    return bare + _metadata([bare], contract, feeds, originals, calibration)


def carried_behind(
    graph: Path,
    contract: Contract,
    feeds: Sequence[Feed],
    originals: Sequence[Outputs] = (),
    calibration: Sequence[Feed] = (),
) -> Pieces:
    """What `carry` makes of the bare ONNX in the file `graph`, which is not read until somebody wants it."""
    return Pieces((graph, _metadata(Pieces((graph,)).chunks(), contract, feeds, originals, calibration)))


def _metadata(
    bare: Iterable[bytes],
    contract: Contract,
    feeds: Sequence[Feed],
    originals: Sequence[Outputs],
    calibration: Sequence[Feed],
) -> bytes:
    """The metadata that a graph of these bytes carries, serialised.

    Two serialised messages in a row are one that holds the entries of both (protobuf, Encoding), so it stands behind
    the graph.
    """
    texts = {**contract_to_metadata(contract), FEEDS_KEY: _pack(feeds)}
    for windows, key in ((originals, ORIGINALS_KEY), (calibration, CALIBRATION_KEY)):
        if windows:
            texts[key] = _pack(windows)
    entries = onnx.ModelProto()
    for key, text in {**texts, SEAL_KEY: _seal(bare, texts)}.items():
        entries.metadata_props.add(key=key, value=text)
    return bytes(entries.SerializeToString(deterministic=True))


def without_carried(graph: bytes) -> bytes:
    """The serialised ONNX `graph` without what `carry` put in: what the toolkit is given, and builds are found by."""
    model = onnx.load_model_from_string(graph)
    kept = [entry for entry in model.metadata_props if entry.key not in CARRIED_KEYS]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)
    return bytes(model.SerializeToString(deterministic=True))


def check_seal(graph: bytes, where: str) -> None:
    """Check that the graph, contract and feeds in `graph` are those that `carry` put together.

    Its contract carries verdicts on exactly that graph: after an edit they would vouch for something else.

    Raises:
        Refusal: something was changed since.
    """
    metadata = {entry.key: entry.value for entry in onnx.load_model_from_string(graph).metadata_props}
    texts = {key: metadata[key] for key in _SEALED_KEYS if key in metadata}
    if metadata.get(SEAL_KEY) != _seal([without_carried(graph)], texts):
        raise Refusal(
            f"{where}: was changed after it was exported, so the verdicts it carries are not about this graph. Export "
            f"it again, or remove the metadata entries {', '.join(CARRIED_KEYS)} to compile it as a foreign ONNX."
        )


def carried_contract(model: ir.Model, where: str) -> Contract | None:
    """The contract in `model`; None where it carries none.

    Raises:
        UserInput: it carries something else under the contract's key, or a contract that no export wrote.
    """
    try:
        contract = contract_from_metadata(model.metadata_props)
    except ValueError as error:
        raise UserInput(f"{where}: carries a damaged contract ({error}); export it again.") from error
    if contract is not None and (fault := contract_fault(contract)) is not None:
        raise UserInput(f"{where}: carries a damaged contract ({fault}); export it again.")
    return contract


def carried_feeds(model: ir.Model, where: str) -> tuple[dict[str, NDArray[Any]], ...]:
    """The feeds in `model`; none where it carries none.

    Raises:
        UserInput: they are damaged.
    """
    return _carried_arrays(model, FEEDS_KEY, "feeds", where)


def carried_originals(model: ir.Model, where: str) -> tuple[dict[str, NDArray[Any]], ...]:
    """What the unpatched original gave on each of the feeds in `model`; nothing where it does not say.

    Raises:
        UserInput: they are damaged.
    """
    return _carried_arrays(model, ORIGINALS_KEY, "outputs of the original", where)


def carried_calibration(model: ir.Model, where: str) -> tuple[dict[str, NDArray[Any]], ...]:
    """What ranges of 8 bits are found on, of `model`; nothing where it carries none.

    Raises:
        UserInput: it is damaged.
    """
    return _carried_arrays(model, CALIBRATION_KEY, "calibration inputs", where)


def _carried_arrays(model: ir.Model, key: str, what: str, where: str) -> tuple[dict[str, NDArray[Any]], ...]:
    text = model.metadata_props.get(key)
    if text is None:
        return ()
    try:
        unzip = zlib.decompressobj()
        data = unzip.decompress(base64.b64decode(text, validate=True), FEEDS_LIMIT_BYTES)
        if unzip.unconsumed_tail:
            raise ValueError(f"more than {FEEDS_LIMIT_BYTES} bytes")
        return feeds_from_npz(data)
    except DAMAGES as error:
        raise UserInput(f"{where}: carries damaged {what} ({error}); export it again.") from error


def feeds_to_npz(feeds: Sequence[Feed]) -> bytes:
    """Feeds as an npz whose arrays are named `WINDOW/INPUT`."""
    archive = io.BytesIO()
    # Not np.savez: the headers it has zipfile write differ between Python 3.10 and 3.11, and a digest would with them.
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as members:
        for i, feed in enumerate(feeds):
            for name, array in feed.items():
                data = io.BytesIO()
                np.save(data, np.ascontiguousarray(array), allow_pickle=False)
                members.writestr(zipfile.ZipInfo(f"{i}/{name}.npy"), data.getvalue())
    return archive.getvalue()


def feeds_from_npz(data: bytes) -> tuple[dict[str, NDArray[Any]], ...]:
    """The feeds that `feeds_to_npz` wrote.

    Raises:
        ValueError, OSError, KeyError, ... (`DAMAGES`): `data` is something else.
    """
    found: dict[int, dict[str, NDArray[Any]]] = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:  # each array may be compressed once more
        if sum(member.file_size for member in archive.infolist()) > FEEDS_LIMIT_BYTES:
            raise ValueError(f"more than {FEEDS_LIMIT_BYTES} bytes")
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        for key in arrays.files:
            window, name = key.split("/", 1)
            array = arrays[key]
            if not isinstance(array, np.ndarray) or array.dtype.kind not in _NUMBERS or array.dtype.names:
                raise ValueError(f"{key:.100} is no array of numbers")
            found.setdefault(int(window), {})[name] = array
    return tuple(found[window] for window in sorted(found))


def _seal(bare: Iterable[bytes], texts: Mapping[str, str]) -> str:
    digest = hashlib.sha256()
    for piece in bare:
        digest.update(piece)
    for key in sorted(texts):
        digest.update(f"\n{key}\n{texts[key]}".encode())
    return digest.hexdigest()


def _pack(feeds: Sequence[Feed]) -> str:
    return base64.b64encode(zlib.compress(feeds_to_npz(feeds))).decode()
