"""Reading an ONNX file that nobody vouches for.

Nothing in it is executed. External data is read only from inside the model's own folder, and only where it exists in
full.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import onnx_ir as ir
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # protobuf ships no types

from contracts.errors import Refusal, UserInput
from converters.onnx_faults import sort_or_fault

_LOCATION = b"\x0a\x08location"
"""How the key of an external tensor's file stands in the bytes of a model: field 1, 8 bytes long."""


def read_onnx(path: Path) -> ir.Model:
    """The model in the file `path`; its external tensors are checked and stay on disk until they are used.

    Raises:
        UserInput: no such file, not readable, or no valid ONNX (truncated, damaged, another format).
        Refusal: external data is missing, shorter than stated, or outside the model's folder.
    """
    if not path.exists():
        raise UserInput(f"{path}: there is no such file.")
    if path.is_dir():
        raise UserInput(f"{path}: is a folder, an .onnx file is expected.")
    try:
        with _quiet():
            model = ir.load(path)
    except OSError as error:
        raise UserInput(f"{path}: cannot be read ({error.strerror or error}).") from error
    except (DecodeError, ValueError, TypeError, KeyError, AttributeError, RuntimeError, NotImplementedError) as error:
        raise UserInput(f"{path}: is not an ONNX model, or is cut off: {_first_line(error)}.") from error
    if model.graph.num_nodes() == 0 and not model.graph.inputs and not model.graph.outputs:
        raise UserInput(f"{path}: is not an ONNX model, or is cut off: it holds no graph.")
    if "" not in model.opset_imports:
        raise UserInput(f"{path}: is not an ONNX model, or is cut off: it states no opset.")
    if fault := sort_or_fault(model):
        raise UserInput(f"{path}: is damaged, or is not valid ONNX: {fault}.")
    for tensor in _external_tensors(model):
        _check_external(path, tensor)
    return model


def external_files(path: Path) -> tuple[Path, ...]:
    """The files that hold external data of the ONNX `path`; only where there are any is the graph read.

    Raises:
        UserInput, Refusal: see `read_onnx`.
    """
    if _LOCATION not in path.read_bytes():
        return ()
    return tuple(sorted({path.parent / str(tensor.location) for tensor in _external_tensors(read_onnx(path))}))


def _external_tensors(model: ir.Model) -> list[ir.ExternalTensor]:
    graphs = [*model.graphs(), *(graph for function in model.functions.values() for graph in function.subgraphs())]
    held: list[object] = [value.const_value for graph in graphs for value in graph.initializers.values()]
    nodes = [
        *model.graph.all_nodes(),
        *(node for function in model.functions.values() for node in function.all_nodes()),
    ]
    for attribute in (attribute for node in nodes for attribute in node.attributes.values()):
        held += attribute.as_tensors() if attribute.type == ir.AttributeType.TENSORS else [attribute.value]
    return [tensor for tensor in held if isinstance(tensor, ir.ExternalTensor)]


def _check_external(path: Path, tensor: ir.ExternalTensor) -> None:
    # Beside the name we were given, as every reader looks for it, though that may be a link to a model elsewhere.
    folder, location = path.parent, Path(str(tensor.location))
    target = folder / location
    if location.is_absolute() or not target.resolve().is_relative_to(folder.resolve()):
        raise Refusal(
            f"{path}: the tensor {tensor.name} keeps its data in {location}, outside the model's folder; "
            "external data is read only from inside it. Move the data there and save the model again."
        )
    if not target.is_file():
        raise Refusal(
            f"{path}: the external data file {location} of the tensor {tensor.name} is missing; "
            "put it beside the model."
        )
    length = tensor.nbytes if tensor.length is None else tensor.length
    if length < tensor.nbytes:
        raise Refusal(
            f"{path}: the tensor {tensor.name} of {tensor.nbytes} bytes states a length of {length} bytes in the "
            f"external data file {location}."
        )
    needed = (tensor.offset or 0) + length
    if target.stat().st_size < needed:
        raise Refusal(
            f"{path}: the external data file {location} is cut off: the tensor {tensor.name} needs {needed} bytes "
            f"of it, it has {target.stat().st_size}."
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


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")[:200]
