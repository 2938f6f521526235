"""Outputs of a fixed shape without what stands for padding, in the shape of the reference that has none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

Outputs = Mapping[str, NDArray[Any]]


def without_padding(measured: Outputs, reference: Outputs) -> dict[str, NDArray[Any]]:
    """`measured`, each output cut to the steps (last axis) of its reference and given its shape.

    An engine may have an axis of size 1 more than the original, behind the steps too. What does not fit is left as it
    is, for the comparison to refuse by its shape.
    """
    return {name: _like(array, reference[name]) if name in reference else array for name, array in measured.items()}


def _like(array: NDArray[Any], reference: NDArray[Any]) -> NDArray[Any]:
    if not array.ndim or not reference.ndim:
        return array
    more = max(0, array.ndim - reference.ndim)
    behind = more if array.shape[array.ndim - more :] == (1,) * more else 0
    steps = array.reshape(array.shape[: array.ndim - behind])
    kept = steps[..., : reference.shape[-1]]
    same = [size for size in kept.shape if size != 1] == [size for size in reference.shape if size != 1]
    return kept.reshape(reference.shape) if same else array
