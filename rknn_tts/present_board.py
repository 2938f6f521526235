"""What a person sees of what a probe found on a board."""

from __future__ import annotations

from contracts.board import Board, BoardConditions, BoardOutput
from rknn_tts.numbers import BYTES_PER_KB, number, size

MEASURED = "measured on a board"

_HZ_PER_MHZ = 1_000_000


def board_pairs(board: Board) -> list[tuple[str, str]]:
    """What a probe on a board found, on which, and under what conditions."""
    found = board.conditions
    failed = sum(not case.passed for case in board.cases)
    count = f"{len(board.cases)} case{'s' * (len(board.cases) != 1)}"
    told = f"{count}, {f'{failed} FAILED' if failed else 'all passed'}"
    pairs = [
        ("probed", f"{told}; {board.date}, signed off by {board.by}"),
        ("board", ", ".join(filter(None, (found.model, found.soc, found.kernel))) or "not told"),
        ("NPU", npu_text(found)),
    ]
    if board.ms is not None:
        least = f", the least {number(board.least_ms, 3)}" if board.least_ms is not None else ""
        pairs.append(("board time", f"{number(board.ms, 3)} ms, the median of {board.repeats} runs{least}"))
    pairs += [("board output", output_text(output)) for output in board.outputs]
    if board.memory:
        weights = size(board.memory.weight_bytes / BYTES_PER_KB)
        internal = size(board.memory.internal_bytes / BYTES_PER_KB)
        pairs.append(("board memory", f"{weights} weights, {internal} internal, as the driver told"))
    return pairs


def output_text(output: BoardOutput) -> str:
    """An output against what was expected."""
    if output.snr_db is None:
        return f"{output.name}: could not be compared"
    bound = f"{number(output.snr_db)} dB of at least {number(output.bound_db)}"
    return f"{output.name}: {bound}, max|d| {number(output.max_abs, 3)}"


def npu_text(found: BoardConditions) -> str:
    """Clock, governor, cores and versions of a board's NPU."""
    least, most = (None if hz is None else hz / _HZ_PER_MHZ for hz in (found.least_hz, found.most_hz))
    clock = "" if most is None else f"{most:.0f} MHz" if least == most else f"{least or 0:.0f} to {most:.0f} MHz"
    parts = (
        clock,
        found.governor,
        f"cores {found.core_mask}" if found.core_mask else "",
        f"librknnrt {found.api}" if found.api else "",
        f"driver {found.driver}" if found.driver else "",
    )
    return ", ".join(filter(None, parts)) or "not told"
