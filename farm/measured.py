"""What the farm knows of what jobs take: the one door to rows, needs, and how they are learnt."""

from __future__ import annotations

from farm.learning import learnt
from farm.needs import Needs, needs_of
from farm.rows import SEED, Row, Table, read_table, write_table

__all__ = ["SEED", "Needs", "Row", "Table", "learnt", "needs_of", "read_table", "write_table"]
