"""What jobs took, by kind, stage, width, target and size of checkpoint: the table that the farm keeps up to date.

The repository's own table (`SEED`, measured on one machine) is read first, then that of the farm's output folder, whose
rows win: they are of the machines that the farm runs on.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from contracts.errors import UserInput
from contracts.files import write_whole
from contracts.serial import from_json, parse_json, to_json
from farm.jobs import Kind

SCHEMA = "rknn-tts/farm-measured/1"

SEED = Path(__file__).with_name("measured.json")
"""The repository's own table, of one processor of a PC of two. Others used them too: of a job that the clock says more
than 1.15 times its processor time of, 1.1 times the latter stands there, as of the jobs that had theirs alone."""

SIZES_PER_DOUBLING = 4
"""Checkpoints are one size where they differ by less than 2**(1/4) = 1.19, which the margin on memory covers: voices of
one quality differ by 2 %, the qualities of Piper by 1.8 (63 and 114 MB) and more."""

Key = tuple[Kind, str, str, str, str | None, str, int | None]


@dataclass(frozen=True)
class Row:
    """What jobs of one sort took.

    Attributes:
        kind, family, stage, width, target, toolkit: as of `Job`.
        checkpoint_bytes: the smallest of their checkpoints; 0 where the size is not known (a package, a stand-in).
        times: how many were measured.
        peak_bytes: the most resident memory of all processes of one.
        wall_s, largest_wall_s: time on the clock, the mean and the largest.
        cpu_s, largest_cpu_s: of processors, likewise.
        disk_bytes: the most that one left in the output folder.
        cache_bytes: the most that one left in the cache; 0 where that was not looked at.
        least_bytes: what one held that was ended for want of memory: another needs that and more.
    """

    kind: Kind
    family: str
    stage: str
    width: str
    target: str | None
    toolkit: str
    checkpoint_bytes: int
    times: int = 0
    peak_bytes: int = 0
    wall_s: float = 0.0
    largest_wall_s: float = 0.0
    cpu_s: float = 0.0
    largest_cpu_s: float = 0.0
    disk_bytes: int = 0
    cache_bytes: int = 0
    least_bytes: int = 0

    @property
    def key(self) -> Key:
        """What it is the row of."""
        size = size_class(self.checkpoint_bytes)
        return self.kind, self.family, self.stage, self.width, self.target, self.toolkit, size


@dataclass(frozen=True)
class Table:
    """All rows, one a key.

    Attributes:
        rows: in the order of their keys.
        learnt_until_s: outcomes that started until then (seconds since 1970) are in it already.
    """

    rows: tuple[Row, ...] = ()
    learnt_until_s: float = 0.0
    schema: str = SCHEMA

    @cached_property
    def by_stage(self) -> Mapping[tuple[Kind, str, str], tuple[Row, ...]]:
        """The rows of a kind, family and stage."""
        found: dict[tuple[Kind, str, str], list[Row]] = {}
        for row in self.rows:
            found.setdefault((row.kind, row.family, row.stage), []).append(row)
        return {key: tuple(rows) for key, rows in found.items()}


def size_class(checkpoint_bytes: int) -> int | None:
    """Which size that is; None where it is not known (0)."""
    return math.floor(SIZES_PER_DOUBLING * math.log2(checkpoint_bytes)) if checkpoint_bytes > 0 else None


def read_table(*paths: Path) -> Table:
    """The rows of all these files, the later ones' in the place of the earlier ones'; a missing file has none.

    Raises:
        UserInput: a file cannot be read, or is no table of this schema.
    """
    return laid_over(*(_read(path) for path in paths))


def laid_over(*tables: Table) -> Table:
    """The rows of all these tables, the later ones' in the place of the earlier ones'.

    What a job leaves in the cache no outcome tells: where a later row has not looked, it is as the earlier one says.
    """
    rows: dict[Key, Row] = {}
    for table in tables:
        for row in table.rows:
            earlier = rows.get(row.key)
            cache_bytes = row.cache_bytes or (earlier.cache_bytes if earlier else 0)
            rows[row.key] = replace(row, cache_bytes=cache_bytes)
    return table_of(rows, max((table.learnt_until_s for table in tables), default=0.0))


def write_table(table: Table, path: Path) -> None:
    """Write `table` to `path`, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, (json.dumps(to_json(table), indent=1, ensure_ascii=False) + "\n").encode())


def merged(first: Row, second: Row) -> Row:
    """One row of what two of the same key say."""
    times = max(1, first.times + second.times)
    return replace(
        first,
        checkpoint_bytes=min(first.checkpoint_bytes, second.checkpoint_bytes),
        times=first.times + second.times,
        peak_bytes=max(first.peak_bytes, second.peak_bytes),
        wall_s=(first.wall_s * first.times + second.wall_s * second.times) / times,
        largest_wall_s=max(first.largest_wall_s, second.largest_wall_s),
        cpu_s=(first.cpu_s * first.times + second.cpu_s * second.times) / times,
        largest_cpu_s=max(first.largest_cpu_s, second.largest_cpu_s),
        disk_bytes=max(first.disk_bytes, second.disk_bytes),
        cache_bytes=max(first.cache_bytes, second.cache_bytes),
        least_bytes=max(first.least_bytes, second.least_bytes),
    )


def table_of(rows: Mapping[Key, Row], learnt_until_s: float) -> Table:
    """The table of these rows, in the order of their keys."""
    ordered = sorted(rows.items(), key=lambda item: [str(part) for part in item[0]])
    return Table(tuple(row for _, row in ordered), learnt_until_s)


def _read(path: Path) -> Table:
    try:
        data = parse_json(path.read_text(encoding="utf-8"))
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA}")
        return from_json(Table, data, "table")
    except FileNotFoundError:
        return Table()
    except OSError as error:
        raise UserInput(f"{path}: cannot be read ({error.strerror}).") from error
    except ValueError as error:
        raise UserInput(
            f"{path}: is no table of what jobs took ({error}); remove it, the farm makes it anew."
        ) from error
