"""What a person sees of a probe, and its file.

Python 3.8, numpy only: this file runs on the board.
"""

from __future__ import annotations

from pathlib import Path
from typing import Sequence

from rknn_tts_runtime.faults import BadInput, RunFault
from rknn_tts_runtime.json_keys import read_json
from rknn_tts_runtime.probing.comparison import OutputFigure, worst
from rknn_tts_runtime.probing.result import BOARD_BACKEND, RESULT_SCHEMA, CaseResult, Clock, ProbeResult, result_text
from rknn_tts_runtime.whole_file import check_place, write_whole

_MHZ = 1_000_000
_MIB = 1 << 20

_COLUMNS = ("case", "status", "SNR, dB", "bound", "max|d|", "ms", "least", "cores")
_TEXT_COLUMNS = ("case", "status", "cores")

NO_BOARD = "No board was probed: the engines' twins ran in onnxruntime. `rknn-tts verify` takes no such result."


def report_lines(result: ProbeResult) -> list[str]:
    """The cases as a table, what failed and why, and what the figures were taken under."""
    rows = [_row(case) for case in result.cases]
    lines = _table([_COLUMNS, *rows], left=frozenset(_COLUMNS.index(name) for name in _TEXT_COLUMNS))
    for case in result.cases:
        lines += [f"FAILED {case.name}: {problem}" for problem in _problems(case)]
    lines += [f"{name}: {text}" for name, text in _facts(result)]
    lines += [f"WARNING: {warning}" for warning in result.warnings]
    if result.backend != BOARD_BACKEND:
        lines.append(f"note: {NO_BOARD}")
    failed = sum(not case.passed for case in result.cases)
    lines.append(f"{len(result.cases) - failed} of {len(result.cases)} cases passed.")
    return lines


def check_result_place(path: Path) -> None:
    """See that a result can be written at `path`, and replaces nothing but another one; nothing is written yet.

    Raises:
        BadInput: it cannot, or would.
    """
    if not check_place(path):
        return
    try:
        data = read_json(path, "a result")
    except BadInput:
        data = None
    if not isinstance(data, dict) or data.get("schema") != RESULT_SCHEMA:
        raise BadInput(f"--out {path}: is no result of a probe, and would be replaced; name another file.")


def write_result(path: Path, result: ProbeResult) -> None:
    """Write `result` to `path`; it appears whole or not at all.

    Raises:
        RunFault: the folder cannot be written, or the disk is full; an earlier file is as it was.
    """
    try:
        write_whole(path, result_text(result).encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise RunFault(f"{path}: cannot be written ({error.strerror}); --out names another place.") from error


def _row(case: CaseResult) -> tuple[str, ...]:
    status = "passed" if case.passed else "FAILED"
    times = (_number(case.ms, 2), _number(case.least_ms, 2))
    if not case.outputs:
        return (case.name, status, "", "", "", *times, case.core_mask or "")
    figure = worst(case.outputs)
    figures = (_number(figure.snr_db, 1), _number(figure.bound_db, 1), _scientific(figure.max_abs))
    return (case.name, status, *figures, *times, case.core_mask or "")


def _problems(case: CaseResult) -> list[str]:
    if case.problem:
        return [case.problem]
    return [_output_problem(figure) for figure in case.outputs if not figure.passed]


def _output_problem(figure: OutputFigure) -> str:
    if figure.problem:
        return f"output '{figure.name}': {figure.problem}"
    return f"output '{figure.name}': {_number(figure.snr_db, 1)} dB, at least {_number(figure.bound_db, 1)} are asked"


def _facts(result: ProbeResult) -> list[tuple[str, str]]:
    conditions, subject = result.conditions, result.subject
    clock = conditions.clock
    ran = "" if clock is None else f"{_clock(clock)} while cases ran"
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    engine = next((case for case in result.cases if case.engine_sha256 == subject.engine_sha256), None)
    facts = [
        ("engine", f"{subject.engine_file}, for {subject.target}, toolkit {subject.toolkit}"),
        ("backend", ", ".join(filter(None, (result.backend, versions)))),
        ("board", ", ".join(filter(None, (conditions.board, conditions.soc, conditions.kernel))) or "not told"),
        ("NPU clock", ", ".join(filter(None, (conditions.governor, ran))) or "not told"),
    ]
    if engine is not None and engine.memory is not None:
        memory, how = engine.memory, "as the driver tells" if engine.memory.measured else "estimated"
        facts.append(("loaded", f"{(memory.weight_bytes + memory.internal_bytes) / _MIB:.1f} MiB, {how}"))
    if result.signed_off is not None:
        facts.append(("signed off", f"by {result.signed_off.by}, {result.signed_off.at}"))
    return facts


def _clock(clock: Clock) -> str:
    most = f"{clock.most_hz / _MHZ:.0f} MHz"
    return most if clock.least_hz == clock.most_hz else f"{clock.least_hz / _MHZ:.0f} to {most}"


def _table(rows: Sequence[Sequence[str]], left: frozenset[int]) -> list[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if place in left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in rows
    ]


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _scientific(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"
