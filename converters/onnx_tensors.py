"""Whether the data of a tensor in an ONNX file is what its type and shape say.

Nothing is allocated for what a tensor claims: its claim is compared with the bytes that are there.
"""

from __future__ import annotations

import math

import onnx_ir as ir
from onnx import TensorProto

LARGEST_RANK = 32
"""Of an array in numpy 1.26, which the toolkit needs."""

LARGEST_AXIS = 2**31 - 1
"""The toolkit counts in 32 bits (its layer table and memory totals)."""

_TYPES = {number: name for name, number in TensorProto.DataType.items() if number != TensorProto.UNDEFINED}

_FIELDS = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")

_FIELD_OF = {
    "FLOAT": "float_data",
    "COMPLEX64": "float_data",
    "STRING": "string_data",
    "INT64": "int64_data",
    "DOUBLE": "double_data",
    "COMPLEX128": "double_data",
    "UINT32": "uint64_data",
    "UINT64": "uint64_data",
}
"""Where onnx.proto has a type's values if not in `raw_data`; `int32_data` holds every other type."""

_LONGEST_NUMBER = 18
"""Digits of an offset or a length in a file: fewer than 2^63, which is as far as a file goes."""

_PARTS = {"COMPLEX64": 2, "COMPLEX128": 2}
"""Entries that one value takes, where it is not one."""


def tensor_fault(tensor: TensorProto) -> str | None:
    """A clause that says what is wrong with `tensor`, whose data may be in another file; None where nothing is."""
    name = f"the tensor {shown(tensor.name)}"
    if tensor.data_type not in _TYPES:
        return f"{name} is of the type {tensor.data_type}, which ONNX does not know"
    dims = list(tensor.dims)
    if len(dims) > LARGEST_RANK:
        return f"{name} has {len(dims)} axes, more than {LARGEST_RANK}"
    if any(not 0 <= size <= LARGEST_AXIS for size in dims):
        return f"{name} has the shape {dims}, and each axis has 0 to {LARGEST_AXIS} elements"
    if tensor.HasField("segment"):
        return f"{name} is cut into segments, which nothing reads"
    return _data_fault(tensor, name, _TYPES[tensor.data_type], dims)


def shown(name: str | bytes) -> str:
    """A name that may be none, endless, or no text."""
    text = name if isinstance(name, str) else repr(name)
    return text[:100] or "without a name"


def stored_bytes(data_type: int, elements: int) -> int:
    """What `elements` values of a type take in `raw_data` or in a file: those under a byte are packed."""
    return math.ceil(elements * ir.DataType(data_type).bitwidth / 8)


def _data_fault(tensor: TensorProto, name: str, kind: str, dims: list[int]) -> str | None:
    elements = math.prod(dims)
    filled = [field for field in _FIELDS if len(getattr(tensor, field))]
    if tensor.data_location == TensorProto.EXTERNAL:
        if kind == "STRING":
            return f"{name} keeps texts in another file, which ONNX does not allow"
        if filled or tensor.raw_data:
            return f"{name} keeps its data both inside and in another file"
        return _place_fault(tensor, name)
    if tensor.HasField("raw_data"):
        if kind == "STRING":
            return f"{name} holds texts as raw bytes, which ONNX does not allow"
        found, needed, what = len(tensor.raw_data), stored_bytes(tensor.data_type, elements), "bytes"
        if filled:
            return f"{name} has its data twice, in raw_data and in {filled[0]}"
    else:
        field = _FIELD_OF.get(kind, "int32_data")
        if others := [other for other in filled if other != field]:
            return f"{name} of the type {kind} has its data in {others[0]}, not in {field}"
        found, needed, what = len(getattr(tensor, field)), _entries(tensor.data_type, kind, elements), "values"
    if found == needed:
        return None
    return f"{name} of the type {kind} and the shape {dims} needs {needed} {what}, the file holds {found}"


def _place_fault(tensor: TensorProto, name: str) -> str | None:
    """What is wrong with the way `tensor` names its place in another file."""
    place = {entry.key: entry.value for entry in tensor.external_data}
    if not isinstance(place.get("location"), str) or not place["location"]:
        return f"{name} keeps its data in another file and does not name it"
    for key in ("offset", "length"):
        text = place.get(key, "0")
        if not (isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER):
            return f"{name} keeps its data in another file at the {key} {text!r:.50}"
    return None


def _entries(data_type: int, kind: str, elements: int) -> int:
    """How many entries `elements` values take in their own field, where those under a byte are packed as in bytes."""
    if kind == "STRING":
        return elements
    bits = ir.DataType(data_type).bitwidth
    return math.ceil(elements * bits / 8) if bits < 8 else elements * _PARTS.get(kind, 1)
