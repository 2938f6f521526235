"""What a person sees of `engine FAMILY --all`: a row an engine, and where the files are."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from contracts.verdicts import Status, Verdict
from rknn_tts.blocks import Block, Facts, Notice, Row, Table
from rknn_tts.checksums import SUMS
from rknn_tts.numbers import BYTES_PER_KB, number, size
from rknn_tts.outcome import Outcome
from rknn_tts.present import MODELLED, unproven_notices
from rknn_tts.present_aperture import together_blocks
from rknn_tts.report import Report

_SIMULATOR = "simulator"

_COLUMNS = ("engine", "size", "ms a run", "on the CPU", "REGTASK", "simulator, dB", "unproven")


def all_blocks(report: Report) -> list[Block]:
    """The engines of all stages, what is unproven of them, and what was written; nothing of a command that failed."""
    outcome = report.outcome
    if not outcome.members:
        return []
    rows = tuple(_row(member) for member in outcome.members)
    title = f"Engines of {report.request.family} for {report.request.target}"
    blocks: list[Block] = [Table(title, _COLUMNS, rows, right=frozenset(range(1, len(_COLUMNS))))]
    if outcome.aperture is not None:
        blocks += together_blocks(outcome.aperture)
    blocks.append(Facts(tuple(_facts(outcome))))
    blocks += [Notice("note", note) for note in outcome.notes]
    return blocks + unproven_notices(outcome.verdicts)


def _row(member: Outcome) -> Row:
    manifest = member.manifest
    assert manifest is not None
    layers = manifest.layers
    unproven = sum(verdict.status is Status.UNPROVEN for verdict in member.verdicts)
    cells = (
        Path(manifest.engine.file).stem,
        size(manifest.engine.bytes / BYTES_PER_KB),
        number(layers.modelled_ms, 3) if layers else "",
        str(len(layers.cpu)) if layers else "",
        str(sum(key.count for key in manifest.log.regtask)),
        _decibels(member.verdicts),
        str(unproven),
    )
    return Row(cells, "warn" if unproven else "good")


def _decibels(verdicts: tuple[Verdict, ...]) -> str:
    """The least that the simulator gave on any output; nothing where it did not run, or is judged by other figures."""
    found = [verdict.measured for verdict in verdicts if verdict.gate.partition(".")[0] == _SIMULATOR]
    return number(min((one for one in found if isinstance(one, (int, float))), default=None))


def _facts(outcome: Outcome) -> list[tuple[str, str]]:
    counted = Counter(verdict.status for verdict in outcome.verdicts)
    told = ", ".join(f"{counted[status]} {status.value}" for status in Status if counted[status])
    sizes = [member.manifest.engine.bytes for member in outcome.members if member.manifest is not None]
    folder = Path(outcome.files[-1]).parent
    sets = [file for file in outcome.files if file.endswith(".set.json")]
    facts = [
        ("verdicts", f"{told} (each manifest has its own; --json has all)"),
        ("size", f"{size(sum(sizes) / BYTES_PER_KB)} of engines"),
        ("ms a run", MODELLED),
        ("folder", f"{folder}, {sum(Path(file).parent == folder for file in outcome.files)} files"),
        *(("set", file) for file in sets),
        *(("sha256", file) for file in outcome.files if Path(file).name == SUMS),
    ]
    if outcome.reused:
        facts.append(("reused", f"{', '.join(outcome.reused)} (finished before; --force does every step again)"))
    return facts
