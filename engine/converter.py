"""How the converter process is started: its working directory, its command and its environment."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engine.environment import passed_on
from engine.request import Array, BuildRequest
from engine.result import ENGINE_FILE, SIMULATED_FILE

OPTIMIZATION_LEVEL = 3
"""The toolkit's own default, every optimisation. Fixed here: any number passes without a word (toolkit-facts)."""

_MAPPED_BYTES = 32 << 20
"""From this size on a block is a mapping of its own: what glibc comes to by itself in a process that frees large ones,
with its threshold for trimming twice as large (mallopt(3))."""

_ONNX_FILE, _FEEDS_FILE, _REQUEST_FILE = "model.onnx", "feeds.npz", "request.json"
_CALIBRATION_FILE = "calibration.npz"


def child_environment(ours: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of the converter process.

    It is the same for every build, down to its length. What is set for malloc(3) makes the same addresses of the same
    allocations (engine.steady_memory): a block that is freed goes back to the heap it came from, not to the thread that
    freed it; and from what size on it is a mapping of its own does not follow what was freed before.
    """
    return {
        **passed_on(ours),
        "PATH": "/usr/bin:/bin",
        "HOME": "/proc/self/cwd",  # the private working directory
        "TMPDIR": "/proc/self/cwd",
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
        "PYTHONUTF8": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONNOUSERSITE": "1",
        # Without MALLOC_PERTURB_, which steady memory needs no more: with it, and no tcache, the compiler crashes in
        # what it reads of blocks that it has freed (2.3.2, TileGroupConv on a small flow of CosyVoice3).
        "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0",
        "MALLOC_MMAP_THRESHOLD_": str(_MAPPED_BYTES),
        "MALLOC_TRIM_THRESHOLD_": str(2 * _MAPPED_BYTES),
        "MALLOC_ARENA_MAX": "4096",
        # A machine's number of cores must not change how a folded constant is rounded. Costs no time (measured on the
        # Piper decoder: 5.1 s of user time with one and with two threads).
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def prepare(request: BuildRequest, folder: Path) -> list[str]:
    """Fills the working directory; returns the command. All names are fixed, so that no path enters the engine."""
    (folder / _ONNX_FILE).symlink_to(request.onnx.resolve())
    quantisation = request.quantisation
    data = {
        "onnx": _ONNX_FILE,
        "engine": ENGINE_FILE,
        "target": request.target,
        "toolkit": request.toolkit,
        "custom_string": request.custom_string,
        "optimization_level": OPTIMIZATION_LEVEL,
        "disable_rules": list(request.disable_rules),
        "feeds": _written(folder / _FEEDS_FILE, request.feeds),
        "simulated": SIMULATED_FILE if request.feeds else None,
        "quantisation": None
        if quantisation is None
        else {
            "dtype": quantisation.dtype,
            "algorithm": quantisation.algorithm,
            "method": quantisation.method,
            "calibration": _written(folder / _CALIBRATION_FILE, request.calibration),
        },
    }
    (folder / _REQUEST_FILE).write_text(json.dumps(data), encoding="utf-8")
    worker = Path(__file__).resolve().with_name("worker.py")
    # absolute, but not resolved: an environment's python is a link, and is itself only under its own name
    return [str(request.converter_python.absolute()), "-s", "-u", str(worker), _REQUEST_FILE]


def _written(path: Path, windows: Sequence[Mapping[str, Array]]) -> dict[str, object] | None:
    """Writes `windows` to the npz `path`; what the worker is told of them: None where there are none."""
    if not windows:
        return None
    names = list(windows[0])
    with path.open("wb") as file:
        arrays: dict[str, Any] = {  # Any: numpy's stub takes every keyword for its own `allow_pickle`
            f"{i}_{j}": np.asarray(window[name]) for i, window in enumerate(windows) for j, name in enumerate(names)
        }
        np.savez(file, **arrays)
    return {"file": path.name, "windows": len(windows), "names": names}
