"""Reading an ONNX file that nobody vouches for.

Nothing in it is executed. External data is read only from inside the model's own folder, and only where it exists in
full.
"""

from __future__ import annotations

import logging
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # protobuf ships no types

from contracts.errors import Refusal, UserInput
from converters.large_onnx import read_shell
from converters.onnx_faults import sort_or_fault
from converters.onnx_protos import DEFAULT_DOMAIN_ALIAS, normalise_proto, proto_fault, sparse_tensor

MESSAGE_LIMIT_BYTES = 1 << 31
"""Of a protobuf message, and so of an ONNX without its external data (protobuf's documentation)."""

IN_PLACE_BYTES = 1 << 27
"""From this size on, reading a file in place spares something: as `gates.session.SHARED_BYTES`."""

DATA_LIMIT_BYTES = 1 << 34
"""Of a file with external data: eight times what an engine's weights can come to. Its digest takes a second a GB."""

_LOCATION = b"\x0a\x08location"
"""How the key of an external tensor's file stands in the bytes of a model: field 1, 8 bytes long."""


def read_onnx(path: Path, *, in_place: bool = False) -> ir.Model:
    """The model in the file `path`; its external tensors are checked and stay on disk until they are used.

    Args:
        path: the file.
        in_place: whether the large tensors of a large file of ours, which nobody else changes, do so too.

    Raises:
        UserInput: no such file, not readable, or no valid ONNX (truncated, damaged, another format).
        Refusal: external data is missing, of another size than stated, or outside the model's folder; a tensor is
            sparse.
    """
    proto = _read_proto(path, in_place)
    if fault := proto_fault(proto):
        raise _damaged(path, fault)
    normalise_proto(proto)
    if (sparse := sparse_tensor(proto)) is not None:
        raise Refusal(f"{path}: the tensor {sparse} is kept sparse, which is not supported; save it dense.")
    try:
        with _quiet():
            model = ir.from_proto(proto)
    except (ValueError, TypeError, KeyError, AttributeError, RuntimeError, NotImplementedError) as error:
        raise _damaged(path, _first_line(error)) from error
    if fault := sort_or_fault(model):
        raise _damaged(path, fault)
    for tensor in _external_tensors(model):
        tensor.base_dir = path.parent
        _check_external(path, tensor)
    return model


def load_external(model: ir.Model) -> None:
    """Take the external data of `model` into memory, in place: weights, and tensors that nodes hold, functions' too."""
    load = ir.external_data.convert_tensors_from_external
    for graph in _graphs(model):
        for value in graph.initializers.values():
            if isinstance(value.const_value, ir.ExternalTensor):
                (value.const_value,) = load([value.const_value])
    for node in _nodes(model):
        for name, attribute in list(node.attributes.items()):
            if attribute.type == ir.AttributeType.TENSOR and isinstance(attribute.value, ir.ExternalTensor):
                node.attributes[name] = ir.AttrTensor(name, load([attribute.value])[0])
            elif attribute.type == ir.AttributeType.TENSORS:
                held = attribute.as_tensors()
                loaded = [load([tensor])[0] if isinstance(tensor, ir.ExternalTensor) else tensor for tensor in held]
                node.attributes[name] = ir.AttrTensors(name, loaded)


def external_files(path: Path) -> tuple[Path, ...]:
    """The files that hold external data of the ONNX `path`; only where there are any is the graph read.

    Raises:
        UserInput, Refusal: see `read_onnx`.
    """
    if _LOCATION not in _read_bytes(path):
        return ()
    return tuple(sorted({path.parent / str(tensor.location) for tensor in _external_tensors(read_onnx(path))}))


def _read_bytes(path: Path) -> bytes:
    """The bytes of a file that may be an ONNX: what is none by its kind or its size is not read."""
    _check_kind(path)
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserInput(f"{path}: cannot be read ({error.strerror or error}).") from error


def _check_kind(path: Path) -> None:
    """See that `path` may be an ONNX by its kind and its size.

    Raises:
        UserInput: it is none.
    """
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise UserInput(f"{path}: is a folder, an .onnx file is expected.")
        if not stat.S_ISREG(status.st_mode):  # reading a pipe or a device need not end
            raise UserInput(f"{path}: is no regular file, an .onnx file is expected.")
        if status.st_size >= MESSAGE_LIMIT_BYTES:
            raise UserInput(
                f"{path}: is not an ONNX model: it has {status.st_size / 1e9:.1f} GB, and one file holds "
                f"{MESSAGE_LIMIT_BYTES / 1e9:.1f} GB at most; a larger model keeps its weights in external data."
            )
    except FileNotFoundError as error:
        raise UserInput(f"{path}: there is no such file.") from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise UserInput(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error}).") from error


def _read_proto(path: Path, in_place: bool) -> onnx.ModelProto:
    try:
        proto = _shell(path) if in_place and _is_large(path) else onnx.load_model_from_string(_read_bytes(path))
    except (DecodeError, ValueError, RuntimeError) as error:
        raise UserInput(f"{path}: is not an ONNX model, or is cut off: {_first_line(error)}.") from error
    graph = proto.graph
    if not (graph.node or graph.input or graph.output):
        raise UserInput(f"{path}: is not an ONNX model, or is cut off: it holds no graph.")
    if not any(entry.domain in ("", DEFAULT_DOMAIN_ALIAS) for entry in proto.opset_import):
        raise UserInput(f"{path}: is not an ONNX model, or is cut off: it states no opset.")
    return proto


def _is_large(path: Path) -> bool:
    try:
        return path.stat().st_size >= IN_PLACE_BYTES
    except OSError:  # told where it is read
        return False


def _shell(path: Path) -> onnx.ModelProto:
    _check_kind(path)
    try:
        return read_shell(path)
    except OSError as error:
        raise UserInput(f"{path}: cannot be read ({error.strerror or error}).") from error


def _damaged(path: Path, fault: str) -> UserInput:
    return UserInput(f"{path}: is damaged, or is not valid ONNX: {fault}.")


def _graphs(model: ir.Model) -> list[ir.Graph]:
    return [*model.graphs(), *(graph for function in model.functions.values() for graph in function.subgraphs())]


def _nodes(model: ir.Model) -> list[ir.Node]:
    return [*model.graph.all_nodes(), *(node for f in model.functions.values() for node in f.all_nodes())]


def _external_tensors(model: ir.Model) -> list[ir.ExternalTensor]:
    held: list[object] = [value.const_value for graph in _graphs(model) for value in graph.initializers.values()]
    for attribute in (attribute for node in _nodes(model) for attribute in node.attributes.values()):
        held += attribute.as_tensors() if attribute.type == ir.AttributeType.TENSORS else [attribute.value]
    return [tensor for tensor in held if isinstance(tensor, ir.ExternalTensor)]


def _check_external(path: Path, tensor: ir.ExternalTensor) -> None:
    # Beside the name we were given, as every reader looks for it, though that may be a link to a model elsewhere.
    folder, location = path.parent, Path(str(tensor.location))
    target = folder / location
    shown = f"{str(location)!s:.200}"
    try:
        inside = not location.is_absolute() and target.resolve().is_relative_to(folder.resolve())
        found, size_bytes = target.is_file(), target.stat().st_size if target.is_file() else 0
    except (OSError, ValueError, RuntimeError) as error:  # too long, with a NUL, links in a circle
        raise Refusal(
            f"{path}: the external data file {shown} of the tensor {tensor.name} cannot be read ({error!s:.200})."
        ) from error
    if not inside:
        raise Refusal(
            f"{path}: the tensor {tensor.name} keeps its data in {shown}, outside the model's folder; "
            "external data is read only from inside it. Move the data there and save the model again."
        )
    if not found and target.exists():
        kind = "a folder" if target.is_dir() else "no regular file"  # reading a pipe or a device need not end
        raise Refusal(
            f"{path}: the external data file {shown} of the tensor {tensor.name} is {kind}; put the file with the "
            "model's data in its place."
        )
    if not found:
        raise Refusal(
            f"{path}: the external data file {shown} of the tensor {tensor.name} is missing; put it beside the model."
        )
    if size_bytes > DATA_LIMIT_BYTES:
        raise Refusal(
            f"{path}: the external data file {shown} has {size_bytes / 1e9:.1f} GB, more than the "
            f"{DATA_LIMIT_BYTES / 1e9:.1f} GB that one may have; save the model with data of its own."
        )
    length = tensor.nbytes if tensor.length is None else tensor.length
    if length != tensor.nbytes:
        raise Refusal(
            f"{path}: the tensor {tensor.name} of {tensor.nbytes} bytes states a length of {length} bytes in the "
            f"external data file {shown}."
        )
    needed = (tensor.offset or 0) + length
    if size_bytes < needed:
        raise Refusal(
            f"{path}: the external data file {shown} is cut off: the tensor {tensor.name} needs {needed} bytes "
            f"of it, it has {size_bytes}."
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """onnx-ir warns on standard error of faults that are refused here."""
    logger = logging.getLogger("onnx_ir")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _first_line(error: BaseException) -> str:
    while isinstance(error, ir.serde.SerdeError) and error.__cause__ is not None:  # tells only the way to the fault
        error = error.__cause__
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")[:200]
