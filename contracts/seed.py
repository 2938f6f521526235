"""The one seed of everything that is drawn."""

from __future__ import annotations

SEED = 20240607
"""Any number would do (this is a date): fixed, so that a gate has the same figure in every run."""
