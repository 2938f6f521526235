"""One engine, loaded on the NPU: what the RKNN API does with it, call by call.

A context is not for two threads at once, and is destroyed whatever happens: the address space that it takes is the
process's.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import ctypes
import mmap
from contextlib import suppress
from pathlib import Path
from typing import Sequence, Tuple, TypeVar

import numpy as np

from rknn_tts_runtime.backends.engine import Array
from rknn_tts_runtime.faults import BadInput, RunFault
from rknn_tts_runtime.npu import api
from rknn_tts_runtime.npu.attributes import Attributes, Port, read_attributes
from rknn_tts_runtime.npu.failures import Versions, call_failure, told_versions
from rknn_tts_runtime.npu.library import Library

LARGEST_ENGINE = (1 << 32) - 1
"""Of an engine's file in bytes: `rknn_init` takes its size in 32 bits."""

MOST_TENSORS = 4096
"""Of inputs or outputs that are believed: the most known are 134 (CosyVoice2's flow)."""

_ROOM = 256
"""Bytes beyond a structure, for a library whose own has grown."""

_Fields = TypeVar("_Fields", bound=ctypes.Structure)

Filled = Sequence[Tuple[Port, Array]]
"""Tensors and their arrays, in any order."""


class InitRefused(Exception):
    """`rknn_init` returned `code`: nothing was loaded. Whoever knows the manifest says why."""

    def __init__(self, code: int) -> None:
        super().__init__(f"rknn_init returned {code}")
        self.code = code


class Context:
    """An `rknn_context`.

    Attributes:
        engine: its file.
        versions: of library and driver, as this context told them; they are for messages, so that one that does not
            tell them is none the worse.
    """

    def __init__(self, library: Library, engine: Path, flags: int = api.FLAG_DEFAULT) -> None:
        """Load the file `engine`.

        Raises:
            BadInput: the file cannot be read, is empty or too large.
            InitRefused: the library or the driver refused it.
        """
        self.engine = engine
        self.versions = Versions()
        self._library = library
        self._context = api.CONTEXT(0)
        code = _init(library, self._context, engine, flags)
        if code != api.CODE_SUCCESS:
            raise InitRefused(code)
        self._open = True
        with suppress(RunFault):
            told = self._query(api.QUERY_SDK_VERSION, api.SdkVersion)
            self.versions = Versions(_text(told.api_version) or None, _text(told.drv_version) or None)

    def close(self) -> None:
        """Destroy it; once more does nothing."""
        if self._open:
            self._open = False
            self._library.call("rknn_destroy", self._context)

    def attributes(self) -> tuple[tuple[Attributes, ...], tuple[Attributes, ...]]:
        """Its inputs and its outputs, as the library tells of them.

        Raises:
            RunFault: it does not tell, or of more than any engine has.
        """
        number = self._query(api.QUERY_IN_OUT_NUM, api.InputOutputNumber)
        if max(number.n_input, number.n_output) > MOST_TENSORS:
            raise RunFault(
                f"{self.engine}: the library tells of {number.n_input} inputs and {number.n_output} outputs, more than "
                f"any engine has: this librknnrt.so does not fit rknn-tts.{told_versions(self.versions)}"
            )
        return (
            tuple(self._attributes(api.QUERY_INPUT_ATTR, index) for index in range(number.n_input)),
            tuple(self._attributes(api.QUERY_OUTPUT_ATTR, index) for index in range(number.n_output)),
        )

    def custom_string(self) -> str:
        """What it carries as `custom_string`; empty where it carries none.

        Raises:
            RunFault: it does not tell.
        """
        return _text(self._query(api.QUERY_CUSTOM_STRING, api.CustomString).string)

    def memory(self) -> api.MemSize:
        """What it takes of memory.

        Raises:
            RunFault: it does not tell.
        """
        return self._query(api.QUERY_MEM_SIZE, api.MemSize)

    def grant_cores(self, mask: str) -> str:
        """Have it run on the cores `mask` (a key of `CORE_MASKS`); where that is refused, on those the driver picks.

        Returns:
            `mask`, or "auto": chips with one NPU core refuse any mask.
        """
        if self._library.call("rknn_set_core_mask", self._context, api.CORE_MASKS[mask]) == api.CODE_SUCCESS:
            return mask
        # Its code tells nothing more: auto is what a context starts with, and what is left.
        self._library.call("rknn_set_core_mask", self._context, api.CORE_MASKS[api.CORE_AUTO])
        return api.CORE_AUTO

    def set_inputs(self, inputs: Filled) -> None:
        """Hand the inputs over; the library converts and keeps them.

        Args:
            inputs: all inputs, each array as `Port.handed_over` gives it.

        Raises:
            RunFault: the library refused them.
        """
        records = (api.Input * len(inputs))()
        for record, (port, array) in zip(records, inputs):
            record.index, record.buf, record.size = port.number, array.ctypes.data, array.nbytes
            record.type, record.fmt, record.pass_through = port.type, port.format, 0
        self._checked("rknn_inputs_set", self._context, len(inputs), records)

    def run(self) -> None:
        """Run it over the inputs that were set.

        Raises:
            RunFault: it failed.
        """
        self._checked("rknn_run", self._context, None)

    def get_outputs(self, outputs: Filled) -> None:
        """Have the library write the outputs, as float32, straight into arrays of the caller.

        Args:
            outputs: all outputs, each array float32, of `Port.shape` and contiguous.

        Raises:
            RunFault: the library refused, or gave less than an output holds.
        """
        records = (api.Output * len(outputs))()
        for record, (port, array) in zip(records, outputs):
            record.index, record.buf, record.size = port.number, array.ctypes.data, array.nbytes
            record.want_float, record.is_prealloc = 1, 1
        self._checked("rknn_outputs_get", self._context, len(outputs), records, None)
        try:
            for record, (port, array) in zip(records, outputs):
                if record.size < array.nbytes:
                    raise RunFault(
                        f"{self.engine}: output '{port.info.name}' came with {record.size} bytes, {array.nbytes} were "
                        f"expected. Compile the engine again.{told_versions(self.versions)}"
                    )
        finally:
            self._library.call("rknn_outputs_release", self._context, len(outputs), records)

    def bind(self, port: Port, size: int) -> ctypes._Pointer[api.TensorMem]:
        """A buffer of `size` bytes that the NPU reads or writes in place of copies; see `zero_copy`.

        Raises:
            RunFault: there is no memory, or the library refused it.
        """
        memory = self._library.create_memory(self._context, size)
        if memory is None:
            raise call_failure(self.engine, "rknn_create_mem", api.CODE_MALLOC_FAIL, self.versions)
        if not memory.contents.virt_addr or memory.contents.size < size:  # nothing may be written there
            self.unbind(memory)
            raise RunFault(
                f"{self.engine}: the buffer of '{port.info.name}' is not one of {size} bytes that the CPU reaches; run "
                f"without zero-copy.{told_versions(self.versions)}"
            )
        attributes = api.TensorAttr.from_buffer_copy(port.raw)
        attributes.type, attributes.fmt, attributes.pass_through = port.type, port.format, 0
        try:
            self._checked("rknn_set_io_mem", self._context, memory, ctypes.byref(attributes))
        except RunFault:
            self.unbind(memory)
            raise
        return memory

    def unbind(self, memory: ctypes._Pointer[api.TensorMem]) -> None:
        """Give a buffer of `bind` back."""
        self._library.call("rknn_destroy_mem", self._context, memory)

    def sync(self, memory: ctypes._Pointer[api.TensorMem], direction: int) -> None:
        """Make what one of CPU and NPU wrote to a buffer of `bind` seen by the other.

        Raises:
            RunFault: the library refused.
        """
        self._checked("rknn_mem_sync", self._context, memory, direction)

    def _attributes(self, command: int, index: int) -> Attributes:
        return read_attributes(self._query(command, api.TensorAttr, index))

    def _query(self, command: int, structure: type[_Fields], index: int | None = None) -> _Fields:
        """What the library tells for `command`; once more with room to spare where its own structure is larger."""
        size = ctypes.sizeof(structure)
        code = api.CODE_PARAM_INVALID
        for told_size in (size, size + _ROOM):
            fields = structure.from_buffer(bytearray(size + _ROOM))
            if index is not None:
                fields.index = index
            code = self._library.call("rknn_query", self._context, command, ctypes.addressof(fields), told_size)
            if code == api.CODE_SUCCESS:
                return fields
            if code != api.CODE_PARAM_INVALID:
                break
        raise call_failure(self.engine, f"rknn_query({api.QUERY_NAMES[command]})", code, self.versions)

    def _checked(self, name: str, *arguments: object) -> None:
        code = self._library.call(name, *arguments)
        if code != api.CODE_SUCCESS:
            raise call_failure(self.engine, name, code, self.versions)


def _init(library: Library, context: ctypes.c_uint64 | ctypes.c_uint32, engine: Path, flags: int) -> int:
    """What `rknn_init` returns for the file `engine`; it copies what it keeps."""
    try:
        size = engine.stat().st_size
        if not 0 < size <= LARGEST_ENGINE:
            raise BadInput(f"{engine}: has {size} bytes, and is no engine: those have 1 to {LARGEST_ENGINE}.")
        # A private mapping: the library may write to what it is handed, and the file stays as it is.
        with engine.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as data:
            held = np.frombuffer(data, np.uint8)
            try:
                return library.call("rknn_init", ctypes.byref(context), held.ctypes.data, len(data), flags, None)
            finally:
                del held  # or the mapping could not be closed
    except OSError as error:
        raise BadInput(f"{engine}: cannot be read ({error.strerror}); copy it beside its manifest.") from error


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace").strip()
