from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import pi, sqrt
from typing import Any, cast

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from rknn_tts_runtime import walk_spectrogram
from torch import Tensor, nn

from models.kokoro.generator import EPSILON, Generator, Norm, Snake, instance_norm, pooled_norm
from models.kokoro.generator_weights import generator_weights, in_half_turns
from models.kokoro.runs import FloatArray, Seam, run, run_frozen, watched_sines
from tests.kokoro_writer.speaking import SPEAKING, speaking_weights
from tests.onnx_runs import snr_db

SIZES = SPEAKING.istftnet
RATE = SIZES.columns_per_frame


@cache
def generator() -> Generator:
    return Generator(generator_weights(speaking_weights(), SIZES), SIZES).eval()


def drawn(frames: int) -> Seam:
    rng = np.random.default_rng(frames)
    columns = RATE * frames + 1
    shapes = (1, SIZES.upsample_initial_channel, frames), (1, 2 * SIZES.bins, columns), (1, SPEAKING.style_dim)
    x, har, style = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    return x, har, style


def windowed(decode: Callable[[Seam], FloatArray], seam: Seam, width: int, context: int) -> NDArray[Any]:
    x, har, style = seam
    return walk_spectrogram(lambda *part: decode((part[0], part[1], style)), x, har, width, context, context, RATE)


class Twice(nn.Module):
    """What stands for a generator here: x normed, and its double normed behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Conv1d(1, 1, 1)  # tells the precision

    def forward(self, x: Tensor, har: Tensor, style: Tensor, masks: Any = None, norm: Norm | None = None) -> Tensor:
        made = []
        for values in (x, 2 * x):
            normed = (norm or instance_norm)(values)
            made.append(normed.values if normed.factor is None else normed.values * normed.factor)
        return torch.cat(made, dim=1)


def floats(*values: float) -> FloatArray:
    return np.array([[values]], np.float32)


NOTHING = floats(0)


def test_run_is_the_module_on_arrays_of_any_kind() -> None:
    x, har, style = drawn(7)
    with torch.no_grad():
        wanted = generator()(*(torch.from_numpy(array) for array in (x, har, style))).numpy()
    strided = np.asfortranarray(x)
    strided.flags.writeable = False
    np.testing.assert_array_equal(run(generator(), (strided, har, style)), wanted)


def test_run_normalises_as_it_is_told() -> None:
    seam = drawn(7)
    by_pools = run(generator(), seam, norm=pooled_norm)
    assert 110 < snr_db(run(generator(), seam), by_pools) < float("inf")


def test_frozen_windows_take_the_statistics_of_the_whole_by_hand() -> None:
    x = floats(1, 3, 8, 8)  # mean 5, variance 9.5; its double's are 10 and 38
    deviation, double = sqrt(9.5 + EPSILON), sqrt(38 + EPSILON)
    stub = cast(Generator, Twice())

    def one_column(decode: Callable[[Seam], FloatArray]) -> FloatArray:
        return decode((x[..., 1:2], NOTHING, NOTHING))

    whole, frozen = run_frozen(stub, (x, NOTHING, NOTHING), one_column)
    np.testing.assert_allclose(whole[0, 0], [-4 / deviation, -2 / deviation, 3 / deviation, 3 / deviation], rtol=1e-5)
    np.testing.assert_allclose(frozen[0, :, 0], [-2 / deviation, -4 / double], rtol=1e-5)


def test_frozen_window_of_everything_is_the_whole() -> None:
    seam = drawn(9)
    whole, frozen = run_frozen(generator(), seam, lambda decode: decode(seam))
    np.testing.assert_array_equal(whole, run(generator(), seam))
    assert snr_db(whole, frozen) > 120


@pytest.mark.parametrize(("context", "least", "most"), [(28, 120, float("inf")), (4, 30, 90)])
def test_frozen_windows_are_the_whole_when_their_context_holds_all_that_a_frame_sees(
    context: int, least: float, most: float
) -> None:
    seam = drawn(100)
    whole, frozen = run_frozen(generator(), seam, lambda decode: windowed(decode, seam, 70, context))
    assert least < snr_db(whole, frozen) < most
    own = windowed(lambda part: run(generator(), part), seam, 70, context)
    assert snr_db(whole, own) < 50  # with their own statistics no context is enough


class Reversed(nn.Module):
    """Its second Snake acts before its first."""

    def __init__(self) -> None:
        super().__init__()
        self.first = Snake(np.array([[[pi]]], np.float32))
        self.second = Snake(np.array([[[2.0], [0.5]]], np.float32))
        self.last = nn.Conv1d(1, 1, 1)  # tells the precision

    def forward(self, x: Tensor, har: Tensor, style: Tensor, masks: Any = None, norm: Norm | None = None) -> Tensor:
        self.second(x)
        return cast(Tensor, self.first(x))


def test_watched_sines_are_the_largest_arguments_in_the_graphs_order_by_hand() -> None:
    module = cast(Generator, Reversed())
    with watched_sines(module) as largest:
        run(module, (np.array([[[1, -3], [2, 4]]], np.float32), NOTHING, NOTHING))
        np.testing.assert_allclose(largest[0], [6 / pi, 2 / pi], rtol=1e-6)
        np.testing.assert_allclose(largest[1], [3, 4], rtol=1e-6)
        run(module, (np.array([[[-5, 0], [0, 1]]], np.float32), NOTHING, NOTHING))
    np.testing.assert_allclose(largest[0], [10 / pi, 2 / pi], rtol=1e-6)
    np.testing.assert_allclose(largest[1], [5, 4], rtol=1e-6)


def test_watched_sines_look_no_longer_than_they_are_open() -> None:
    module = cast(Generator, Reversed())
    with watched_sines(module) as largest:
        pass
    run(module, (np.ones((1, 2, 2), np.float32), NOTHING, NOTHING))
    assert largest == []


@pytest.mark.parametrize("unit", [1.0, 0.416259765625])
def test_watched_sines_are_the_same_whatever_a_half_turn_counts(unit: float) -> None:
    turned = Generator(in_half_turns(generator_weights(speaking_weights(), SIZES), unit), SIZES).eval()
    with watched_sines(generator()) as plain, watched_sines(turned) as other:
        for module in (generator(), turned):
            run(module, drawn(5))
    assert len(plain) == len(other) == 24  # two sines in each of three steps of four blocks
    for one, two in zip(plain, other, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4)
