"""What an `.rknn` file says of itself, without the toolkit.

Layout (measured on engines of rknn-toolkit2 2.3.2): 64 bytes of header with "RKNN", a version and the length N of the
model as little-endian 64-bit numbers at 0, 8 and 16; N bytes of model; the length of a description in 64 bits; the
description, JSON with the target, the toolkit's version and the tensors. The short contract (`custom_string`) stands
somewhere in between, as ASCII that a zero byte ends; its keys stand in docs/manifest.md, "Inside the engine".

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import json
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.json_keys import bounded_whole

MAGIC = b"RKNN"
"""First bytes of every engine (measured on 2.3.2 and 2.5.0 files)."""

CONTRACT_SCHEMA = "rknn-tts/contract/1"
"""First of the short contract: its schema."""

CONTRACT_LIMIT = 1024
"""Of the short contract in bytes, the zero that ends it included: the size of the toolkit's `custom_string`."""

DESCRIPTION_LIMIT = 16 << 20
"""Of a description that is read, in bytes: that of the engine with the most tensors known (134 states) takes 0.1 MB."""

_HEADER = struct.Struct("<4s4xQQ")
_HEADER_BYTES = 64
_LENGTH = struct.Struct("<Q")
_CONTRACT_START = b'{"schema":"' + CONTRACT_SCHEMA.encode() + b'"'


@dataclass(frozen=True)
class EngineTensor:
    """A tensor of the description: name, and shape as the NPU sees it."""

    name: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class EngineHeader:
    """What an engine says of itself.

    Attributes:
        targets: the chips it is for; empty where it does not say.
        toolkit: version of the toolkit that wrote it; None where it does not say.
        tensors: its inputs, then its outputs.
        contract: the short contract; None where it carries none.
        missing_bytes: how many bytes it lacks of those that it tells of; 0 where it is whole.
        problems: what else is wrong with it, as sentences.
    """

    targets: tuple[str, ...]
    toolkit: str | None
    tensors: tuple[EngineTensor, ...]
    contract: dict[str, Any] | None
    missing_bytes: int
    problems: tuple[str, ...]


def read_engine_header(path: Path) -> EngineHeader:
    """What the engine `path`, which begins with `MAGIC`, says of itself.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        missing_bytes, text = _description(data)
        contract, damage = _contract(data)
    description, problem = _parsed(text)
    targets = description.get("target_platform")
    version = description.get("version")
    return EngineHeader(
        targets=tuple(map(str, targets)) if isinstance(targets, list) else (),
        toolkit=version if isinstance(version, str) else None,
        tensors=_tensors(description.get("norm_tensor")),
        contract=contract,
        missing_bytes=missing_bytes,
        problems=tuple(sentence for sentence in (problem, damage) if sentence),
    )


def short_contract_of(path: Path) -> dict[str, Any] | None:
    """The short contract inside the engine `path`; None where it carries none.

    Raises:
        BadInput: the file cannot be read, is no engine, is cut off, or its contract is damaged.
    """
    try:
        if not path.is_file():
            raise BadInput(f"{path}: there is no such engine.")
        with path.open("rb") as file:
            start = file.read(len(MAGIC))
        if start != MAGIC:
            raise BadInput(f"{path}: is no engine: it begins with {start!r}, expected {MAGIC!r}; copy it again.")
        header = read_engine_header(path)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror}).") from error
    if header.missing_bytes:
        raise BadInput(f"{path}: is cut off: at least {header.missing_bytes} bytes are missing; copy it again.")
    if header.contract is None and header.problems:
        raise BadInput(f"{path}: is damaged: {' '.join(header.problems)} Copy it again.")
    return header.contract


def _description(data: mmap.mmap) -> tuple[int, bytes]:
    """How many bytes are missing, and the text of the description, empty where it is not there or far too long."""
    if len(data) < _HEADER_BYTES:
        return _HEADER_BYTES - len(data), b""
    _, _, model_bytes = _HEADER.unpack_from(data)
    start = _HEADER_BYTES + model_bytes + _LENGTH.size
    if len(data) < start:
        return start - len(data), b""
    (length,) = _LENGTH.unpack_from(data, start - _LENGTH.size)
    missing_bytes = max(0, start + length - len(data))
    return missing_bytes, data[start : start + min(length, DESCRIPTION_LIMIT)]


def _parsed(description: bytes) -> tuple[dict[str, Any], str]:
    if not description:
        return {}, ""
    try:
        found = json.loads(description, parse_int=bounded_whole)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        return found, ""
    return {}, "Its description cannot be read: it is damaged, or of a form that rknn-tts does not know."


def _contract(data: mmap.mmap) -> tuple[dict[str, Any] | None, str]:
    start = data.find(_CONTRACT_START)
    if start < 0:
        return None, ""
    text = data[start : start + CONTRACT_LIMIT].split(b"\0")[0].decode("ascii", "replace")
    try:
        found, _ = json.JSONDecoder(parse_int=bounded_whole).raw_decode(text)
    except (ValueError, RecursionError):
        return None, "The contract in it is damaged."
    return (found, "") if isinstance(found, dict) else (None, "The contract in it is damaged.")


def _tensors(entries: object) -> tuple[EngineTensor, ...]:
    tensors = []
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("url"), str):
            size = entry.get("size")
            shape = tuple(n for n in size if isinstance(n, int)) if isinstance(size, list) else ()
            tensors.append(EngineTensor(str(entry["url"]), shape))
    return tuple(tensors)
