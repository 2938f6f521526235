"""The real inputs of a graph, from an .npz file: what `--inputs` names."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from contracts.errors import UserInput
from rknn_tts.array_archive import read_archive
from rknn_tts.hints import called, did_you_mean

_IN_A_WINDOW = re.compile(r"(?P<window>0|[1-9][0-9]{0,8})/(?P<name>.+)", re.DOTALL)
_NUMBERS = "biuf"
"""numpy's kinds of truth values, integers and floats."""

Array = NDArray[Any]


def read_inputs(path: Path, specs: Sequence[ir.Value], unused: Collection[str] = ()) -> tuple[dict[str, Array], ...]:
    """The windows in the .npz file `path`: one dictionary of arrays by input name for each.

    Arrays are named as the inputs, or `0/NAME`, `1/NAME`, ... where there are several windows. An array of another
    numeric type than its input is cast where that loses nothing.

    Args:
        path: the file.
        specs: the graph's inputs; a size that is not a number fits any.
        unused: those that need no array, for no output depends on them.

    Raises:
        UserInput: there is no such file, it is no .npz or damaged, too large, or holds Python objects; or an array is
            unknown, missing, of another shape or type, or not finite.
    """
    inputs = {str(value.name): value for value in specs}
    arrays = read_archive(path, f"--inputs {path!s:.300}")
    windows = _windows(path, list(arrays), inputs)
    feeds = []
    for window in sorted(windows):
        given = windows[window]
        missing = [name for name in inputs if name not in given and name not in unused]
        if missing:
            prefix = "" if window < 0 else f"{window}/"
            raise UserInput(
                f"--inputs {path}: has no array for the input {called(missing[0])}; add it as "
                f'"{prefix}{missing[0]}" ({_wanted(inputs[missing[0]])}).'
            )
        feeds.append(
            {name: _fitting(path, given[name], arrays[given[name]], inputs[name]) for name in inputs if name in given}
        )
    _check_alike(path, feeds)
    return tuple(feeds)


def _windows(path: Path, names: Sequence[str], inputs: dict[str, ir.Value]) -> dict[int, dict[str, str]]:
    """By window and input, the array's name; the one window of a file without windows is -1."""
    plain = {name: name for name in names if name in inputs}
    numbered: dict[int, dict[str, str]] = {}
    for name in names:
        match = None if name in plain else _IN_A_WINDOW.fullmatch(name)
        if match is not None and match["name"] in inputs:
            numbered.setdefault(int(match["window"]), {})[match["name"]] = name
        elif name not in plain:
            hint = did_you_mean(match["name"] if match else name, inputs)
            wanted = hint or f" The inputs are {', '.join(inputs) or 'none'}."
            raise UserInput(f"--inputs {path}: holds an array {name!r:.200}, and there is no such input.{wanted}")
    if plain and numbered:
        raise UserInput(
            f"--inputs {path}: holds an array {next(iter(plain))} and one of a window "
            f"({next(iter(numbered[min(numbered)].values()))}): name all after inputs, or all 0/NAME, 1/NAME, ..."
        )
    return numbered or {-1: plain}


def _fitting(path: Path, name: str, array: Array, value: ir.Value) -> Array:
    """`array` in the type of the input `value`, whose shape it has."""
    where = f"--inputs {path}: the array {name}"
    if value.shape is not None and not _fits(array.shape, value.shape):
        raise UserInput(f"{where} has the shape {list(array.shape)}; {_wanted(value)} is needed.")
    if array.dtype.kind not in _NUMBERS:
        raise UserInput(f"{where} is of the type {array.dtype}, which is no number; {_wanted(value)} is needed.")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise UserInput(f"{where} holds a NaN or an infinity, on which nothing can be judged.")
    wanted = np.dtype(value.dtype.numpy()) if value.dtype is not None else np.dtype(np.float32)
    with np.errstate(all="ignore"):
        cast = np.ascontiguousarray(array).astype(wanted).reshape(array.shape)
        same = wanted == array.dtype or _equal(cast.astype(array.dtype), array, cast)
    if not same:
        raise UserInput(
            f"{where} is {array.dtype} and would lose something as {wanted}, which is needed: save it as {wanted}."
        )
    return cast


def _equal(back: Array, array: Array, cast: Array) -> bool:
    """Whether a cast kept every value: there and back is the same, and no sign turned on the way (uint64)."""
    return bool(np.array_equal(back, array) and np.array_equal(cast < 0, array < 0))


def _fits(shape: tuple[int, ...], stated: ir.Shape) -> bool:
    return len(shape) == len(stated) and all(
        size == got for size, got in zip(stated, shape, strict=True) if isinstance(size, int)
    )


def _wanted(value: ir.Value) -> str:
    kind = "float32" if value.dtype is None else value.dtype.numpy().name
    if value.shape is None:
        return str(kind)
    sizes = ", ".join(str(size if isinstance(size, int) else size.value or "?") for size in value.shape)
    return f"{kind} of shape [{sizes}]"


def _check_alike(path: Path, feeds: Sequence[dict[str, Array]]) -> None:
    """An engine has one window: all must have the shapes of the first."""
    for feed in feeds[1:]:
        for name, first in feeds[0].items():
            if name in feed and feed[name].shape != first.shape:
                raise UserInput(
                    f"--inputs {path}: the windows hold arrays of the shapes {list(first.shape)} and "
                    f"{list(feed[name].shape)} for the input {called(name)}, and an engine takes one."
                )
