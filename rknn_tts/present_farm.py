"""What a person sees of a farm: how far its jobs are, then its catalogue; of a dry run, what it would do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rknn_tts.blocks import Block, Facts, Notice, Row, Table
from rknn_tts.farm import FARM, FarmRun, KindCount
from rknn_tts.present_catalogue import CATALOGUE, catalogue_blocks

SECONDS_PER_MINUTE = 60


def farm_blocks(extra: Mapping[str, Any], files: Sequence[str] = ()) -> list[Block]:
    """How far the jobs are, what failed and what changed, of the `extra` of a report; then the catalogue's `files`."""
    run: FarmRun = extra[FARM]
    blocks: list[Block] = [_dry_table(run) if run.dry_run else _table(run)]
    if run.paper is not None:
        blocks.append(Notice("on paper", run.paper))
    if run.dry_run:
        blocks.append(Facts((("output", run.output),)))
    if run.dry_run and run.unplanned:
        blocks.append(Notice("left out", f"{run.unplanned} checkpoints, of which no job can be made.", "warn"))
    if not run.dry_run:
        blocks.append(Facts((("output", run.output), ("time", _duration(run.seconds)))))
    return [*blocks, *(catalogue_blocks(extra, files) if CATALOGUE in extra else ())]


def _dry_table(run: FarmRun) -> Table:
    rows = tuple(
        Row((count.kind.value, str(count.jobs), str(count.at_hand), str(count.jobs - count.at_hand)))
        for count in run.kinds
    )
    return Table("What would be done", ("step", "jobs", "at hand", "to do"), rows, frozenset({1, 2, 3}))


def _table(run: FarmRun) -> Table:
    columns = ("step", "jobs", "at hand before", "done", "not done")
    return Table("Jobs", columns, tuple(map(_row, run.kinds)), frozenset({1, 2, 3}))


def _row(count: KindCount) -> Row:
    left = ", ".join(f"{number} {how}" for how, number in count.ended.items())
    cells = (count.kind.value, str(count.jobs), str(count.at_hand), str(count.done), left)
    return Row(cells, "bad" if left else "good")


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), SECONDS_PER_MINUTE)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"
