"""What the farm knows of what jobs take: the one door to rows, needs, and how they are learnt."""

from __future__ import annotations

from farm.learning import brought_up_to_date, learnt
from farm.manifest_rows import from_manifests
from farm.needs import Needs, needs_of, needs_of_all
from farm.rows import SEED, Row, Table, laid_over, read_table, write_table

__all__ = [
    "SEED",
    "Needs",
    "Row",
    "Table",
    "brought_up_to_date",
    "from_manifests",
    "laid_over",
    "learnt",
    "needs_of",
    "needs_of_all",
    "read_table",
    "write_table",
]
