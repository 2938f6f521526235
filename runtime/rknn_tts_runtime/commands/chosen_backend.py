"""Which backend a command runs engines on, and the options that say so.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import argparse
import platform
from pathlib import Path

from rknn_tts_runtime.backends.engine import Backend
from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.npu.api import CORE_MASKS, EVERY_CORE

NPU, TWINS = "librknnrt", "onnx"
"""The two backends by name."""

BOARD_MACHINES = ("aarch64", "armv7l", "armv8l")
"""What Linux calls the machines that have such an NPU (`uname -m`)."""

TWINS_NOTE = (
    "The engines' ONNX twins run in onnxruntime on this machine's CPU, in fp32: no NPU was used, and times are not a "
    "board's."
)


def add_backend_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose and set a backend."""
    parser.add_argument(
        "--backend",
        choices=[NPU, TWINS],
        help="what runs the engines: librknnrt, the NPU; onnx, their ONNX twins in onnxruntime "
        "(default: librknnrt on an Arm machine, onnx on any other)",
    )
    parser.add_argument("--library", type=Path, metavar="FILE", help="librknnrt.so (default: as the loader finds it)")
    parser.add_argument(
        "--core-mask",
        choices=tuple(CORE_MASKS),
        default=EVERY_CORE,
        help=f"NPU cores (default: {EVERY_CORE}); where the driver refuses, auto",
    )


def chosen_backend(arguments: argparse.Namespace, machine: str | None = None) -> Backend:
    """The backend that `arguments` ask for.

    Args:
        arguments: see `add_backend_arguments`.
        machine: what this machine is; None: as the system says.

    Raises:
        BadInput: a library is named for the twins.
        RunFault: the backend's library is not on this machine.
    """
    default = NPU if (machine or platform.machine()) in BOARD_MACHINES else TWINS
    if (arguments.backend or (NPU if arguments.library else default)) == TWINS:
        if arguments.library:
            raise BadInput(f"--library: is of the backend {NPU}; leave it or --backend {TWINS} out.")
        from rknn_tts_runtime.backends.twins import TwinBackend

        return TwinBackend()
    from rknn_tts_runtime.backends.npu import NpuBackend

    return NpuBackend(library=arguments.library, core_mask=arguments.core_mask)
