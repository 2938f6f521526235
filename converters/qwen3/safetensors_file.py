"""Tensors of a model folder's `model.safetensors`, or of its shards, one at a time and as float32.

Such a file is a header of names, types and places, and the numbers: nothing in it can be run. Read by the package
`safetensors`, which maps the file, so that only the tensors that are asked for come into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contracts.errors import ToolFailure, UserInput
from contracts.serial import parse_json

WEIGHTS_NAME = "model.safetensors"
INDEX_NAME = "model.safetensors.index.json"
"""Of a checkpoint in shards: `{"weight_map": {tensor name: file name}}`."""

Shape = tuple[int, ...]

_FLOATS = ("F32", "F16", "BF16")
"""Stored types whose every number is a float32."""

_SHOWN = 3
"""Of a list of tensors; then a count."""

_POINTER = b"version https://git-lfs"
"""How the text file begins that Git leaves in the place of a large file it did not get."""

_AGAIN = "get the snapshot again"


def tensor_files(folder: Path, prefix: str) -> dict[str, Path]:
    """The file of each tensor whose name begins with `prefix`; `model.safetensors` where there are shards as well.

    Raises:
        UserInput: there are neither, or what there is is damaged or not to be followed; it is named.
    """
    whole, index = folder / WEIGHTS_NAME, folder / INDEX_NAME
    if whole.exists():
        with _opened(whole) as file:
            found = dict.fromkeys(file.keys(), whole)
    elif index.exists():
        found = _shards(index)
    else:
        raise UserInput(f"{folder}: there is no {WEIGHTS_NAME} in it, and no {INDEX_NAME}; {_AGAIN}.")
    return {name: path for name, path in found.items() if name.startswith(prefix)}


def check_tensors(files: Mapping[str, Path], wanted: Mapping[str, Shape], folder: Path, sizes: str) -> None:
    """Refuse tensors that are not those `wanted`, by their names, types and shapes; none is read for that.

    Args:
        files: the file of each.
        wanted: shapes by name.
        folder: where they are from, for messages.
        sizes: where the sizes are from, for messages.

    Raises:
        UserInput: one is missing, unknown, of another shape or of no known type; at most a few are named, and counted.
    """
    if missing := [name for name in wanted if name not in files]:
        raise UserInput(
            f"{folder}: lacks {len(missing)} of the {len(wanted)} decoder tensors of the sizes in {sizes}: "
            f"{_listed(missing)}; {_AGAIN}."
        )
    if extra := [name for name in files if name not in wanted]:
        raise UserInput(
            f"{folder}: has {len(extra)} decoder tensors that one of the sizes in {sizes} does not have: "
            f"{_listed(extra)}; {_AGAIN}."
        )
    wrong, types = [], []
    for name, _, slices in _each(files, lambda file, name: file.get_slice(name)):
        if (shape := tuple(slices.get_shape())) != wanted[name]:
            wrong.append(f"{name} is {list(shape)}, not {list(wanted[name])}")
        if (stored := str(slices.get_dtype())) not in _FLOATS:
            types.append(f"{name} is {stored:.20}")
    if wrong:
        raise UserInput(f"{folder}: {len(wrong)} tensors have not the sizes in {sizes}: {_listed(wrong)}; {_AGAIN}.")
    if types:
        raise UserInput(
            f"{folder}: {len(types)} tensors are of types that are not read ({', '.join(_FLOATS)} are): "
            f"{_listed(types)}; give a checkpoint that is not quantised."
        )


def read_tensors(files: Mapping[str, Path]) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """The tensors named, each with its name, file by file; half floats (F16, BF16) are turned into float32, exactly.

    Raises:
        UserInput: a file is damaged, or a tensor holds NaN or infinity; it is named.
    """
    for name, path, tensor in _each(files, lambda file, name: file.get_tensor(name)):
        array = np.asarray(tensor, np.float32)
        if not np.isfinite(array).all():
            raise UserInput(f"{path}: {name} holds NaN or infinity, so the voice cannot be right; {_AGAIN}.")
        yield name, array


def _each(files: Mapping[str, Path], take: Callable[[Any, str], Any]) -> Iterator[tuple[str, Path, Any]]:
    """Name, file and what `take` gives of each tensor."""
    for path in dict.fromkeys(files.values()):
        with _opened(path) as file:
            held = set(file.keys())
            for name in (name for name, place in files.items() if place == path):
                if name not in held:
                    raise UserInput(f"{path}: does not hold {name}, which {INDEX_NAME} says it does; {_AGAIN}.")
                yield name, path, take(file, name)


def _opened(path: Path) -> AbstractContextManager[Any]:
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError as error:
        raise ToolFailure(
            f"{path}: safetensors is not installed in this environment, and it reads such files; install it with the "
            "toolchain's requirements."
        ) from error
    try:
        if not path.is_file():
            what = "is a folder, not a file" if path.is_dir() else "there is no such file"
            raise UserInput(f"{path}: {what}; {_AGAIN}.")
        with path.open("rb") as file:
            if file.read(len(_POINTER)) == _POINTER:
                raise UserInput(f"{path}: is a Git LFS pointer, not the file itself; run `git lfs pull` there.")
        opened: AbstractContextManager[Any] = safe_open(path, framework="numpy")
    except (SafetensorError, OSError) as error:
        raise UserInput(f"{path}: is no safetensors file, or is damaged ({error!s:.120}); {_AGAIN}.") from error
    return opened


def _shards(index: Path) -> dict[str, Path]:
    """What an index says; its files are plain names in its own folder."""
    try:
        data = parse_json(index.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserInput(f"{index}: is not readable JSON ({error!s:.200}); {_AGAIN}.") from error
    held = data.get("weight_map") if isinstance(data, dict) else None
    if not isinstance(held, dict) or not all(isinstance(name, str) for name in held.values()):
        raise UserInput(f"{index}: has no weight_map of tensors to files; {_AGAIN}.")
    for name in dict.fromkeys(held.values()):
        if "/" in name or "\0" in name or not name.endswith(".safetensors"):
            raise UserInput(
                f"{index}: names {name!r:.80} as a shard, which is no .safetensors file of its own folder; {_AGAIN}."
            )
    return {tensor: index.with_name(name) for tensor, name in held.items()}


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(f"{name:.160}" for name in names[:_SHOWN]) + more
