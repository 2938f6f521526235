"""Runs the generator on arrays, whole or window by window, with its statistics frozen, or with an eye on its sines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import pi

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from models.kokoro.generator import EPSILON, Generator, Norm, Normed, Snake, instance_norm

FloatArray = NDArray[np.float32]
Seam = tuple[FloatArray, FloatArray, FloatArray]
"""x [1, C, N], har [1, 2 B, R N + 1], style [1, S]."""


def run(
    generator: Generator, seam: Seam, masks: Sequence[FloatArray] | None = None, norm: Norm | None = None
) -> FloatArray:
    """As `Generator.forward`, on arrays; `seam` holds x, har and style. It is computed in the generator's precision."""
    precision = generator.last.weight.dtype

    def tensor(array: FloatArray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(precision)

    with torch.inference_mode():
        given = None if masks is None else [tensor(mask) for mask in masks]
        out: FloatArray = generator(*map(tensor, seam), masks=given, norm=norm).numpy()
    return out


def run_frozen(
    generator: Generator, seam: Seam, windows: Callable[[Callable[[Seam], FloatArray]], FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """An utterance decoded whole, and through windows that normalise with the whole utterance's statistics.

    So a frame depends on no more than its receptive field, which with a window's own statistics nothing shows.

    Args:
        generator: the generator.
        seam: x, har and style of the utterance.
        windows: decodes it through windows; is given what runs one.

    Returns:
        Both.
    """
    statistics: list[tuple[Tensor, Tensor]] = []

    def record(x: Tensor) -> Normed:
        mean = x.mean(dim=-1, keepdim=True)
        statistics.append((mean, (x - mean).square().mean(dim=-1, keepdim=True)))
        return instance_norm(x)

    decoded = run(generator, seam, norm=record)

    def window(part: Seam) -> FloatArray:
        # The norms come in the same order in every run.
        following = iter(statistics)

        def frozen(values: Tensor) -> Normed:
            mean, variance = next(following)
            return Normed(values - mean, 1 / torch.sqrt(variance + EPSILON))

        return run(generator, part, norm=frozen)

    return decoded, windows(window)


@contextmanager
def watched_sines(generator: Generator) -> Iterator[list[FloatArray]]:
    """While it is open, how far the sines' arguments go: for each Snake, in the order of the graph, and each channel.

    Yields:
        The largest |alpha x| of each Snake, [C], in units of pi. Filled by runs.
    """
    snakes = [module for module in generator.modules() if isinstance(module, Snake)]
    order: list[nn.Module] = []
    seen: dict[nn.Module, FloatArray] = {}
    largest: list[FloatArray] = []

    def look(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        assert isinstance(module, Snake)
        found = (module.alpha.detach() * inputs[0] / pi).abs().amax(dim=(0, 2)).numpy()
        if module not in seen:
            order.append(module)
        seen[module] = np.maximum(seen.get(module, np.zeros_like(found)), found)
        largest[:] = [seen[known] for known in order]

    handles = [snake.register_forward_pre_hook(look) for snake in snakes]
    try:
        yield largest
    finally:
        for handle in handles:
            handle.remove()
