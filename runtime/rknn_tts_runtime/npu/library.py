"""`librknnrt.so`, found, loaded and its functions bound.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import re
from pathlib import Path
from typing import Callable

from rknn_tts_runtime.faults import BadInput, RunFault
from rknn_tts_runtime.npu import api

NAMES = ("librknnrt.so", "/usr/lib/librknnrt.so")
"""As the loader finds it, and where the vendor's script installs it (reference, "Requirements")."""

_ELF_MACHINES = {3: "i386", 40: "arm", 62: "x86_64", 183: "aarch64"}
"""`e_machine` of an ELF header (ELF specification; the machines that one meets)."""

_ELF_BYTES = 20
"""Of the header, up to and with `e_machine` at 18."""

_VERSION_MARK = b"librknnrt version: "
"""Stands before the library's own version in its file, as it logs it when a model is loaded."""

_VERSION_BYTES = 160
"""More than any has: "2.3.2 (429f97ae6b@2025-04-09T09:09:27)"."""

_VERSION = re.compile(rb"\d[\w.+-]{0,40}( \([\w@:+.-]{1,80}\))?")

_CONTEXT_P, _TENSOR_MEM_P = ctypes.POINTER(api.CONTEXT), ctypes.POINTER(api.TensorMem)

_REQUIRED: dict[str, tuple[object, ...]] = {
    "rknn_init": (_CONTEXT_P, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.POINTER(api.InitExtend)),
    "rknn_destroy": (api.CONTEXT,),
    "rknn_query": (api.CONTEXT, ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32),
    "rknn_inputs_set": (api.CONTEXT, ctypes.c_uint32, ctypes.POINTER(api.Input)),
    "rknn_run": (api.CONTEXT, ctypes.POINTER(api.RunExtend)),
    "rknn_outputs_get": (
        api.CONTEXT,
        ctypes.c_uint32,
        ctypes.POINTER(api.Output),
        ctypes.POINTER(api.OutputExtend),
    ),
    "rknn_outputs_release": (api.CONTEXT, ctypes.c_uint32, ctypes.POINTER(api.Output)),
    "rknn_set_core_mask": (api.CONTEXT, ctypes.c_int),
}
"""What every run needs, with the types of the arguments. All return an int.

`rknn_dup_context` is not among them, on purpose: the reference ran windows on duplicated contexts and got -7 dB at
twice the loudness, for they share the runtime's staging of tensors ("NPU core use").
"""

_ZERO_COPY: dict[str, tuple[object, ...]] = {
    "rknn_create_mem": (api.CONTEXT, ctypes.c_uint32),
    "rknn_destroy_mem": (api.CONTEXT, _TENSOR_MEM_P),
    "rknn_set_io_mem": (api.CONTEXT, _TENSOR_MEM_P, ctypes.POINTER(api.TensorAttr)),
    "rknn_mem_sync": (api.CONTEXT, _TENSOR_MEM_P, ctypes.c_int),
}
"""What zero-copy needs besides; `rknn_mem_sync` came with 1.6."""


class Library:
    """The loaded library.

    Attributes:
        path: its file; the name that it was loaded by where the system does not tell.
        file_version: the version that its file names; None where it names none.
    """

    def __init__(self, path: Path | None = None) -> None:
        """Load `path`, or the library that the loader finds.

        Raises:
            BadInput: there is no file `path`.
            RunFault: none is found, it is for another machine, or lacks functions.
        """
        self._handle = _loaded(path)
        self.path = _path_of(self._handle._name)
        self.file_version = version_in(self.path)
        missing = [name for name in _REQUIRED if not hasattr(self._handle, name)]
        if missing:
            raise RunFault(
                f"{self.path}{_as_version(self.file_version)}: has no {', '.join(missing)}; it is too old, or not "
                f"Rockchip's runtime. Install librknnrt.so of the toolkit that compiled the engines (2.x)."
            )
        self._bound = {name: self._function(name, arguments) for name, arguments in _REQUIRED.items()}

    def call(self, name: str, *arguments: object) -> int:
        """What the function `name` of the API returns for `arguments`; see `_REQUIRED`."""
        return self._bound[name](*arguments)

    def bind_zero_copy(self) -> None:
        """Make the functions that zero-copy needs callable.

        Raises:
            RunFault: the library lacks one.
        """
        missing = [name for name in _ZERO_COPY if not hasattr(self._handle, name)]
        if missing:
            raise RunFault(
                f"{self.path}{_as_version(self.file_version)}: has no {', '.join(missing)}; zero-copy needs a newer "
                "librknnrt.so, run without it."
            )
        for name, arguments in _ZERO_COPY.items():
            self._bound[name] = self._function(name, arguments)
        self._handle.rknn_create_mem.restype = _TENSOR_MEM_P

    def create_memory(self, context: ctypes._SimpleCData[int], size: int) -> ctypes._Pointer[api.TensorMem] | None:
        """A buffer of `size` bytes that the NPU can reach; None where there is none. After `bind_zero_copy`."""
        memory = self._handle.rknn_create_mem(context, size)
        return memory or None

    def _function(self, name: str, arguments: tuple[object, ...]) -> Callable[..., int]:
        function = getattr(self._handle, name)
        function.argtypes, function.restype = list(arguments), ctypes.c_int
        bound: Callable[..., int] = function
        return bound


def version_in(path: Path) -> str | None:
    """The version that the library's file `path` names: known before any engine is loaded, and where none can be.

    Returns:
        "2.3.2 (429f97ae6b@2025-04-09T09:09:27)", or as much of it as stands there; None where nothing does.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            place = data.find(_VERSION_MARK)
            start = place + len(_VERSION_MARK)
            found = _VERSION.match(data[start : start + _VERSION_BYTES]) if place >= 0 else None
    except (OSError, ValueError):  # ValueError: an empty file cannot be mapped
        return None
    return found.group().decode("ascii") if found else None


def _loaded(path: Path | None) -> ctypes.CDLL:
    if path is not None and not _is_file(path):
        raise BadInput(f"{path}: there is no such library; name librknnrt.so, or leave it to the loader.")
    reasons = []
    for name in NAMES if path is None else (str(path.absolute()),):
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            reasons.append(_refusal(name, str(error)))
    machine = platform.machine()
    if path is None:
        found = next(filter(None, reasons), "it is not installed here")
        raise RunFault(
            f"librknnrt.so cannot be loaded on this {machine} machine: {found}. On a Rockchip board install the "
            "vendor's runtime; on a PC the engines' twins run instead: --backend onnx."
        )
    raise RunFault(f"{reasons[0]}; this machine is {machine}: name the librknnrt.so made for it.")


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long, or a folder that is not ours
        return False


def _refusal(name: str, error: str) -> str:
    """Why the loader refused the file `name`; empty where there is none."""
    path = Path(name)
    if not path.is_absolute() or not path.is_file():
        return ""
    machine = _machine_of(path)
    if machine is None:
        return f"{path}: is no shared library"
    if not platform.machine().startswith(machine):  # an armv7l is an arm
        return f"{path}: is for {machine}"
    return f"{path}: {error.split(': ', 1)[-1]}"


def _machine_of(path: Path) -> str | None:
    """The machine that the ELF file `path` is for; None where it is no ELF file."""
    try:
        with path.open("rb") as file:
            header = file.read(_ELF_BYTES)
    except OSError:
        return None
    if len(header) < _ELF_BYTES or header[:4] != b"\x7fELF":
        return None
    number = int.from_bytes(header[18:20], "little" if header[5] == 1 else "big")
    return _ELF_MACHINES.get(number, f"machine {number} of the ELF list")


def _path_of(name: str) -> Path:
    """The file of the loaded library `name`."""
    if "/" in name:
        return Path(name)
    try:
        with Path("/proc/self/maps").open(encoding="utf-8", errors="replace") as maps:
            files = (line.split(maxsplit=5)[5].strip() for line in maps if line.rstrip().endswith("/" + name))
            return Path(next(files, name))
    except OSError:
        return Path(name)


def _as_version(version: str | None) -> str:
    return f" (version {version})" if version else ""
