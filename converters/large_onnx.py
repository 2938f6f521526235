"""An ONNX written, and read, without a second copy of its weights in memory.

A message of protobuf holds all it says, so a graph of 1.3 GB as one is 1.3 GB, and its bytes are 1.3 GB more. Here the
graph goes through protobuf without its large tensors, and these go straight between memory and file:

    ModelProto   ir_version ... domain | graph        | opset_import, metadata_props, functions
    GraphProto          node, name     | initializers | doc_string, input, output, value_info, ...
    TensorProto         dims ... name  | raw_data     | doc_string, metadata_props

What is written is what protobuf would write, byte for byte: fields by their number. Read, the large tensors stay in
the file, which the system maps into memory when they are looked at (`ir.ExternalTensor`). So nobody may change it
meanwhile: that is for our own files, not for a user's.
"""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

import onnx
import onnx_ir as ir
from google.protobuf.message import Message  # type: ignore[import-untyped]  # protobuf ships no types

Sink = Callable[[bytes], object]
"""Takes the next piece of a file."""

LARGE_BYTES = 1 << 16
"""Least size of a tensor that goes its own way; a message of the others is small."""

_GRAPH, _INITIALIZER, _RAW_DATA = 7, 5, 9
"""Numbers of the fields that are written apart (onnx.proto): of ModelProto, GraphProto, TensorProto."""

_BYTES_KIND, _VARINT, _FIXED64, _FIXED32 = 2, 0, 1, 5
"""Kinds of fields in protobuf's encoding."""

_VARINT_BITS = 70
"""Of a number: ten bytes, each with seven bits of it (protobuf, Encoding)."""


def write_onnx(model: ir.Model, path: Path) -> None:
    """Write `model` to the file `path`, all weights inside, the same bytes for the same graph.

    Raises:
        OSError: it cannot be written, or the disk is full.
    """
    with path.open("wb") as file:
        stream_onnx(model, file.write)


def sha256_of_onnx(model: ir.Model) -> str:
    """SHA-256 of the file that `write_onnx` writes, as hex digits."""
    digest = hashlib.sha256()
    stream_onnx(model, digest.update)
    return digest.hexdigest()


def stream_onnx(model: ir.Model, sink: Sink) -> None:
    """Hand the bytes of `model` to `sink`, piece by piece, in order."""
    light, large = _without_large(model)
    proto = ir.to_proto(light)
    initializers = [_Initializer(tensor, large.get(tensor.name)) for tensor in proto.graph.initializer]
    del proto.graph.initializer[:]
    graph_head, graph_tail = _split(proto.graph, _INITIALIZER)
    proto.ClearField("graph")
    head, tail = _split(proto, _GRAPH)
    entries_bytes = sum(len(_tag(_INITIALIZER, item.size)) + item.size for item in initializers)
    sink(head + _tag(_GRAPH, len(graph_head) + entries_bytes + len(graph_tail)) + graph_head)
    for item in initializers:
        sink(_tag(_INITIALIZER, item.size))
        item.stream(sink)
    sink(graph_tail + tail)


class _Initializer:
    """One initializer as it is written: its message, in which the data of a large tensor is put."""

    def __init__(self, proto: onnx.TensorProto, large: ir.TensorProtocol | None) -> None:
        self._large = large
        self._head, self._tail = proto.SerializeToString(deterministic=True), b""
        if large is not None:
            proto.ClearField("external_data")
            proto.ClearField("data_location")
            self._head, self._tail = _split(proto, _RAW_DATA)
            self._head += _tag(_RAW_DATA, large.nbytes)
        self.size = len(self._head) + (large.nbytes if large is not None else 0) + len(self._tail)

    def stream(self, sink: Sink) -> None:
        sink(self._head)
        if self._large is not None:
            data = self._large.tobytes()
            if len(data) != self._large.nbytes:
                raise ValueError(f"the tensor {self._large.name} has {len(data)} bytes, not {self._large.nbytes}")
            sink(data)
            sink(self._tail)


def _without_large(model: ir.Model) -> tuple[ir.Model, Mapping[str, ir.TensorProtocol]]:
    """A copy of `model` whose large weights are said to be elsewhere, and those by name."""
    copy, large = model.clone(), dict[str, ir.TensorProtocol]()
    for name, value in copy.graph.initializers.items():
        tensor = value.const_value
        if tensor is not None and tensor.nbytes >= LARGE_BYTES and _has_raw_data(tensor):
            large[name] = tensor
            shell = ir.ExternalTensor(
                "elsewhere", None, None, tensor.dtype, shape=ir.Shape(tensor.shape.numpy()), name=name
            )
            shell.doc_string = tensor.doc_string
            shell.metadata_props.update(tensor.metadata_props)
            value.const_value = shell
    return copy, large


def _has_raw_data(tensor: ir.TensorProtocol) -> bool:
    """Whether a message of `tensor` holds its bytes as they are, and nothing that is written in their place."""
    if isinstance(tensor, ir.TensorProtoTensor):
        return bool(tensor.raw.HasField("raw_data")) and not tensor.raw.HasField("segment")
    return tensor.dtype != ir.DataType.STRING


def _split(message: Message, number: int) -> tuple[bytes, bytes]:
    """The bytes of the fields of `message` below `number`, and those of the fields above."""
    sides = []
    for above in (False, True):
        side = type(message)()
        side.CopyFrom(message)
        for field, _ in message.ListFields():
            if (field.number > number) != above:
                side.ClearField(field.name)
        sides.append(side.SerializeToString(deterministic=True))
    return sides[0], sides[1]


def _tag(number: int, size: int) -> bytes:
    """What stands before a field of `size` bytes."""
    return _varint(number << 3 | _BYTES_KIND) + _varint(size)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_shell(path: Path) -> onnx.ModelProto:
    """The ONNX in the file `path`, whose large weights are said to be in that file, where they are.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no ONNX, or is cut off.
    """
    pieces: list[bytes] = []
    with path.open("rb") as file, _mapped(file) as data:
        for number, start, inside, end in _fields(data, 0, len(data)):
            if number == _GRAPH:
                graph = b"".join(_graph_shell(data, inside, end, path.name))
                pieces += [_tag(_GRAPH, len(graph)), graph]
            else:
                pieces.append(data[start:end])
    return onnx.load_model_from_string(b"".join(pieces))


def _graph_shell(data: mmap.mmap, start: int, end: int, location: str) -> Iterator[bytes]:
    """A graph's bytes, its large initializers without theirs."""
    for number, begin, inside, stop in _fields(data, start, end):
        if number != _INITIALIZER or stop - inside < LARGE_BYTES:
            yield data[begin:stop]
            continue
        shell = _tensor_shell(data, inside, stop, location)
        yield _tag(_INITIALIZER, len(shell)) + shell


def _tensor_shell(data: mmap.mmap, start: int, end: int, location: str) -> bytes:
    pieces: list[bytes] = []
    for number, begin, inside, stop in _fields(data, start, end):
        if number != _RAW_DATA or stop - inside < LARGE_BYTES:
            pieces.append(data[begin:stop])
            continue
        where = onnx.TensorProto(data_location=onnx.TensorProto.EXTERNAL)
        for key, value in (("location", location), ("offset", str(inside)), ("length", str(stop - inside))):
            where.external_data.add(key=key, value=value)
        pieces.append(where.SerializeToString())
    return b"".join(pieces)


def _fields(data: mmap.mmap, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Of each field of the message in data[start:end]: its number, its start, the start of what it holds, its end."""
    at = start
    while at < end:
        key, inside = _read_varint(data, at, end)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            stop = _read_varint(data, inside, end)[1]
        elif kind == _BYTES_KIND:
            size, inside = _read_varint(data, inside, end)
            stop = inside + size
        elif kind in (_FIXED64, _FIXED32):
            stop = inside + (8 if kind == _FIXED64 else 4)
        else:
            raise ValueError(f"byte {at} begins no field")
        if stop > end:
            raise ValueError(f"the field at byte {at} is cut off")
        yield number, at, inside, stop
        at = stop


def _read_varint(data: mmap.mmap, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < _VARINT_BITS:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError(f"the number at byte {at} is cut off")


def _mapped(file: BinaryIO) -> mmap.mmap:
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
