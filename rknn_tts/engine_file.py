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

MAGIC = b"RKNN"

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
        problems: what is wrong with the file, as sentences.
    """

    targets: tuple[str, ...]
    toolkit: str | None
    tensors: tuple[EngineTensor, ...]
    contract: dict[str, Json] | None
    problems: tuple[str, ...]


def read_engine_header(path: Path) -> EngineHeader:
    """What the engine `path`, which begins with `MAGIC`, says of itself.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        description, problem = _description(data)
        contract, contract_problem = _contract(data)
    targets = description.get("target_platform")
    version = description.get("version")
    return EngineHeader(
        targets=tuple(map(str, targets)) if isinstance(targets, list) else (),
        toolkit=version if isinstance(version, str) else None,
        tensors=_tensors(description.get("norm_tensor")),
        contract=contract,
        problems=tuple(text for text in (problem, contract_problem) if text),
    )


def _description(data: mmap.mmap) -> tuple[dict[str, Json], str]:
    cut_off = "It is cut off: it holds {} bytes, and its header tells of {} at least. Build or copy it again."
    if len(data) < _HEADER_BYTES:
        return {}, cut_off.format(len(data), _HEADER_BYTES)
    _, _, model_bytes = _HEADER.unpack_from(data)
    start = _HEADER_BYTES + model_bytes + _LENGTH.size
    if len(data) < start:
        return {}, cut_off.format(len(data), start)
    (length,) = _LENGTH.unpack_from(data, start - _LENGTH.size)
    if len(data) < start + length:
        return {}, cut_off.format(len(data), start + length)
    try:
        found = json.loads(data[start : start + length])
    except (ValueError, RecursionError):
        return {}, "Its description cannot be read: it is damaged, or of a form that rknn-tts does not know."
    return (found, "") if isinstance(found, dict) else ({}, "")


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
