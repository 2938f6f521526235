"""The bounds that a contract may state, by name, and their values where it does not."""

from __future__ import annotations

SIMULATOR = "simulator"
"""Name, in `Contract.thresholds`, of the least simulator SNR in dB."""

SIMULATOR_DB = 40.0
"""Its value unless a contract states another (the project's cases); 42.8 dB is measured on Piper's decoder."""
