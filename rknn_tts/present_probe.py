"""What a person sees of a probe kit that was written."""

from __future__ import annotations

from rknn_tts.blocks import Block, Facts, Notice, Row, Table
from rknn_tts.numbers import BYTES_PER_KB, number, size
from rknn_tts.probe.write_kit import CaseInfo, WrittenKit

RUNNING = "python -m rknn_tts_runtime probe"
"""What runs a kit, on the board."""


def kit_blocks(kit: WrittenKit) -> list[Block]:
    """A row for each case, the folder, how it goes on, and what is missing."""
    columns = ("case", "kind", "feeds", "simulator_db", "bound_db", "what it shows")
    table = Table("Cases", columns, tuple(map(_row, kit.cases)), frozenset({2, 3, 4}), prose="below")
    decided = dict.fromkeys(gate for case in kit.cases for gate in case.proves if not gate.startswith("pass."))
    pairs = [
        ("kit", kit.folder),
        ("size", f"{_size(kit.size_bytes)}, {_size(kit.twins_bytes)} of it twins, which run it on a PC"),
        ("for", kit.target),
        ("on the board", f"{RUNNING} {kit.folder}"),
    ]
    if decided:
        pairs.append(("decides", ", ".join(decided)))
    if kit.reused:
        pairs.append(("reused", f"{', '.join(kit.reused)} (finished before; --force does every step again)"))
    return [table, Facts(tuple(pairs)), *(Notice("note", note) for note in kit.notes)]


def _size(size_bytes: int) -> str:
    return size(size_bytes / BYTES_PER_KB)


def _row(case: CaseInfo) -> Row:
    figures = (number(case.simulator_db), number(case.bound_db))
    return Row((case.name, case.kind, str(case.feeds), *figures, case.what))
