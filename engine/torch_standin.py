"""A stand-in for torch that lets rknn-toolkit2 be imported without the multi-gigabyte package.

For ONNX in and fp16 out the toolkit touches three names while it is imported: `torch.Tensor` (in isinstance checks),
`torch.no_grad` (as a decorator) and `torch.nn.Module` (as a base class); its simulator computes the same with it as
with the real one. One of its own functions, `gen_gather_for_change_split_shape`, counts with `arange`, `split`, `cat`,
`reshape` and `tolist`; the fuse rules that need it are those for Concat and Split on an inner axis of five dimensions
(measured, 2.3.2: without these names they raise AttributeError). Only the quantisation algorithm `gdq` computes more.

This file is loaded by path in the converter environment, so it imports nothing of this project.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., object])

SWITCH = "RKNN_TTS_TORCH"
"""Environment variable: `real` uses the torch that is installed in the converter environment."""


class Tensor:
    """Whole numbers in an array."""

    def __init__(self, values: NDArray[np.int64]) -> None:
        self.values = values

    def reshape(self, *shape: int | Sequence[int]) -> Tensor:
        """The same numbers in another shape, given as numbers or as one list."""
        return Tensor(self.values.reshape(*shape))  # type: ignore[arg-type] # numpy takes either; its stub, one of them

    def tolist(self) -> list[object]:
        """The numbers as nested lists."""
        numbers: list[object] = self.values.tolist()
        return numbers


def arange(count: int) -> Tensor:
    """The numbers from 0 on, `count` of them."""
    return Tensor(np.arange(count, dtype=np.int64))


def split(tensor: Tensor, sizes: Sequence[int], dim: int = 0) -> list[Tensor]:
    """Parts of these `sizes` along the axis `dim`."""
    return [Tensor(part) for part in np.split(tensor.values, np.cumsum(sizes)[:-1], axis=dim)]


def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """One behind the other along the axis `dim`."""
    return Tensor(np.concatenate([tensor.values for tensor in tensors], axis=dim))


class Module:
    """Base class of networks that are never made."""


class no_grad:  # noqa: N801 - torch's own name
    """Changes nothing, as a decorator or a context."""

    def __call__(self, function: F) -> F:
        return function

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def install() -> str:
    """Make `import torch` work; returns what it finds now: "stand-in" or "real".

    Raises:
        ImportError: `RKNN_TTS_TORCH=real`, and no torch is installed; the message says what to do.
    """
    if os.environ.get(SWITCH) == "real":
        if importlib.util.find_spec("torch") is None:
            raise ImportError(
                f"{SWITCH}=real asks for an installed torch, and the converter environment has none: install torch "
                f"there, or unset {SWITCH} to use the stand-in."
            )
        return "real"
    torch, neural = ModuleType("torch"), ModuleType("torch.nn")
    vars(neural).update(Module=Module)
    vars(torch).update(Tensor=Tensor, no_grad=no_grad, nn=neural, __path__=[])
    vars(torch).update(arange=arange, split=split, cat=cat)
    sys.modules.update({"torch": torch, "torch.nn": neural})
    return "stand-in"
