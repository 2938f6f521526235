"""The least ratio, in dB, that a board owes against what is right."""

from __future__ import annotations

from contracts.manifest import Manifest
from contracts.thresholds import SIMULATOR, SIMULATOR_DB, own_simulator_db

BIT_DB = 6.0
"""How much less than the simulator a board may reach: twice its error, one bit of fp16. What it computes otherwise than
the simulator (the order of sums, its own tables) is of that size; a wrong operator is 20 dB and more off."""

FLOOR_DB = SIMULATOR_DB
"""No bound lies below it: what every engine owes in the simulator (`contracts.thresholds`)."""

CEILING_DB = 66.0
"""No bound lies above it: the 11 bits of fp16. What the simulator gives exactly need not be exact on a board."""


def operator_bound_db(simulator_db: float) -> float:
    """What an operator owes that the simulator computes to `simulator_db`."""
    return max(FLOOR_DB, min(CEILING_DB, simulator_db - BIT_DB))


def bounds_of(manifest: Manifest) -> tuple[dict[str, float], str]:
    """The least ratio of each output in dB, and a clause that says where it comes from.

    An engine of 8 bits whose figures other gates judge owes no ratio in the simulator: it is bounded by the one that
    was measured there, less one bit.
    """
    shared = manifest.thresholds.get(SIMULATOR, SIMULATOR_DB)
    source = "bounds: those of the gate `simulator`"
    by_figures = next((m.measured for m in manifest.measurements if m.name == SIMULATOR), None)
    if manifest.quantisation is not None and isinstance(by_figures, float):
        shared = by_figures - BIT_DB
        source = f"an engine of 8 bits, bounded by what the simulator reached less {BIT_DB:g} dB"
    own_db = own_simulator_db(manifest.thresholds)
    return {spec.name: own_db.get(spec.name, shared) for spec in manifest.outputs}, source
