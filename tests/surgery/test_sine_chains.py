"""The chains of HardSwishes, against the sine itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

from surgery.sine_chains import CHAINS, HARD, TURNED, Chain


def hard_swish(x: float) -> float:
    """As ONNX's operator specification has it."""
    return x * max(0.0, min(1.0, x / 6 + 0.5))


def chained(chain: Chain, w: float) -> float:
    """K h^2."""
    made = hard_swish(-HARD * w)
    for scale in chain.scales:
        made = hard_swish(scale * made)
    return chain.gain * made * made


@pytest.mark.parametrize("chain", [*CHAINS.values(), *TURNED.values()])
def test_chain_keeps_its_bound_and_nearly_takes_it(chain: Chain) -> None:
    angles = [step / 3000 for step in range(1, 3000)]
    worst = max(abs(chained(chain, w) / math.sin(math.pi * w) ** 2 - 1) for w in angles)
    assert 0.9 * chain.bound < worst <= chain.bound


@pytest.mark.parametrize("degree", CHAINS)
@pytest.mark.parametrize("w", [0.0, 1.0, 1.001, 7.0])
def test_chain_is_zero_at_both_ends_and_behind(degree: int, w: float) -> None:
    assert chained(CHAINS[degree], w) == chained(TURNED[degree], w) == 0.0


@pytest.mark.parametrize("degree", CHAINS)
def test_chain_has_one_map_a_degree_and_folds_where_fp16_is_exact(degree: int) -> None:
    chain = CHAINS[degree]
    assert len(chain.scales) == degree
    assert np.float16(chain.unit) == chain.unit


@pytest.mark.parametrize("degree", [1, 2])
def test_chain_is_held_by_fp16_and_its_unit_is_its_gain(degree: int) -> None:
    chain = CHAINS[degree]
    assert [np.float16(scale) for scale in chain.scales] == list(chain.scales)
    assert chain.unit * chain.gain == pytest.approx(math.pi)


def test_chain_in_half_turns_has_constants_that_fp16_holds() -> None:
    chain = TURNED[2]
    exact = [*chain.scales, chain.unit, math.sqrt(chain.gain)]
    assert [np.float16(constant) for constant in exact] == exact
