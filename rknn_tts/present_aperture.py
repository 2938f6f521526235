"""What a person sees of the NPU's address space: what an engine takes of it, and which engines fit together."""

from __future__ import annotations

from pathlib import PurePosixPath

from contracts.manifest import Aperture, SharedAperture
from cost.aperture import BUDGET_BYTES, MIB
from rknn_tts.blocks import Block, Notice, Row, Table

_SHOWN = 8
"""Sets that are shown; all of them are in the manifest of the set."""


def aperture_text(aperture: Aperture) -> str:
    """What an engine takes when it is loaded."""
    return (
        f"{_mib(aperture.context_bytes)} of {_mib(BUDGET_BYTES)} MiB that a process can load, "
        f"{_mib(aperture.largest_mapping_bytes)} in one mapping (estimated, not measured on a board)"
    )


def together_blocks(shared: SharedAperture) -> list[Block]:
    """Which engines of a set fit into one process together."""
    loaded = {name for chosen in shared.together for name in chosen}
    budget = _mib(shared.budget_bytes)
    rows = tuple(
        Row((", ".join(map(_stem, chosen)), _mib(sum(shared.context_bytes.get(name, 0) for name in chosen))))
        for chosen in shared.together[:_SHOWN]
    )
    blocks: list[Block] = []
    if rows:
        columns = ("engines", f"MiB of {budget}")
        blocks.append(Table("Engines that fit into one process (estimated)", columns, rows, frozenset({1})))
    if len(shared.together) > _SHOWN:
        blocks.append(Notice("note", f"{len(shared.together) - _SHOWN} more sets fit (--json has all of them)."))
    if not shared.together and len(shared.context_bytes) > 1:
        total = _mib(sum(shared.context_bytes.values()))
        blocks.append(Notice("note", f"They do not all fit into one process: {total} MiB of {budget}.", "warn"))
    elif alone := [name for name in shared.context_bytes if name not in loaded]:
        told = ", ".join(f"{_stem(name)} ({_mib(shared.context_bytes[name])} MiB)" for name in alone)
        blocks.append(Notice("note", f"Larger than the {budget} MiB of a process by itself: {told}.", "warn"))
    return blocks


def _stem(member: str) -> str:
    return PurePosixPath(member).stem


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / MIB:.0f}"
