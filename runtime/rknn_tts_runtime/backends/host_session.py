"""An ONNX in onnxruntime: a voice's host half, or the twin of an engine.

onnxruntime is imported only where a file is opened, so that a board whose stages all run elsewhere needs none of it.

An ONNX may name other files that hold its weights. onnxruntime reads them wherever they are (measured on 1.23.2: a path
out of the folder, an absolute one and a symbolic link are read, and a marker that stands for an address in memory
crashes the process), so such a file is refused: what rknn-tts exports is whole in one file.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Mapping, NamedTuple, Sequence

import numpy as np

from rknn_tts_runtime.backends.engine import Array
from rknn_tts_runtime.faults import BadInput, RunFault

INSTALL = "pip install onnxruntime"
"""What brings onnxruntime; the runtime itself is in no package index, so its extra is nothing to name here."""

_DTYPES = {
    "tensor(float)": "float32", "tensor(double)": "float64", "tensor(float16)": "float16", "tensor(bool)": "bool",
    "tensor(int8)": "int8", "tensor(int16)": "int16", "tensor(int32)": "int32", "tensor(int64)": "int64",
    "tensor(uint8)": "uint8", "tensor(uint16)": "uint16", "tensor(uint32)": "uint32", "tensor(uint64)": "uint64",
}  # fmt: skip

_FATAL_ONLY = 4
"""onnxruntime's severity under which it prints nothing but what ends the process; what it raises is shown by us."""

_EXTERNAL, _BEFORE_EXTERNAL = b"location", (b"\x08", b"\x00")
"""The key of a tensor's file as it stands in an ONNX: its text, and the last byte of its length (8, or 0 where the
number is written longer than it need be). Protobuf has no other way to write it."""

_KEY_BYTES = 1 + len(_EXTERNAL)
_CHUNK_BYTES = 1 << 20
_STATUS = re.compile(r"\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : ")
_SHOWN_CHARS = 300


class HostTensor(NamedTuple):
    """Name, shape (None where an axis is free) and dtype of an input or output."""

    name: str
    shape: tuple[int | None, ...]
    dtype: str


class HostSession:
    """An ONNX that is loaded. Opened by `open_host`.

    Attributes:
        path: its file.
        inputs: what it takes, in order.
        outputs: what it gives, in order.
        metadata: its `metadata_props`.
    """

    def __init__(self, path: Path, session: Any, inputs: Sequence[HostTensor], outputs: Sequence[HostTensor]) -> None:
        self.path = path
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.metadata: Mapping[str, str] = dict(session.get_modelmeta().custom_metadata_map)
        self._session: Any = session

    def run(self, outputs: Sequence[str], feed: Mapping[str, Array]) -> dict[str, Array]:
        """One run.

        Args:
            outputs: names of what is wanted.
            feed: every input by name, of its dtype, and of its shape but for free axes.

        Returns:
            What is wanted by name, as onnxruntime gave it.

        Raises:
            BadInput: an input is missing, not known, or has another dtype or shape; an output is not known.
            RunFault: onnxruntime failed; or the session is closed.
        """
        if self._session is None:
            raise RunFault(f"{self.path}: is closed, and was run.")
        self._check_names(outputs, feed)
        for info in self.inputs:
            _check_tensor(self.path, info, np.asarray(feed[info.name]))
        try:
            values = self._session.run(list(outputs), {info.name: feed[info.name] for info in self.inputs})
        except Exception as error:  # onnxruntime's errors have no common base class
            raise RunFault(f"{self.path}: onnxruntime failed: {_sentence(error)}") from error
        return dict(zip(outputs, values))

    def close(self) -> None:
        """Give back what it holds; once more does nothing."""
        self._session = None

    def _check_names(self, outputs: Sequence[str], feed: Mapping[str, Array]) -> None:
        taken, given = [info.name for info in self.inputs], [info.name for info in self.outputs]
        for name in feed:
            if name not in taken:
                raise BadInput(f"{self.path}: has no input '{name}'; its inputs are {', '.join(taken) or 'none'}.")
        for name in taken:
            if name not in feed:
                raise BadInput(f"{self.path}: its input '{name}' is missing; its inputs are {', '.join(taken)}.")
        for name in outputs:
            if name not in given:
                raise BadInput(f"{self.path}: has no output '{name}'; its outputs are {', '.join(given) or 'none'}.")


def open_host(path: Path, threads: int | None = None) -> HostSession:
    """The ONNX in the file `path`, loaded to be run on the CPU.

    Args:
        path: the file.
        threads: of a run; None: as many as onnxruntime takes, one a core.

    Raises:
        BadInput: there is no such file, it is no ONNX that onnxruntime can load, it keeps weights in other files, or
            onnxruntime is not installed.
    """
    onnxruntime = imported_onnxruntime(str(path))
    _check_whole(path)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _FATAL_ONLY
    if threads is not None:
        options.intra_op_num_threads = threads
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors have no common base class
        raise BadInput(f"{path}: onnxruntime cannot load it: {_sentence(error)}") from error
    return HostSession(path, session, _tensors(path, session.get_inputs()), _tensors(path, session.get_outputs()))


def imported_onnxruntime(wanted: str) -> Any:
    """The module onnxruntime; `wanted` is what needs it.

    Raises:
        BadInput: it is not installed, or cannot be loaded on this machine.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise BadInput(f"{wanted}: runs in onnxruntime, which cannot be imported ({error}); {INSTALL}.") from error
    return onnxruntime


def _check_whole(path: Path) -> None:
    """Refuse a file that is not there, or that keeps weights in others."""
    kept = b""
    try:
        with path.open("rb") as file:
            while True:
                chunk = file.read(_CHUNK_BYTES)
                if not chunk:
                    return
                text = kept + chunk
                if _names_a_file(text):
                    raise BadInput(
                        f"{path}: keeps weights in other files, and those are not read here; "
                        "export it again, whole in one file."
                    )
                kept = text[-_KEY_BYTES:]
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror}).") from error


def _names_a_file(text: bytes) -> bool:
    """Whether the key of a tensor's file stands in `text`. Weights are searched at ten times a regular expression's
    speed, and a host half has up to 250 MB of them."""
    place = text.find(_EXTERNAL)
    while place >= 0:
        if text[max(0, place - 1) : place] in _BEFORE_EXTERNAL:
            return True
        place = text.find(_EXTERNAL, place + 1)
    return False


def _tensors(path: Path, arguments: Sequence[Any]) -> tuple[HostTensor, ...]:
    return tuple(_tensor(path, argument) for argument in arguments)


def _tensor(path: Path, argument: Any) -> HostTensor:
    dtype = _DTYPES.get(argument.type)
    if dtype is None:
        raise BadInput(f"{path}: its tensor '{argument.name}' is of the type {argument.type}, which is not known here.")
    shape = tuple(size if isinstance(size, int) and size >= 0 else None for size in argument.shape)
    return HostTensor(argument.name, shape, dtype)


def _check_tensor(path: Path, info: HostTensor, array: Array) -> None:
    if array.dtype != np.dtype(info.dtype):
        raise BadInput(f"{path}: its input '{info.name}' is of dtype {info.dtype}, not {array.dtype}.")
    fits = len(info.shape) == array.ndim and all(
        wanted is None or wanted == size for wanted, size in zip(info.shape, array.shape)
    )
    if not fits:
        wanted = ", ".join("any" if size is None else str(size) for size in info.shape)
        raise BadInput(f"{path}: its input '{info.name}' has the shape [{wanted}], not {list(array.shape)}.")


def _sentence(error: Exception) -> str:
    lines = [line.strip() for line in _STATUS.sub("", str(error)).splitlines() if line.strip()]
    first = lines[0] if lines else type(error).__name__
    return (first if len(first) <= _SHOWN_CHARS else first[:_SHOWN_CHARS] + "...").rstrip(".") + "."
