"""The least simulator SNR, against errors whose size is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from contracts.thresholds import SIMULATOR, SIMULATOR_DB, simulator_db
from contracts.verdicts import Verdict, at_least, failure, passed

SIGNAL = np.random.default_rng(1).standard_normal(100_000)


def ratio_db(measured: NDArray[np.float64]) -> float:
    return 10 * math.log10(float(np.sum(SIGNAL**2) / np.sum((measured - SIGNAL) ** 2)))


def test_simulator_threshold_lets_fp16_rounding_pass_and_no_error_that_is_heard() -> None:
    layers = 100  # roundings one after another, each of another sign
    rounded = SIGNAL + math.sqrt(layers) * (SIGNAL.astype(np.float16).astype(np.float64) - SIGNAL)
    assert ratio_db(rounded) > SIMULATOR_DB
    assert ratio_db(SIGNAL * 0.98) < SIMULATOR_DB  # 34 dB
    assert ratio_db(np.roll(SIGNAL, 1)) < SIMULATOR_DB


def test_simulator_threshold_has_the_name_of_its_gate(pytestconfig: pytest.Config) -> None:
    page = (pytestconfig.rootpath / "docs" / "gates.md").read_text(encoding="utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith(f"| `{SIMULATOR}` |")]
    assert f">= {SIMULATOR_DB:g} dB" in row


@pytest.mark.parametrize(
    ("verdicts", "db"),
    [
        ((), None),
        ((at_least("simulator", 41.0, 40.0, "dB"),), 41.0),
        ((at_least("simulator.a", 61.0, 40.0, "dB"), at_least("simulator.b", 39.0, 40.0, "dB")), 39.0),
        ((at_least("simulators", 1.0, 40.0, "dB"), at_least("fp32.whole", 99.0, 95.0, "dB")), None),
        ((failure("simulator", "It did not run."), passed("simulator.count", measured=3.0, unit="outputs")), None),
        ((at_least("simulator", math.inf, 40.0, "dB"),), math.inf),
    ],
)
def test_simulator_ratio_is_the_least_of_all_outputs(verdicts: tuple[Verdict, ...], db: float | None) -> None:
    assert simulator_db(verdicts) == db
