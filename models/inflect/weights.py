"""A checkpoint's weights as the model takes them: weight norm folded, names and shapes checked; no torch.

A `model.pth` of the release holds a convolution in weight norm as `NAME.weight_g` and `NAME.weight_v`; one that newer
versions of torch wrote as `NAME.parametrizations.weight.original0` and `original1`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from contracts.errors import Refusal
from models import weight_norm
from models.inflect.config import InflectConfig
from models.inflect.layout import layout

FloatArray = NDArray[np.float32]
Weights = Mapping[str, FloatArray]

_PARTS = {
    ".parametrizations.weight.original0": ".weight_g",
    ".parametrizations.weight.original1": ".weight_v",
}
"""torch's names of gain and direction as parametrizations, and as weight norm had them before."""

_TRAINING_ONLY = "enc_q."
"""The posterior encoder, which inference never runs: the release leaves it out, checkpoints of a training hold it."""

_NAMED = 3
"""Names that a sentence lists at most."""


def folded(weights: Weights, where: str) -> dict[str, FloatArray]:
    """`weights` with every weight norm folded, and without what only training needs.

    Args:
        weights: a checkpoint's.
        where: names the file in messages.

    Raises:
        Refusal: half of a weight norm is missing, or its halves do not fit; the tensor is named.
    """
    plain: dict[str, FloatArray] = {}
    for name, array in weights.items():
        if not name.startswith(_TRAINING_ONLY):
            plain[_plain_name(name)] = array
    for name, array in plain.items():
        stem, _, part = name.rpartition(".")
        if part in ("weight_g", "weight_v"):
            other = f"{stem}.{'weight_v' if part == 'weight_g' else 'weight_g'}"
            if other not in plain:
                raise Refusal(
                    f"{where}: the tensor {name!r} is half of a weight norm, and its other half {other!r} is missing; "
                    "save the checkpoint again, or with its weight norm removed."
                )
            if part == "weight_g" and array.size != plain[other].shape[0]:
                raise Refusal(
                    f"{where}: the weight norm of {stem!r} has {array.size} gains for {plain[other].shape[0]} rows; "
                    "save the checkpoint again, its convolutions normed over all axes but the first."
                )
            if f"{stem}.weight" in plain:
                raise Refusal(f"{where}: {stem!r} has a weight, and a weight norm beside it; save it with one of them.")
    return weight_norm.folded(plain)


def checked(weights: Weights, config: InflectConfig, where: str) -> dict[str, FloatArray]:
    """`weights`, whose names and shapes are those of a model of these sizes.

    Args:
        weights: folded.
        config: the sizes.
        where: names the file in messages.

    Raises:
        Refusal: a tensor is missing, is not the model's, has another shape, or is not finite; it is named.
    """
    wanted = layout(config)
    for names, what in (
        (wanted.keys() - weights.keys(), "lacks"),
        (weights.keys() - wanted.keys(), "has what no Inflect model has,"),
    ):
        if names:
            raise Refusal(f"{where}: {what} {_listed(sorted(names))}; {_ADVICE}")
    for name, shape in wanted.items():
        got = weights[name].shape
        if got != shape:
            raise Refusal(f"{where}: the tensor {name!r} is {got}, and by the config {shape}; {_ADVICE}")
        if not np.isfinite(weights[name]).all():
            raise Refusal(f"{where}: the tensor {name!r} holds numbers that are not finite; get the file again.")
    return {name: weights[name] for name in wanted}


_ADVICE = "give model.pth with the config.json it came with (Inflect-Micro-v2 or Inflect-Nano-v2)."


def _plain_name(name: str) -> str:
    for new, old in _PARTS.items():
        if name.endswith(new):
            return name.removesuffix(new) + old
    return name


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{len(names)} tensor{'s' * (len(names) > 1)}: {', '.join(map(repr, names[:_NAMED]))}{more}"
