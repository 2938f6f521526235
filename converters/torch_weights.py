"""The tensors of a state dict that torch wrote, as arrays; nothing in the file is run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from contracts.errors import Refusal
from converters.torch_file import kind_of, load_torch

Weights = dict[str, NDArray[np.float32]]

_SHOWN = 3
"""Of a list of tensors; then a count."""


def read_weights(
    path: Path,
    whose: str,
    advice: str,
    prefixes: Collection[str] = ("",),
    mapped: bool = False,
    ignored: Collection[str] = (),
) -> Weights:
    """The float32 tensors in the file `path` by their names, those that begin with one of `prefixes`; views, no copies.

    Args:
        path: a state dict.
        whose: what it should be of, for sentences ("CosyVoice2's vocoder").
        advice: what to do where it is not, the end of a sentence.
        prefixes: of the tensors that are wanted; others may be of any kind.
        mapped: read no more of a large file than these, and copy them.
        ignored: endings of tensors among them that are not wanted either: counts that a training keeps.

    Raises:
        UserInput: no such file, damaged, or another format.
        Refusal: it holds code, no state dict, or tensors that are not float32; the tensor is named.
    """
    held = load_torch(path, f"it reads the weights of {whose}", advice, mapped)
    if not isinstance(held, dict):
        raise Refusal(f"{path}: is no state dict but {kind_of(held)}: the weights of {whose} are needed; {advice}.")
    wanted, unwanted = tuple(prefixes), tuple(ignored)
    found = {
        name: float32_array(path, name, held, advice, advice)
        for name, held in held.items()
        if isinstance(name, str) and name.startswith(wanted) and not name.endswith(unwanted)
    }
    return {name: array.copy() for name, array in found.items()} if mapped else found


def check_weights(
    weights: Mapping[str, NDArray[np.float32]],
    shapes: Mapping[str, tuple[int, ...]],
    path: Path,
    whose: str,
    advice: str,
    *,
    alone: bool = False,
) -> None:
    """Refuse weights that are not those of `shapes`.

    Args:
        weights: by name.
        shapes: of what there has to be.
        path: their file, for sentences.
        whose, advice: as of `read_weights`.
        alone: whether there may be no others.

    Raises:
        Refusal: a tensor is missing, of another shape, holds NaN or infinity, or is one too many; one sentence that
            names some.
    """
    if missing := [name for name in shapes if name not in weights]:
        raise Refusal(
            f"{path}: is not {whose}: it lacks {len(missing)} of {len(shapes)} tensors: {_listed(missing)}; {advice}."
        )
    if wrong := [name for name, shape in shapes.items() if weights[name].shape != shape]:
        told = [f"{name} is {list(weights[name].shape)}, not {list(shapes[name])}" for name in wrong]
        raise Refusal(f"{path}: is not {whose}: {len(wrong)} tensors have other sizes: {_listed(told)}; {advice}.")
    if bad := [name for name in shapes if not np.isfinite(weights[name]).all()]:
        raise Refusal(
            f"{path}: {len(bad)} tensors hold NaN or infinity, so nothing right can come of it: {_listed(bad)}; get "
            "the checkpoint again."
        )
    if alone and (unknown := [name for name in weights if name not in shapes]):
        raise Refusal(
            f"{path}: is not {whose}: it has {len(unknown)} tensors more, of parts that are not computed here: "
            f"{_listed(unknown)}; {advice}."
        )


def shape_of(
    weights: Mapping[str, NDArray[np.float32]], name: str, axes: int, path: Path, whose: str, advice: str
) -> tuple[int, ...]:
    """The shape of a tensor that tells sizes: it has so many axes, none of them empty.

    Raises:
        Refusal: it has not, or is missing.
    """
    if name not in weights:
        raise Refusal(f"{path}: is not {whose}: it lacks {name}; {advice}.")
    shape = weights[name].shape
    if len(shape) != axes or 0 in shape:
        raise Refusal(f"{path}: is not {whose}: {name} is {list(shape)}, {axes} axes are expected; {advice}.")
    return shape


def numbers_behind(names: Iterable[str], prefix: str) -> int:
    """How many different numbers, or other words, stand in `names` between `prefix` and the next dot."""
    return len({name[len(prefix) :].partition(".")[0] for name in names if name.startswith(prefix)})


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""
    return ", ".join(every[:_SHOWN]) + more


def float32_array(path: Path, name: str, held: object, advice: str, otherwise: str) -> NDArray[np.float32]:
    """The tensor `name` that a file `held`, as a view.

    Args:
        path: the file, for sentences.
        name: the tensor's.
        held: what was read under that name.
        advice: the end of a sentence on what is no tensor.
        otherwise: the end of one on a tensor of another type.

    Raises:
        Refusal: it is no tensor, or not float32.
    """
    import torch

    if not isinstance(held, torch.Tensor) or held.layout != torch.strided:
        raise Refusal(f"{path}: {name:.80} is {kind_of(held)}, not a tensor; {advice}.")
    if held.dtype != torch.float32:
        kind = str(held.dtype).removeprefix("torch.")
        raise Refusal(f"{path}: {name:.80} is {kind}, float32 is needed; {otherwise}.")
    array: NDArray[np.float32] = held.detach().numpy()
    return array
