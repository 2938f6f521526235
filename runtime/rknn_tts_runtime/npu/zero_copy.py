"""Inputs and outputs in buffers that the NPU reaches itself, set once instead of handed over in each run.

What the API allows (vendor's manual, `rknn_set_io_mem`; its demonstration reads float32 outputs so): the buffer's type
and format are set in the tensor's attributes, with `pass_through` 0 the runtime converts from them. So these buffers
hold what `attributes.Port` hands over, float32 and int64, and a run saves the library's own staging. Rows that the NPU
wants padded (`w_stride`) are not written here: such an engine is refused, and runs without zero-copy.

Not measured on a board, and off by default.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import ctypes
from typing import Sequence

from rknn_tts_runtime.faults import RunFault
from rknn_tts_runtime.npu import api
from rknn_tts_runtime.npu.attributes import Port
from rknn_tts_runtime.npu.context import Context, Filled

_WIDTH_AXIS = 2
"""Of NHWC."""


class BoundTensors:
    """The buffers of one context."""

    def __init__(self, context: Context, inputs: Sequence[Port], outputs: Sequence[Port]) -> None:
        """Make and bind them.

        Raises:
            RunFault: there is no memory for one, the library refused it, or its rows are padded.
        """
        self._context = context
        self._memories: dict[str, ctypes._Pointer[api.TensorMem]] = {}
        try:
            for port in inputs:
                _check_rows(context, port)
            for kind, ports in (("in", inputs), ("out", outputs)):
                for port in ports:
                    self._memories[f"{kind} {port.number}"] = context.bind(port, port.nbytes)
        except RunFault:
            self.close()
            raise

    def run(self, inputs: Filled, outputs: Filled) -> None:
        """One run, from `inputs` into `outputs`; see `Context.set_inputs` and `Context.get_outputs`.

        Raises:
            RunFault: it failed.
        """
        for port, array in inputs:
            memory = self._memories[f"in {port.number}"]
            ctypes.memmove(memory.contents.virt_addr or 0, array.ctypes.data, array.nbytes)
            self._context.sync(memory, api.SYNC_TO_DEVICE)
        self._context.run()
        for port, array in outputs:
            memory = self._memories[f"out {port.number}"]
            self._context.sync(memory, api.SYNC_FROM_DEVICE)
            ctypes.memmove(array.ctypes.data, memory.contents.virt_addr or 0, array.nbytes)

    def close(self) -> None:
        """Give all of them back; once more does nothing."""
        while self._memories:
            self._context.unbind(self._memories.popitem()[1])


def _check_rows(context: Context, port: Port) -> None:
    width = port.shape[_WIDTH_AXIS] if port.turned else 0
    if width and port.raw.w_stride not in (0, width):
        raise RunFault(
            f"{context.engine}: zero-copy: the rows of input '{port.info.name}' are padded from {width} to "
            f"{port.raw.w_stride}, which rknn-tts does not write; run without zero-copy."
        )
