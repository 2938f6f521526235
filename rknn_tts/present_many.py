"""What a person sees of a command for many checkpoints: a row a voice, why some have no engine, and totals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from contracts.errors import EXIT_DONE, EXIT_REFUSED
from contracts.manifest import Manifest
from rknn_tts.blocks import Block, Facts, Notice, Row, Table, Tone
from rknn_tts.build_step import GB
from rknn_tts.numbers import BYTES_PER_KB, number, size
from rknn_tts.outcome import Outcome
from rknn_tts.present import MODELLED
from rknn_tts.report import Part, Report

SECONDS = "seconds"
"""How long the whole command took, in `Report.extra`."""

_GATE = "simulator"
_SAMPLE = "sample.engine"
_STATUS: dict[int, tuple[str, Tone]] = {EXIT_DONE: ("done", "good"), EXIT_REFUSED: ("refused", "warn")}


def many_blocks(report: Report) -> list[Block]:
    """The table of all voices, a sentence for each that is not done, and what they come to together."""
    heard = any(_sample_db(part.report.outcome) is not None for part in report.parts)
    rows = tuple(_row(part, heard=heard) for part in report.parts)
    sample = ("sample, dB",) if heard else ()
    columns = ("voice", "status", "simulator, dB", *sample, "ms a run", "size", "time, s", "memory, GB")
    blocks: list[Block] = [Table("Voices", columns, rows, right=frozenset(range(2, len(columns))))]
    blocks += [Notice(part.voice, part.report.error, "bad") for part in report.parts if part.report.error]
    return [*blocks, Facts(tuple(_totals(report)))]


def _row(part: Part, *, heard: bool) -> Row:
    status, tone = _STATUS.get(part.report.exit_code, ("failed", "bad"))
    outcome = part.report.outcome
    modelled = " + ".join(number(m.layers.modelled_ms, 3) for m in _manifests(outcome) if m.layers)
    sample = (number(_sample_db(outcome)),) if heard else ()
    cells = (part.voice, status, number(_worst_db(outcome)), *sample, modelled, _size_text([part]))
    return Row((*cells, number(part.seconds), _gigabytes(part.peak_bytes)), tone)


def _totals(report: Report) -> Iterator[tuple[str, str]]:
    parts = report.parts
    done = [part for part in parts if part.report.exit_code == EXIT_DONE]
    yield "voices", f"{len(done)} of {len(parts)} done"
    if any(_manifests(part.report.outcome) for part in done):
        yield "size", f"{_size_text(done)} of engines"
        yield "ms a run", MODELLED
    if SECONDS in report.extra:
        yield "time", f"{number(report.extra[SECONDS])} s for all"
    if most := _gigabytes(max(part.peak_bytes for part in parts)):
        yield "memory", f"{most} GB at most for one voice"


def _worst_db(outcome: Outcome) -> float | None:
    """The least of what the simulator gave, of a set that of each of its engines; None where it did not run."""
    found = [v.measured for v in outcome.verdicts if v.gate == _GATE or v.gate.endswith(f".{_GATE}")]
    return min((float(db) for db in found if isinstance(db, (int, float))), default=None)


def _sample_db(outcome: Outcome) -> float | None:
    """What of a sample's engine can be heard; None where there is no sample."""
    found = (figure.measured for figure in outcome.measurements if figure.name == _SAMPLE)
    return next((float(db) for db in found if isinstance(db, (int, float))), None)


def _manifests(outcome: Outcome) -> list[Manifest]:
    """Of the engine, or of each of a set."""
    members = [member.manifest for member in outcome.members]
    return [manifest for manifest in members or [outcome.manifest] if manifest is not None]


def _size_text(parts: Sequence[Part]) -> str:
    """What the engines take; nothing where there are none."""
    sizes = [manifest.engine.bytes for part in parts for manifest in _manifests(part.report.outcome)]
    return size(sum(sizes) / BYTES_PER_KB) if sizes else ""


def _gigabytes(memory_bytes: int) -> str:
    """Resident memory; nothing where a voice ended before it was looked at."""
    return f"{memory_bytes / GB:.1f}" if memory_bytes else ""
