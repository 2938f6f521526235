"""The official `.pth`: a dictionary of state dicts, read without running anything in it, and written.

Only tensors, dictionaries and plain values come out of `torch.load(weights_only=True)`; a pickle that asks for anything
else is refused. torch is imported here only, when such a file is read or written.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from contracts.errors import Refusal
from converters.kokoro.layout import TOP_KEYS, WRAPPER
from converters.torch_file import check_torch, kind_of, load_torch

Weights = dict[str, NDArray[np.float32]]

_WHAT_FOR = "it reads and writes Kokoro's .pth"
_INSTEAD = "Kokoro is read from the official .pth, or from an ONNX whose name ends in .onnx"

_COUNTERS = (".position_ids", ".num_batches_tracked")
"""Buffers of whole numbers that older versions of transformers and torch saved; no weights."""

_NORM_AFFINE = (".norm.weight", ".norm.bias")
"""Scale and shift of an instance norm, which the reference only has for its exporter's sake: one and zero."""

_OTHER_LAYOUT = (
    "is no Kokoro checkpoint: it has {got} at the top, and Kokoro's has {wanted}{differs}; give the official "
    "kokoro-v1_0.pth"
)


def read_pth(path: Path) -> Weights:
    """The tensors of the file `path` by official name, their names and shapes unchecked.

    Raises:
        UserInput: no such file, damaged, or another format.
        Refusal: it holds code, is another model's, or its tensors are not float32.
    """
    held = load_torch(path, _WHAT_FOR, _INSTEAD)
    if not isinstance(held, dict):
        raise Refusal(
            f"{path}: is no Kokoro checkpoint: it is {kind_of(held)}, not a dictionary of state dicts; give the "
            "official kokoro-v1_0.pth."
        )
    keys = [str(key) for key in held]
    if set(keys) != set(TOP_KEYS):
        hint = " (a StyleTTS2 training checkpoint, whose layers are others)" if "net" in keys else ""
        got = ", ".join(f"{key:.40}" for key in keys[: len(TOP_KEYS)]) or "nothing"
        more = ", ..." if len(keys) > len(TOP_KEYS) else ""
        told = _OTHER_LAYOUT.format(got=got + more + hint, wanted=", ".join(TOP_KEYS), differs=_differs(keys))
        raise Refusal(f"{path}: {told}.")
    weights: Weights = {}
    for top in TOP_KEYS:
        for name, tensor in _tensors(path, top, held[top]):
            if name in weights:
                raise Refusal(f"{path}: holds {name} twice, with {WRAPPER!r} and without; save the checkpoint again.")
            if (array := _array(path, name, tensor)) is not None:
                weights[name] = array
    return weights


def pth_bytes(weights: Mapping[str, NDArray[np.float32]]) -> bytes:
    """`weights` as a file in the official layout, a dictionary of state dicts; the same bytes each time.

    Raises:
        ToolFailure: torch is not installed.
    """
    check_torch(_WHAT_FOR)
    import torch

    tops: dict[str, dict[str, torch.Tensor]] = {top: {} for top in TOP_KEYS}
    for name, array in weights.items():
        top, _, rest = name.partition(".")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of arrays that may not be written to: nothing is
            tops[top][rest] = torch.from_numpy(np.ascontiguousarray(array, np.float32))
    buffer = io.BytesIO()
    torch.save(tops, buffer)
    return buffer.getvalue()


def _differs(keys: list[str]) -> str:
    """What is missing or too much where most is Kokoro's, in brackets."""
    missing, extra = [key for key in TOP_KEYS if key not in keys], [key for key in keys if key not in TOP_KEYS]
    if len(missing) + len(extra) >= len(TOP_KEYS):
        return ""
    parts = [
        f"{word} {', '.join(f'{key:.40}' for key in some)}"
        for word, some in (("it lacks", missing), ("it has besides", extra))
        if some
    ]
    return f" ({' and '.join(parts)})"


def _tensors(path: Path, top: str, held: object) -> Iterator[tuple[str, object]]:
    """Full names, with the wrapper's part, and what is held there."""
    if not isinstance(held, dict):
        raise Refusal(f"{path}: {top} is {kind_of(held)}, not a state dict; give the official kokoro-v1_0.pth.")
    for key, tensor in held.items():
        if not isinstance(key, str):
            raise Refusal(f"{path}: {top} has the key {key!r:.40}, which is no name; save the checkpoint again.")
        yield f"{top}.{WRAPPER}{key.removeprefix(WRAPPER)}", tensor


def _array(path: Path, name: str, held: object) -> NDArray[np.float32] | None:
    """What is held at `name`, a view; None for what is no weight."""
    import torch

    if not isinstance(held, torch.Tensor) or held.layout != torch.strided:
        raise Refusal(f"{path}: {name} is {kind_of(held)}, not a tensor.")
    if name.endswith(_COUNTERS) and not held.dtype.is_floating_point:
        return None
    if held.dtype != torch.float32:
        kind = str(held.dtype).removeprefix("torch.")
        half = " (an fp16 checkpoint)" if held.dtype in (torch.float16, torch.bfloat16) else ""
        raise Refusal(f"{path}: {name} is {kind}{half}, float32 is needed; give the official float32 checkpoint.")
    array: NDArray[np.float32] = held.detach().numpy()
    if name.endswith(_NORM_AFFINE):
        neutral = 1 if name.endswith(".weight") else 0
        if not np.all(array == neutral):
            raise Refusal(f"{path}: {name} is not all {neutral}: norms that were trained so are not supported.")
        return None
    return array
