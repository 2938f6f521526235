"""The estimate of a transposed convolution against what the toolkit's layer table said of it (2.3.2)."""

from __future__ import annotations

import pytest

from contracts.convolution_fields import Axis
from cost import model
from surgery.phase_groups import grouped_phases
from surgery.upsampling_cost import CPU_MS_PER_KB, CYCLES_PER_MS, TRAFFIC_MS_PER_KB, Site, phased_cost, transposed_cost


def site(channels: tuple[int, int], length: int, stride: int, kernel: int, stands_alone: bool = True) -> Site:
    pad = (kernel - stride) // 2
    axis = Axis(length, kernel, stride, 1, pad, pad)
    return Site(1, *channels, axis, grouped_phases(axis, 0), stands_alone)


MEASURED = [
    ("rk3588", (256, 128), 109, 8, 16, 901120, 1079),
    ("rk3588", (128, 64), 872, 8, 16, 1785856, 474),
    ("rk3588", (64, 32), 6976, 4, 8, 892928, 904),
    ("rk3588", (32, 16), 872, 8, 16, 111616, 70),
    ("rk3588", (48, 24), 872, 4, 8, 111616, 99),
    ("rk3588", (256, 128), 1280, 6, 12, 5898240, 4614 + 640),
    ("rk3562", (128, 64), 872, 8, 16, 3571712, 474),
    ("rk3566", (128, 64), 872, 8, 16, 7143424, 474),
    ("rk3566", (24, 12), 872, 2, 4, 27904, 43),
    ("rk3576", (256, 128), 109, 8, 16, 901120, 1079),
]


@pytest.mark.parametrize(("target", "channels", "length", "stride", "kernel", "cycles", "read_kb"), MEASURED)
def test_transposed_cost_is_the_layer_tables(
    target: str, channels: tuple[int, int], length: int, stride: int, kernel: int, cycles: int, read_kb: int
) -> None:
    cost = transposed_cost(site(channels, length, stride, kernel), target)
    assert cost is not None
    assert cost.cycles == pytest.approx(cycles, rel=0.01)
    assert cost.read_kb == pytest.approx(read_kb, rel=0.01, abs=1)


SAVED_MS = [
    ("rk3588", (256, 128), 109, 8, 16, -0.590),
    ("rk3588", (128, 64), 872, 8, 16, -0.775),
    ("rk3588", (64, 32), 6976, 4, 8, 1.074),
    ("rk3588", (256, 128), 1280, 6, 12, -7.092),
    ("rk3588", (48, 24), 1500, 4, 8, 0.125),
    ("rk3566", (128, 64), 872, 8, 16, -5.457),
    ("rk3566", (64, 32), 6976, 4, 8, -0.935),
    ("rk3566", (48, 24), 1500, 4, 8, -0.043),
    ("rk3576", (256, 128), 109, 8, 16, -0.519),
    ("rk3576", (64, 32), 7440, 2, 4, 1.058),
    ("rk3562", (128, 64), 872, 8, 16, -2.336),
    ("rk3562", (64, 32), 6976, 4, 8, 0.441),
    ("rk3562", (48, 24), 1500, 4, 8, 0.072),
]
"""What the rewrite changed the modelled time of a small engine by."""


@pytest.mark.parametrize(("target", "channels", "length", "stride", "kernel", "ms"), SAVED_MS)
def test_costs_differ_as_the_engines_did(
    target: str, channels: tuple[int, int], length: int, stride: int, kernel: int, ms: float
) -> None:
    one = site(channels, length, stride, kernel)
    before = transposed_cost(one, target)
    assert before is not None
    assert phased_cost(one, target).ms - before.ms == pytest.approx(ms, abs=0.01)


@pytest.mark.parametrize(("target", "overflows"), [("rk3562", True), ("rk3576", True), ("rk3588", False)])
def test_transposed_cost_is_none_when_a_field_overflows(target: str, overflows: bool) -> None:
    assert (transposed_cost(site((512, 256), 160, 10, 20), target) is None) == overflows


def test_phased_cost_counts_an_activation_when_it_is_the_only_reader() -> None:
    alone, shared = (phased_cost(site((128, 64), 872, 8, 16, stands), "rk3588") for stands in (True, False))
    assert alone.read_kb - shared.read_kb == 64 * 6976 * 2 / 1024


def test_the_weights_are_those_of_the_cost_model() -> None:
    assert CYCLES_PER_MS == model.CYCLES_PER_MS
    assert pytest.approx(TRAFFIC_MS_PER_KB) == 1 / model.KB_PER_MB / model.TRAFFIC_MB_PER_MS
    assert pytest.approx(CPU_MS_PER_KB) == model.CPU_MS_PER_MB / model.KB_PER_MB
