"""Whether tensors are those of a Kokoro of some sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from contracts.errors import Refusal
from converters.kokoro.layout import expected, unread
from models.kokoro.config import KokoroConfig

_REMEDY = "give its own config.json with --config, or get the checkpoint again"

_SHOWN = 3
"""Of a list of tensors; then a count."""


def with_unstated_sizes(config: KokoroConfig, weights: Mapping[str, NDArray[np.float32]]) -> KokoroConfig:
    """`config` with the sizes that no `config.json` states, read off `weights` where they are there."""
    inner, asr = (weights.get(f"decoder.module.{name}.weight_v") for name in ("encode.conv2", "asr_res.0"))
    return replace(
        config,
        decoder_channels=config.decoder_channels if inner is None or not inner.ndim else inner.shape[0],
        asr_channels=config.asr_channels if asr is None or not asr.ndim else asr.shape[0],
    )


def check_weights(weights: Mapping[str, NDArray[np.float32]], config: KokoroConfig, source: str, sizes: str) -> None:
    """Refuse `weights` that are not those of `config`: missing, unknown, of another shape, not finite.

    Args:
        weights: by official name.
        config: the sizes.
        source: the checkpoint, for messages.
        sizes: where the sizes are from, for messages.

    Raises:
        Refusal: one sentence that names tensors, at most a few and then a count.
    """
    wanted, allowed = expected(config), unread(config)
    if missing := [name for name in wanted if name not in weights]:
        raise Refusal(
            f"{source}: is no Kokoro of the sizes in {sizes}: it lacks {len(missing)} of {len(wanted)} tensors: "
            f"{_listed(missing)}; {_REMEDY}."
        )
    if extra := [name for name in weights if name not in wanted and name not in allowed]:
        raise Refusal(
            f"{source}: is no Kokoro of the sizes in {sizes}: it has {len(extra)} tensors that Kokoro does not have: "
            f"{_listed(extra)}; {_REMEDY}."
        )
    shapes = {**wanted, **allowed}
    if wrong := [name for name, array in weights.items() if array.shape != shapes[name]]:
        told = [f"{name} is {list(weights[name].shape)}, not {list(shapes[name])}" for name in wrong]
        raise Refusal(f"{source}: {len(wrong)} tensors have not the sizes in {sizes}: {_listed(told)}; {_REMEDY}.")
    if bad := [name for name, array in weights.items() if not np.isfinite(array).all()]:
        raise Refusal(
            f"{source}: {len(bad)} tensors hold NaN or infinity, so the voice cannot be right: {_listed(bad)}; get the "
            "checkpoint again."
        )


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""
    return ", ".join(every[:_SHOWN]) + more
