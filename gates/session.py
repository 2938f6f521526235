"""The one way gates run graphs: onnxruntime on the CPU, in fp32, unoptimised, quiet and repeatable.

Graph optimisation is off, so that what is measured is the graph and not onnxruntime's own rewrites. Results
depend on the number of threads (measured: one and two threads differ in the last bits on the Piper decoder), so that
number is fixed rather than taken from the machine. Only what is timed runs otherwise: as fast as
onnxruntime can.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
from numpy.typing import NDArray
from onnxruntime.capi import onnxruntime_pybind11_state as ort_state

from contracts.errors import Refusal, ToolFailure, UserInput

Array = NDArray[Any]
Feeds = Mapping[str, Array]
Model = bytes | Path | onnx.ModelProto | ir.Model
"""A graph as a gate takes it. Only a path or an `ir.Model` can have external data or more than 2 GiB of weights."""

THREADS = 2
"""Threads of a run: a fixed number, because results depend on it; two are what the smallest CI machine has."""

FATAL_ONLY = 4
"""onnxruntime's severity under which it prints nothing but what ends the process."""

IN_MEMORY_BYTES = 1 << 30
"""Weights past this size that are not lent go to onnxruntime through a file. A protobuf message ends at 2 GiB
(protobuf, Limits); half of that, for the message also holds what is not counted here: nodes, and the tensors in their
attributes."""

SHARED_BYTES = 1 << 27
"""From this size on, weights are lent to onnxruntime rather than written into a message or a file that it parses: of
422 MB, 0.7 s of CPU instead of 2.2 s a session, and no copy of them in between (measured, Qwen3's step). Those in a
file are read where they are, if they lie where a float may."""

UNCOPIED_BYTES = 1 << 30
"""From this size on, onnxruntime computes with what it is lent, and makes no copy of it, nor one in another order for
its products, whose sums it then adds up in other parts: of 1.3 GB, two sessions would hold 2.7 more (measured)."""

_LENT_BYTES = 1 << 16
"""Least size of a weight that is lent; what is smaller (the shapes of Reshapes) is read where a graph is loaded."""

_DTYPES: Mapping[str, str] = {
    "tensor(float)": "float32", "tensor(double)": "float64", "tensor(float16)": "float16", "tensor(bool)": "bool",
    "tensor(int8)": "int8", "tensor(int16)": "int16", "tensor(int32)": "int32", "tensor(int64)": "int64",
    "tensor(uint8)": "uint8", "tensor(uint16)": "uint16", "tensor(uint32)": "uint32", "tensor(uint64)": "uint64",
    "tensor(string)": "object",
}  # fmt: skip

_ORT_ERRORS: tuple[type[Exception], ...] = (
    *(kind for kind in vars(ort_state).values() if isinstance(kind, type) and issubclass(kind, Exception)),
    RuntimeError,
    MemoryError,
)
"""What onnxruntime raises: its status codes have no common base class, and C++ exceptions arrive as RuntimeError."""

_LOAD_ERRORS: tuple[type[Exception], ...] = (*_ORT_ERRORS, OSError, ValueError)
"""Loading also reads weights from files."""

_BRACKETED = r"\((?:[^()]|\([^()]*\))*\)"
_SOURCE_PLACE = re.compile(
    r"/\S+\.(?:cc|cpp|h|hpp):\d+ [^(\n]*" + _BRACKETED + r"(?: const)?(?:::<lambda" + _BRACKETED + r">)?"
    r"(?: \[with [^\]]*\])?:? ?"  # a path is followed by a whole signature, a bare name by the function's name
    r"|(?<!\S)[\w.-]+\.(?:cc|cpp|h|hpp):\d+ (?:operator\(\)|~?\w+)(?=[:\s]|$):? ?"
)
_STATUS = re.compile(r"\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : ")
_BULLET = re.compile(r"\s*\n\s*(?:\* )?")

_UNKNOWN = re.compile("^Could not find an implementation for |official support for domain ai.onnx is till")

NO_KERNEL = (
    "onnxruntime has no kernel for the types or the version of that operator, so nothing can be compared: export the "
    "model in float32, and with opset 19 or below"
)


class Session:
    """A loaded graph that can be run many times.

    Attributes:
        inputs: names of the inputs, in order.
        outputs: names of the outputs, in order.
    """

    def __init__(
        self, model: Model, name: str | None = None, *, fast_on: int | None = None, in_order: bool = False
    ) -> None:
        """Load `model`.

        Args:
            model: the graph.
            name: what messages call it, by default its path or "the graph".
            fast_on: to time it, on so many threads and with every optimisation that onnxruntime has; None: as gates do.
            in_order: whether nodes run in the order in which the graph has them, as far as that is up to us;
                onnxruntime's own begins at the outputs.

        Raises:
            Refusal: onnxruntime cannot load the graph, or its external weights cannot be read.
        """
        self._name = name or (str(model) if isinstance(model, Path) else "the graph")
        try:
            options = _options() if fast_on is None else _fast_options(fast_on)
            if in_order:
                options.execution_order = onnxruntime.ExecutionOrder.PRIORITY_BASED
            self._session, self._lent = _load(model, options)
        except _LOAD_ERRORS as error:
            raise Refusal(f"{self._name}: onnxruntime cannot load it: {_sentence(error)}") from error
        self._specs = {spec.name: spec for spec in self._session.get_inputs()}
        self.inputs = tuple(self._specs)
        self.outputs = tuple(spec.name for spec in self._session.get_outputs())

    def run(self, feeds: Feeds) -> dict[str, Array]:
        """Run the graph once.

        Args:
            feeds: every input by name, with the shape and dtype that the graph declares.

        Returns:
            Every output by name.

        Raises:
            UserInput: an input is missing, unknown, or has another shape or dtype.
            ToolFailure: onnxruntime failed while running.
        """
        self._check(feeds)
        options = onnxruntime.RunOptions()
        options.log_severity_level = FATAL_ONLY
        try:
            values = self._session.run(list(self.outputs), {name: feeds[name] for name in self.inputs}, options)
        except _ORT_ERRORS as error:
            raise ToolFailure(f"{self._name}: onnxruntime failed: {_sentence(error)}") from error
        return dict(zip(self.outputs, values, strict=True))

    def _check(self, feeds: Feeds) -> None:
        names = ", ".join(self.inputs) or "none"
        for name in feeds:
            if name not in self._specs:
                raise UserInput(f"{self._name}: there is no input '{name}'; its inputs are {names}.")
        for name, spec in self._specs.items():
            if name not in feeds:
                raise UserInput(f"{self._name}: the input '{name}' is missing; its inputs are {names}.")
            _check_input(self._name, spec, np.asarray(feeds[name]))


def _options() -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = THREADS
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = FATAL_ONLY
    # Waiting threads would burn a core of a machine that also compiles.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


def _fast_options(threads: int) -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads = threads
    options.log_severity_level = FATAL_ONLY
    return options


_Lent = dict[str, onnxruntime.OrtValue]
"""Weights that a session reads where they are, as long as it lives, by name."""


def _load(model: Model, options: onnxruntime.SessionOptions) -> tuple[onnxruntime.InferenceSession, _Lent]:
    lent: _Lent = {}

    def session(source: str | bytes) -> tuple[onnxruntime.InferenceSession, _Lent]:
        return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"]), lent

    if isinstance(model, Path):
        return session(str(model))
    if isinstance(model, bytes):
        return session(model)
    if isinstance(model, onnx.ModelProto):
        return session(model.SerializeToString())
    tensors = [value.const_value for value in model.graph.initializers.values() if value.const_value is not None]
    light = _without_files(model)
    if sum(tensor.nbytes for tensor in tensors) >= SHARED_BYTES:
        light, lent = _without_large_weights(light)
    left = [v.const_value for n, v in light.graph.initializers.items() if v.const_value is not None and n not in lent]
    if sum(tensor.nbytes for tensor in left) < IN_MEMORY_BYTES:
        timed = options.graph_optimization_level != onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        if sum(tensor.nbytes for tensor in tensors) >= UNCOPIED_BYTES and not timed:
            options.add_session_config_entry("session.disable_prepacking", "1")
            for name, value in lent.items():
                options.add_initializer(name, value)
        elif lent:
            options.add_external_initializers(list(lent), list(lent.values()))
        return session(ir.serde.serialize_model(light).SerializeToString())
    lent.clear()
    with tempfile.TemporaryDirectory(prefix="rknn-tts-") as folder:
        path = Path(folder) / "model.onnx"
        ir.save(_without_files(model), path, external_data="weights.data")
        return session(str(path))


def _without_files(model: ir.Model) -> ir.Model:
    """`model`, or where weights of it are in files, a copy whose weights are views of these.

    What onnx-ir does with tensors in files when it saves a model closes the files, and fails where somebody looks at
    one of the tensors: who found a checkpoint's weights in the graph.
    """
    if not any(isinstance(value.const_value, ir.ExternalTensor) for value in _weights(model)):
        return model
    copy = model.clone()
    for value in _weights(copy):
        if isinstance(held := value.const_value, ir.ExternalTensor):
            value.const_value = ir.Tensor(held.numpy(), held.dtype, shape=ir.Shape(held.shape.numpy()), name=held.name)
    return copy


def _weights(model: ir.Model) -> list[ir.Value]:
    return [value for graph in model.graphs() for value in graph.initializers.values()]


def _without_large_weights(model: ir.Model) -> tuple[ir.Model, _Lent]:
    """A copy of `model` whose large float32 weights are said to be elsewhere, and those."""
    copy, lent = model.clone(), _Lent()
    for name, value in copy.graph.initializers.items():
        tensor = value.const_value
        if tensor is None or tensor.dtype != ir.DataType.FLOAT or tensor.nbytes < _LENT_BYTES:
            continue
        array = np.require(tensor.numpy(), requirements=("C", "A"))  # a weight in a file may lie at any byte
        lent[name] = onnxruntime.OrtValue.ortvalue_from_numpy(array)
        shape = ir.Shape(tensor.shape.numpy())
        value.const_value = ir.ExternalTensor("lent", 0, tensor.nbytes, tensor.dtype, shape=shape, name=name)
    return copy, lent


def _check_input(where: str, spec: Any, array: Array) -> None:
    expected = _DTYPES.get(spec.type, spec.type)
    if array.dtype.name != expected:
        raise UserInput(f"{where}: the input '{spec.name}' needs {expected} values, not {array.dtype.name}.")
    fits = array.ndim == len(spec.shape) and all(
        not isinstance(wanted, int) or wanted == got for wanted, got in zip(spec.shape, array.shape, strict=True)
    )
    if spec.shape and not fits:  # none is rank 0 or a shape that is not stated; which, only onnxruntime knows
        wanted = [size if isinstance(size, (int, str)) else "?" for size in spec.shape]
        raise UserInput(f"{where}: the input '{spec.name}' needs the shape {wanted}, not {list(array.shape)}.")


def _sentence(error: BaseException) -> str:
    text = _SOURCE_PLACE.sub("", _STATUS.sub("", str(error).strip())).strip()
    lines = text.split("\n", 1)
    if lines[0].rstrip().endswith(":"):  # what follows belongs to it: a list of what is supported
        lines = [_BULLET.sub(" ", text)]
    sentence = (lines[0].strip() or type(error).__name__).removesuffix(".")
    return f"{sentence}. {NO_KERNEL}." if _UNKNOWN.search(sentence) else f"{sentence}."
