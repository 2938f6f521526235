"""A stand-in of an NPU: `fake_librknnrt.c`, compiled, and what it answers with.

What it gives is recorded beforehand: by hand, or by onnxruntime on an engine's twin.
"""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from rknn_tts_runtime.backends.engine import Array
from rknn_tts_runtime.engine_file import short_contract_of
from rknn_tts_runtime.manifest import EngineManifest, TensorInfo

SOURCES = Path(__file__).parent
VERSION = "2.3.2 (429f97ae6b@2025-04-09T09:09:27)"
"""What the stand-in says of itself: the reference's board."""

NCHW, NHWC, NC1HWC2, UNDEFINED = 0, 1, 2, 3
FLOAT16, INT64 = 1, 8

Run = tuple[Mapping[str, Array], Mapping[str, Array]]
"""What goes in and what comes out, by name."""

SETTINGS = ("FAIL", "SHORT", "UNWRITTEN", "CORES", "UNREACHED", "GROWN", "API", "DRIVER", "LOG", "RECORDINGS")


def compiler() -> str:
    """The C compiler; the test fails where there is none."""
    found = shutil.which("cc")
    if found is None:
        pytest.fail(
            "No C compiler (cc) is installed: the tests of the binding compile a stand-in of librknnrt.so; install gcc "
            "or clang."
        )
    return found


def compiled(source: str, target: Path, *options: str) -> Path:
    """`source`, a file beside this one, compiled to `target`."""
    command = [compiler(), "-std=gnu11", "-Wall", "-Wextra", "-O1", *options, "-o", str(target), str(SOURCES / source)]
    subprocess.run(command, check=True, timeout=60)
    return target


def compiled_library(folder: Path, name: str = "librknnrt.so", *options: str) -> Path:
    """The stand-in as a shared library in `folder`."""
    return compiled("fake_librknnrt.c", folder / name, "-shared", "-fPIC", "-fvisibility=hidden", *options)


@dataclass(frozen=True)
class FakeNpu:
    """The stand-in as one test has it.

    Attributes:
        library: the shared library.
        recordings: the folder that its recordings are in.
        log: the file that its calls are written to.
    """

    library: Path
    recordings: Path
    log: Path

    @property
    def handle(self) -> ctypes.CDLL:
        return ctypes.CDLL(str(self.library))

    @property
    def live_contexts(self) -> int:
        return int(self.handle.fake_live_contexts())

    @property
    def live_memories(self) -> int:
        return int(self.handle.fake_live_memories())

    @property
    def calls(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def record(
        self,
        manifest: EngineManifest,
        runs: Sequence[Run],
        custom: str | None = None,
        memory: tuple[int, int, int] = (1000, 200, 1200),
        formats: Mapping[str, int] | None = None,
        shapes: Mapping[str, Sequence[int]] | None = None,
        strides: Mapping[str, int] | None = None,
        names: Mapping[str, str] | None = None,
    ) -> None:
        """Have the stand-in load `manifest`'s engine and answer `runs`.

        Args:
            manifest: the engine's.
            runs: arrays in the manifest's order of axes.
            custom: the custom string; None: the contract in the engine's file.
            memory: bytes of weights, of internal tensors, and of all.
            formats: of tensors by name, where they are not those that a board is said to tell.
            shapes: likewise.
            strides: `w_stride` by name.
            names: what a tensor is called instead.
        """
        if custom is None:
            custom = json.dumps(short_contract_of(manifest.engine), separators=(",", ":"))
        stem = f"{_fnv1a(manifest.engine.read_bytes()):016x}"
        lines = [f"custom {custom}" if custom else "", "memory {} {} {}".format(*memory)]
        told = dict(formats or {})
        for kind, infos in (("input", manifest.inputs), ("output", manifest.outputs)):
            for info in infos:
                told.setdefault(info.name, _usual_format(kind, info))
                shape = (shapes or {}).get(info.name, _in_format(np.empty(info.shape, np.int8), told[info.name]).shape)
                number = INT64 if info.dtype == "int64" else FLOAT16
                name = (names or {}).get(info.name, info.name)
                sizes = " ".join(map(str, shape))
                lines.append(f"{kind} {name} {told[info.name]} {number} {(strides or {}).get(info.name, 0)} {sizes}")
        for place, (feed, results) in enumerate(runs):
            files: list[str] = []
            for infos, arrays in ((manifest.inputs, feed), (manifest.outputs, results)):
                for info in infos:
                    files.append(f"{stem}-{place}-{len(files)}.bin")
                    array = arrays[info.name].astype(info.dtype).reshape(info.shape)
                    (self.recordings / files[-1]).write_bytes(_in_format(array, told[info.name]).tobytes())
            lines.append(f"run {' '.join(files)}")
        (self.recordings / f"{stem}.txt").write_text("".join(f"{line}\n" for line in lines))


def _usual_format(kind: str, info: TensorInfo) -> int:
    """What a board is said to tell: inputs of four axes as NHWC, outputs of four as NCHW, others without a format."""
    if len(info.shape) != 4:
        return UNDEFINED
    return NHWC if kind == "input" else NCHW


def _in_format(array: Array, told: int) -> Array:
    return np.ascontiguousarray(np.moveaxis(array, 1, -1)) if told == NHWC and array.ndim == 4 else array


def _fnv1a(data: bytes) -> int:
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % (1 << 64)
    return value
