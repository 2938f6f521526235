"""What `build_engine` is asked for."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from contracts.contract import SHORT_CONTRACT_LIMIT
from contracts.errors import UserInput
from contracts.quantisation import ALGORITHMS, Quantisation
from logs.regtask import RegtaskKey

DEFAULT_TIMEOUT_S = 3600.0
"""The longest build known takes a few minutes on one core (Kokoro, W=128: 50 s)."""

Array = NDArray[Any]


@dataclass(frozen=True)
class BuildRequest:
    """One build.

    Attributes:
        onnx: the graph as the toolkit shall see it: opset <= 19, static, its weights inside.
        target: one of `engine.targets.TARGETS`.
        toolkit: the version of rknn-toolkit2 that the converter environment must hold.
        converter_python: the interpreter of the converter environment (engine.environment).
        result_folder: where the results appear, whole or not at all; an earlier one is replaced.
        log: where the raw log appears at the end, whole, also when the build fails; until then an earlier one stays.
        custom_string: text for the inside of the engine, ASCII, under 1024 bytes.
        feeds: windows for the simulator, each an array for every input by name, of the ONNX's dtype and shape; none:
            the simulator does not run.
        accepted: REGTASK keys that do not stop the build.
        disable_rules: fuse rules of the toolkit to leave out besides those that are wrong (`engine.worker`); an unknown
            name passes without a word.
        quantisation: what the toolkit is told, where the engine is one of 8 bits; None: fp16.
        calibration: what it finds the ranges of activations on, then: windows like the feeds.
        timeout_s, memory_limit_bytes: when the build is stopped.
    """

    onnx: Path
    target: str
    toolkit: str
    converter_python: Path
    result_folder: Path
    log: Path
    custom_string: str | None = None
    feeds: Sequence[Mapping[str, Array]] = ()
    accepted: Collection[RegtaskKey] = ()
    disable_rules: tuple[str, ...] = ()
    quantisation: Quantisation | None = None
    calibration: Sequence[Mapping[str, Array]] = ()
    timeout_s: float = DEFAULT_TIMEOUT_S
    memory_limit_bytes: int | None = None


def check_request(request: BuildRequest) -> None:
    """Find out before anything is started what cannot work.

    Raises:
        UserInput: there is no such interpreter or ONNX, the custom string does not fit, or the quantisation's algorithm
            is none that the converter environment can run.
        ValueError: two windows have different names, or something is to be quantised on nothing.
    """
    if not os.access(request.converter_python, os.X_OK):
        raise UserInput(f"The converter's Python {request.converter_python} is missing or cannot be run.")
    if not request.onnx.is_file():
        raise UserInput(f"The ONNX {request.onnx} is missing.")
    text = request.custom_string or ""
    if len(text.encode()) >= SHORT_CONTRACT_LIMIT or not text.isascii():
        raise UserInput(
            f"The custom string of an engine must be ASCII and under {SHORT_CONTRACT_LIMIT} bytes: {text:.60}"
        )
    for windows in (request.feeds, request.calibration):
        if any(set(window) != set(windows[0]) for window in windows):
            raise ValueError("every window of feeds must have the same inputs")
    if (request.quantisation is None) != (not request.calibration):
        raise ValueError("an engine is quantised on a calibration set, and any other has none")
    if request.quantisation is not None and request.quantisation.algorithm not in ALGORITHMS:
        raise UserInput(
            f"The quantisation algorithm {request.quantisation.algorithm!r:.60} needs a torch that computes, and the "
            f"converter environment has none; there are {', '.join(ALGORITHMS)}."
        )
