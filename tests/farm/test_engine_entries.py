from __future__ import annotations

import math

import pytest

from contracts.verdicts import Verdict, at_least, failure, passed
from farm.engine_entries import SIMULATOR, simulator_db
from gates.simulator import GATE
from rknn_tts.engine_page.compare import simulator_db as shown_db


def test_gate_is_the_simulators() -> None:
    assert SIMULATOR == GATE


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
def test_simulator_ratio_is_the_least_of_all_outputs_as_the_page_has_it(
    verdicts: tuple[Verdict, ...], db: float | None
) -> None:
    assert simulator_db(verdicts) == db == shown_db(verdicts)
