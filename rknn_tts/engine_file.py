"""What an `.rknn` file says of itself, without the toolkit.

Layout (measured on engines of rknn-toolkit2 2.3.2): 64 bytes of header with "RKNN", a version and the length N of the
model as little-endian 64-bit numbers at 0, 8 and 16; N bytes of model; the length of a description in 64 bits; the
description, JSON with the target, the toolkit's version and the tensors. The short contract (`custom_string`) stands
somewhere in between, as ASCII that a zero byte ends.
"""

from __future__ import annotations

import json
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

from contracts.contract import METADATA_KEY, SHORT_CONTRACT_LIMIT
from contracts.serial import Json
from engine.endings import ENGINE_MAGIC

MAGIC = ENGINE_MAGIC

_HEADER = struct.Struct("<4s4xQQ")
_HEADER_BYTES = 64
_LENGTH = struct.Struct("<Q")
_CONTRACT_START = b'{"schema":"' + METADATA_KEY.encode() + b'"'


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
        contract: the short contract (`contracts.contract.short_contract`); None where it carries none.
        missing_bytes: how many bytes it lacks of those that it tells of; 0 where it is whole.
        problems: what else is wrong with it, as sentences.
    """

    targets: tuple[str, ...]
    toolkit: str | None
    tensors: tuple[EngineTensor, ...]
    contract: dict[str, Json] | None
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


def _description(data: mmap.mmap) -> tuple[int, bytes]:
    """How many bytes are missing, and the text of the description, empty where it is not there."""
    if len(data) < _HEADER_BYTES:
        return _HEADER_BYTES - len(data), b""
    _, _, model_bytes = _HEADER.unpack_from(data)
    start = _HEADER_BYTES + model_bytes + _LENGTH.size
    if len(data) < start:
        return start - len(data), b""
    (length,) = _LENGTH.unpack_from(data, start - _LENGTH.size)
    return max(0, start + length - len(data)), data[start : start + length]


def _parsed(description: bytes) -> tuple[dict[str, Json], str]:
    if not description:
        return {}, ""
    try:
        found = json.loads(description)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        return found, ""
    return {}, "Its description cannot be read: it is damaged, or of a form that rknn-tts does not know."


def _contract(data: mmap.mmap) -> tuple[dict[str, Json] | None, str]:
    start = data.find(_CONTRACT_START)
    if start < 0:
        return None, ""
    text = data[start : start + SHORT_CONTRACT_LIMIT].split(b"\0")[0].decode("ascii", "replace")
    try:
        found, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None, "The contract in it is damaged."
    return (found, "") if isinstance(found, dict) else (None, "The contract in it is damaged.")


def _tensors(entries: Json) -> tuple[EngineTensor, ...]:
    tensors = []
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("url"), str):
            size = entry.get("size")
            shape = tuple(n for n in size if isinstance(n, int)) if isinstance(size, list) else ()
            tensors.append(EngineTensor(str(entry["url"]), shape))
    return tuple(tensors)
