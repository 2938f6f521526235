"""A stand-in for torch that lets rknn-toolkit2 be imported without the multi-gigabyte package.

For ONNX in and fp16 out the toolkit touches three names, all while it is imported: `torch.Tensor` (in isinstance
checks), `torch.no_grad` (as a decorator) and `torch.nn.Module` (as a base class). Its simulator computes the same with
it as with the real one (toolkit-facts, Installing). Only the quantisation algorithm `gdq` computes with torch.

This file is loaded by path in the converter environment, so it imports nothing of this project.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import TypeVar

F = TypeVar("F", bound=Callable[..., object])

SWITCH = "RKNN_TTS_TORCH"
"""Environment variable: `real` uses the torch that is installed in the converter environment."""


class Tensor:
    """No value is ever an instance of it."""


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
    sys.modules.update({"torch": torch, "torch.nn": neural})
    return "stand-in"
