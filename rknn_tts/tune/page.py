"""Writes the tables of docs/tune.md from a sweep's file: `.venv/bin/python -m rknn_tts.tune.page SWEEP.json`.

The sweeps that the page shows stand in `swept/`, as `tune --output` wrote them. A test holds the page to them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from contracts.serial import from_json, parse_json
from rknn_tts.numbers import BYTES_PER_MB, number
from rknn_tts.present_tune import ladder_cells, repeated
from rknn_tts.tune.rows import Row
from rknn_tts.tune.tuning import SCHEMA, Tuning

FOLDER = Path(__file__).with_name("swept")

_DIGITS = 3


def read_tuning(path: Path) -> Tuning:
    """The sweep in the file `path`.

    Raises:
        ValueError: it is none.
    """
    data = parse_json(path.read_text(encoding="utf-8"))
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise ValueError(f"{path}: its schema is not {SCHEMA!r}")
    return from_json(Tuning, data, "tuning")


def tables_of(tuning: Tuning) -> tuple[str, ...]:
    """The tables of a sweep in Markdown: the windows, the ladders, and how utterances are covered."""
    columns = (
        "window",
        "emits",
        "ms a second",
        "first audio, ms",
        "k cycles a frame",
        "KB a frame",
        "memory, MB",
        "engine, MB",
        "CPU layers",
        "simulator, dB",
        "fp32, dB",
        "",
    )
    tables = ["\n".join(_table(columns, [_swept(row) for row in tuning.rows]))]
    if tuning.chosen is None:
        return tuple(tables)
    ladders = ("ladder", "windows", "ms an utterance", "against the choice", "first audio, ms", "memory, MB")
    tables.append("\n".join(_table(ladders, list(ladder_cells(tuning.chosen)))))
    covers = [
        (
            f"{number(cover.seconds)} s",
            f"{cover.frames}",
            repeated(cover.windows),
            number(cover.ms, _DIGITS),
            number(cover.first_audio_ms, _DIGITS),
        )
        for cover in tuning.chosen.covers
    ]
    tables.append("\n".join(_table(("utterance", "frames", "windows", "ms", "first audio, ms"), covers)))
    return tuple(tables)


def _swept(row: Row) -> tuple[str, ...]:
    size, layers = row.size, row.layers
    if size is None or layers is None:
        return (row.name, *[""] * 10, row.reason)
    engine_mb = row.engine_bytes / BYTES_PER_MB if row.engine_bytes is not None else None
    return (
        row.name,
        f"{size.emitted}",
        number(row.ms_per_s, _DIGITS),
        number(row.run_ms, _DIGITS),
        f"{layers.cycles / size.emitted / 1000:.1f}",
        f"{layers.rw_kb / size.emitted:.0f}",
        number(row.memory_mb, _DIGITS),
        number(engine_mb, _DIGITS),
        f"{len(layers.cpu)}",
        *(f"{value:.1f}" if value is not None else "" for value in (row.simulator_db, row.fp32_db)),
        " ".join(part for part in ("" if row.status == "beaten" else row.status, row.reason) if part),
    )


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield f"| {' | '.join(row)} |"


if __name__ == "__main__":
    sys.stdout.write("\n\n".join(tables_of(read_tuning(Path(sys.argv[1])))) + "\n")
