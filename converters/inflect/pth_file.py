"""The release's `model.pth`: a state dict, by itself or under `model` or `state_dict`; nothing in it is run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from contracts.errors import Refusal
from converters.inflect.config import ADVICE
from converters.torch_file import kind_of, load_torch
from converters.torch_weights import float32_array

Weights = dict[str, NDArray[np.float32]]

WRAPPERS = ("model", "state_dict")
"""Keys that a state dict stands under: the release's, and what training frameworks write."""

_WHAT_FOR = "it reads the release's model.pth"
_INSTEAD = f"{ADVICE}, or with its onnx folder"
_FLOAT32 = "give the official float32 checkpoint"


def read_pth(path: Path) -> Weights:
    """The tensors of the file `path` by name, their names and shapes unchecked, their weight norm as it is.

    Raises:
        UserInput: no such file, damaged, or another format.
        Refusal: it holds code, no state dict, or tensors that are not float32; the tensor is named.
    """
    held = load_torch(path, _WHAT_FOR, _INSTEAD)
    for key in WRAPPERS:
        if isinstance(held, dict) and isinstance(held.get(key), dict):
            held = held[key]
    if not isinstance(held, dict):
        raise Refusal(f"{path}: is no checkpoint of Inflect v2: it is {kind_of(held)}, not a state dict; {ADVICE}.")
    return {_name(path, key): float32_array(path, str(key), tensor, ADVICE, _FLOAT32) for key, tensor in held.items()}


def _name(path: Path, key: object) -> str:
    if not isinstance(key, str):
        raise Refusal(f"{path}: has the key {key!r:.40}, which is no tensor's name; {ADVICE}.")
    return key
