"""What the farm knows of what jobs take: the one door to rows, needs, and how they are learnt."""

from __future__ import annotations

from farm.learning import brought_up_to_date
from farm.needs import Needs, needs_of_all
from farm.rows import SEED, Table, read_table, write_table

__all__ = ["SEED", "Needs", "Table", "brought_up_to_date", "needs_of_all", "read_table", "write_table"]
