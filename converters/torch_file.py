"""Reading a file that torch wrote, without running anything in it.

Only tensors, dictionaries and plain values come out of `torch.load(weights_only=True)`; a pickle that asks for anything
else is refused. torch is imported here only, when such a file is read.
"""

from __future__ import annotations

import struct
import warnings
from importlib.util import find_spec
from pathlib import Path
from pickle import UnpicklingError

from contracts.errors import Refusal, ToolFailure, UserInput

_OF_DAMAGE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    struct.error,
)
"""What torch.load raises on damaged files, as found by damaging some; it documents nothing."""

_ZIP, _PICKLE = b"PK", b"\x80"
"""How the files that torch writes begin: since version 1.6, and before."""


def check_torch(what_for: str) -> None:
    """See that torch is there; `what_for` it is needed ("it reads Kokoro's .pth").

    Raises:
        ToolFailure: it is not installed.
    """
    if find_spec("torch") is None:
        raise ToolFailure(
            f"torch is not installed in this environment, and {what_for}; install it with the toolchain's requirements."
        )


def load_torch(path: Path, what_for: str, instead: str, mapped: bool = False) -> object:
    """What the file `path` holds.

    Args:
        path: the file.
        what_for: why torch is needed, for a sentence.
        instead: where such a model is read from, the end of a sentence on a file of another format.
        mapped: leave the tensors in the file until they are looked at, where its format lets that be: who takes a few
            of a large file copies them, and lets go of the rest.

    Raises:
        UserInput: no such file, damaged, or another format.
        Refusal: it holds code, or objects besides tensors.
        ToolFailure: torch is not installed.
    """
    check_torch(what_for)
    import torch

    if path.is_dir():
        raise UserInput(f"{path}: is a folder, a checkpoint is expected.")
    try:
        if not path.stat().st_size:
            raise UserInput(f"{path}: is empty; get the checkpoint again.")
        _check_beginning(path, instead)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what the file's format was called in other versions
            return torch.load(path, map_location="cpu", weights_only=True, mmap=mapped and _is_zip(path))
    except FileNotFoundError as error:
        raise UserInput(f"{path}: there is no such file.") from error
    except UnpicklingError as error:
        if "WeightsUnpickler" in str(error) or "GLOBAL" in str(error):
            raise Refusal(
                f"{path}: holds objects or code besides tensors, and nothing in a checkpoint is run; give the official "
                "file, or save the state dicts alone."
            ) from error
        raise _damaged(path, error) from error
    except _OF_DAMAGE as error:
        raise _damaged(path, error) from error


def kind_of(held: object) -> str:
    """What something in such a file is called in a sentence."""
    import torch

    if not isinstance(held, torch.Tensor):
        return f"of the type {type(held).__name__}"
    return "a tensor" if held.layout == torch.strided else "a sparse tensor"


def _is_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_ZIP)) == _ZIP


def _check_beginning(path: Path, instead: str) -> None:
    """Another format is said to be one: what torch says of it is about its own needs."""
    with path.open("rb") as file:
        begins = file.read(len(_ZIP))
    if not begins.startswith((_ZIP, _PICKLE)):
        raise UserInput(f"{path}: is no torch checkpoint, whatever its name says; {instead}.")


def _damaged(path: Path, error: Exception) -> UserInput:
    line = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
    return UserInput(f"{path}: is no torch checkpoint, or is damaged ({line:.120}); get the checkpoint again.")
