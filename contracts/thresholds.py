"""The bounds that a contract may state, by name, and their values where it does not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from contracts.verdicts import Verdict

SIMULATOR = "simulator"
"""Name, in `Contract.thresholds`, of the least simulator SNR in dB."""

OF_OUTPUT = f"{SIMULATOR}."
"""Begins the names of bounds of one output alone: `simulator.audio`."""

SIMULATOR_DB = 40.0
"""Its value unless a contract states another (the project's cases); 42.8 dB is measured on Piper's decoder."""


def own_simulator_db(thresholds: Mapping[str, float]) -> dict[str, float]:
    """The least simulator SNR of each output that has one of its own, by the output's name, in dB."""
    return {name[len(OF_OUTPUT) :]: db for name, db in thresholds.items() if name.startswith(OF_OUTPUT)}


def simulator_db(verdicts: Iterable[Verdict]) -> float | None:
    """The least ratio that the simulator reached, of all outputs, in dB; None where it was not judged by one."""
    found = [
        verdict.measured
        for verdict in verdicts
        if (verdict.gate == SIMULATOR or verdict.gate.startswith(OF_OUTPUT))
        and verdict.unit == "dB"
        and isinstance(verdict.measured, float)
    ]
    return min(found, default=None)
