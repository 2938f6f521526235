"""The modelled time."""

from __future__ import annotations

import math

import pytest

from cost.model import modelled_ms, on_cpu
from logs.layer_table import Layer
from tests.cost.layers import PIPER_W93, layer


@pytest.mark.parametrize(
    ("cost", "ms"),
    [
        pytest.param(layer(cycles=1_000_000), 1.0, id="a_million_cycles"),
        pytest.param(layer(rw_kb=5000), 1.0, id="five_mb_on_the_npu"),
        pytest.param(layer(rw_kb=1000, target="CPU"), 5.2, id="one_mb_on_the_cpu"),
        pytest.param(layer("InputOperator", rw_kb=1000, target="CPU"), 0.2, id="input_operator"),
        pytest.param(layer("OutputOperator", rw_kb=1000, target="CPU"), 0.2, id="output_operator"),
    ],
)
def test_modelled_ms_follows_the_formula(cost: Layer, ms: float) -> None:
    assert math.isclose(modelled_ms([cost]), ms)


def test_modelled_ms_is_zero_without_layers() -> None:
    assert modelled_ms([]) == 0


def test_modelled_ms_gives_the_design_figure_of_the_piper_window() -> None:
    # 8.300308 + 85.154 / 5 + 5 * 0.136, as the design's formula is written.
    assert math.isclose(modelled_ms(PIPER_W93), 26.011108)
    assert round(modelled_ms(PIPER_W93)) == 26


def test_modelled_ms_is_the_sum_over_the_layers() -> None:
    assert math.isclose(modelled_ms(PIPER_W93), sum(modelled_ms([one]) for one in PIPER_W93))


@pytest.mark.parametrize(
    ("op", "target", "expected"),
    [
        ("Slice", "CPU", True),
        ("Slice", "NPU", False),
        ("InputOperator", "CPU", False),
        ("OutputOperator", "CPU", False),
    ],
)
def test_on_cpu_leaves_out_input_and_output_operators(op: str, target: str, expected: bool) -> None:
    assert on_cpu(layer(op, target=target)) is expected
