"""What the ranges of an engine of 8 bits are found on: an .npz of the user's, or what a stage has itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray
from rknn_tts_runtime.backends.feeds import without_ones

from contracts.contract import Contract
from contracts.errors import UserInput
from contracts.files import sha256_of_bytes
from contracts.quantisation import FROM_FILE, OWN_FEEDS, SYNTHETIC, W8A8, Quantisation
from converters.precision import Precision, chosen_precision
from converters.stages import Stage, StageExport, StageOptions
from rknn_tts.array_archive import read_archive
from rknn_tts.finished_graph import fed_inputs
from rknn_tts.hints import called, did_you_mean

Array = NDArray[Any]
Window = Mapping[str, Array]

LIMIT_BYTES = 1 << 28
"""Of a calibration set: an export carries it, packed, inside its ONNX, which has room for 2 GB with the weights."""

MOST_HELD_OUT = 64
"""Inputs of a calibration set that are judged on: each is a run of the simulator."""

_FLOATS = "f"


def check_precision(stage: Stage, options: StageOptions) -> str:
    """The precision that `options` ask for, before anything is opened; raises as `chosen_precision` does."""
    allowed = options.allow_quantized if "allow_quantized" in stage.options else None
    name = f"{stage.family} {stage.name}"
    return chosen_precision(name, stage.precision, options.precision, options.calibration, allowed)


def in_precision(export: StageExport, stage: Stage, options: StageOptions) -> StageExport:
    """`export` with what it takes to build it in the precision that `options` ask for.

    Raises:
        UserInput: the calibration set is none of the stage.
        UserInput, Refusal: as `chosen_precision`.
    """
    if check_precision(stage, options) != W8A8:
        return dataclasses.replace(export, calibration=())
    says = stage.precision or Precision()
    found = _found_on(export, says, options)
    notes = [f"W8A8: the ranges of activations are found on {len(found.windows)} {found.told}."]
    if says.loses is not None:
        notes.append(f"W8A8 was insisted on, although {says.loses}; its gates are those of fp16.")
    quantisation = Quantisation(W8A8, calibration=found.origin, insisted=says.loses is not None)
    return dataclasses.replace(
        export,
        stem=f"{export.stem}-{W8A8}",
        contract=dataclasses.replace(export.contract, quantisation=quantisation),
        feeds=found.judged,
        calibration=found.windows,
        notes=(*export.notes, *notes),
    )


@dataclass(frozen=True)
class _Found:
    """What ranges are found on, where that is from, what the user is told of it, and what the engine is judged on."""

    windows: tuple[Window, ...]
    origin: str
    told: str
    judged: tuple[Window, ...]


def _found_on(export: StageExport, says: Precision, options: StageOptions) -> _Found:
    """What the user gave, or what the stage drew, or else what it is judged on."""
    if options.calibration is None and export.calibration:
        told = "seeded random inputs, which stand in for real ones; --calibration FILE.npz names real ones"
        return _Found(export.calibration, SYNTHETIC, told, export.feeds)
    if options.calibration is None:
        return _Found(export.feeds, OWN_FEEDS, "inputs that it is judged on as well", export.feeds)
    path = Path(options.calibration)
    least = says.least_windows * says.held_out // (says.held_out - 1) if says.held_out else says.least_windows
    least = max(least, says.held_out or 0)  # one is held out at least
    windows, told = read_calibration(path, fed_inputs(export.model), least), f"inputs of {path.name}"
    if says.held_out is None:
        return _Found(windows, FROM_FILE, told, export.feeds)
    kept = min(len(windows) // says.held_out, MOST_HELD_OUT)
    return _Found(windows[:-kept], FROM_FILE, f"{told}; it is judged on the last {kept} there", windows[-kept:])


def with_digest(contract: Contract, count: int, packed: bytes) -> Contract:
    """`contract`, which says that it is quantised, with how many windows that is on, `packed` as they are handed on."""
    assert contract.quantisation is not None
    told = dataclasses.replace(contract.quantisation, windows=count, sha256=sha256_of_bytes(packed))
    return dataclasses.replace(contract, quantisation=told)


def read_calibration(path: Path, inputs: Sequence[ir.Value], least: int) -> tuple[dict[str, Array], ...]:
    """The windows in the .npz file `path`, which holds an array for each input: [N, the input's shape].

    Axes of size one may be left out of the shape, and floats are cast to the input's type.

    Args:
        path: the file.
        inputs: the graph's inputs, of static shapes.
        least: fewest windows.

    Raises:
        UserInput: there is no such file, it is no .npz or damaged, or too large; an array is unknown, missing, of
            another shape or type, or not finite; the arrays differ in length, are too short, or hold zeros alone.
    """
    what = f"--calibration {path!s:.300}"
    arrays = read_archive(path, what)
    values = {str(value.name): value for value in inputs}
    for name in arrays:
        if name not in values:
            hint = did_you_mean(name, values) or f" The inputs are {', '.join(values)}."
            raise UserInput(f"{what}: holds an array {name!r:.200}, and there is no such input.{hint}")
    if missing := [name for name in values if name not in arrays]:
        raise UserInput(f"{what}: has no array for the input {called(missing[0])}: {_wanted(values[missing[0]])}.")
    stacked = {name: _stacked(what, name, arrays[name], value) for name, value in values.items()}
    counts = {name: len(array) for name, array in stacked.items()}
    first = next(iter(counts))
    for name, count in counts.items():
        if count != counts[first]:
            raise UserInput(
                f"{what}: holds {counts[first]} inputs of {called(first)} and {count} of {called(name)}: the first "
                "axis counts what belongs together."
            )
    if counts[first] < least:
        raise UserInput(f"{what}: holds {counts[first]} inputs, and {least} are needed at least; give more.")
    if not any(np.any(array) for array in stacked.values()):
        raise UserInput(f"{what}: holds zeros alone, of which nothing has a range.")
    size_bytes = sum(array.nbytes for array in stacked.values())
    if size_bytes > LIMIT_BYTES:
        raise UserInput(
            f"{what}: holds {size_bytes / 1e9:.2f} GB, and {LIMIT_BYTES / 1e9:.2f} GB is the limit; give fewer inputs."
        )
    return tuple({name: array[window] for name, array in stacked.items()} for window in range(counts[first]))


def _stacked(what: str, name: str, array: Array, value: ir.Value) -> Array:
    """`array` as [N, the shape of the input `value`], in its type."""
    where, shape = f"{what}: the array {name}", _shape(value)
    if array.ndim < 1 or without_ones(array.shape[1:]) != without_ones(shape):
        raise UserInput(f"{where} has the shape {list(array.shape)!s:.100}; {_wanted(value)} is needed.")
    wanted = np.dtype(np.float32) if value.dtype is None else value.dtype.numpy()
    if (array.dtype.kind in _FLOATS) != (wanted.kind in _FLOATS) or (array.dtype.kind not in "iuf"):
        raise UserInput(f"{where} is of the type {array.dtype}; {_wanted(value)} is needed.")
    with np.errstate(over="ignore"):
        cast = np.ascontiguousarray(array).astype(wanted).reshape(len(array), *shape)
    if wanted.kind in _FLOATS and not np.isfinite(cast).all():
        raise UserInput(
            f"{where} holds a NaN, an infinity or what is too large for {wanted}: no range has such an end."
        )
    if wanted.kind not in _FLOATS and not np.array_equal(cast.reshape(array.shape), array):
        raise UserInput(f"{where} holds numbers that are too large for {wanted}.")
    return cast


def _shape(value: ir.Value) -> list[int]:
    return [size for size in value.shape or () if isinstance(size, int)]


def _wanted(value: ir.Value) -> str:
    kind = "float32" if value.dtype is None else value.dtype.numpy().name
    return f"{kind} of shape [{', '.join(map(str, ('N', *without_ones(_shape(value)))))}]"
