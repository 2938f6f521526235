"""What a person sees of a sweep: the Pareto table, the ladder, and what it is better than."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rknn_tts.blocks import Block, Facts, Notice, Row, Table, Tone
from rknn_tts.numbers import BYTES_PER_MB, column, number
from rknn_tts.present import MODELLED
from rknn_tts.tune.ladder_choice import Ladder
from rknn_tts.tune.rows import BEATEN, FAILED, MS_PER_S, PASSED
from rknn_tts.tune.rows import Row as Swept
from rknn_tts.tune.tuning import Chosen, Tuning

_DIGITS = 3

_TONES: dict[str, Tone] = {PASSED: "good", FAILED: "bad"}

_COLUMNS = (
    "verdict",
    "window",
    "emitted",
    "ms/s",
    "first audio ms",
    "memory MB",
    "engine MB",
    "CPU layers",
    "simulator dB",
    "fp32 dB",
    "remark",
)

MEANING = (
    "ms/s: modelled ms of a second of audio, between other windows; first audio: modelled ms of a run; memory: what an "
    "engine takes of the NPU's address space when it is loaded (estimated), or weights and tensors where it was not "
    "built whole; fp32: the worst of the utterances that it was walked over, against the full-length decode"
)


def tune_blocks(tuning: Tuning) -> list[Block]:
    """The sweep, the ladder, its utterances, and notes."""
    pairs = [
        ("stage", f"{tuning.family} {tuning.stage}"),
        ("target", f"{tuning.target}, rknn-toolkit2 {tuning.toolkit}"),
        ("source", tuning.source),
    ]
    if tuning.lengths is not None:
        pairs.append(("utterances", f"{tuning.lengths.name}; {number(tuning.lengths.mean_s, _DIGITS)} s on average"))
    blocks: list[Block] = [Facts(tuple(pairs)), _sweep_table(tuning.rows)]
    if tuning.chosen is not None:
        blocks += _chosen_blocks(tuning, tuning.chosen)
    blocks += [Notice("note", f"all times are {MODELLED}", "warn"), Notice("note", MEANING)]
    blocks += [Notice("note", note, "warn") for note in tuning.notes]
    return [*blocks, Facts((("sweep", tuning.file),))] if tuning.file is not None else blocks


def _sweep_table(rows: Sequence[Swept]) -> Table:
    # What nothing beats comes first: among it is the choice.
    ranked = sorted(rows, key=lambda row: (row.status != PASSED or bool(row.reason), row.status == FAILED))
    cells = [Row(_cells(row), _TONES.get(row.status, "plain")) for row in ranked]
    return Table("Sweep", _COLUMNS, tuple(cells), frozenset(range(2, 10)), prose="below")


def _cells(row: Swept) -> tuple[str, ...]:
    engine_mb = row.engine_bytes / BYTES_PER_MB if row.engine_bytes is not None else None
    numbers = (row.ms_per_s, row.run_ms, row.memory_mb, engine_mb)
    return (
        row.status,
        row.name,
        f"{row.size.emitted} of {row.size.width}" if row.size is not None else "",
        *(number(value, _DIGITS) for value in numbers),
        f"{len(row.layers.cpu)}" if row.layers is not None else "",
        *(f"{value:.1f}" if value is not None else "" for value in (row.simulator_db, row.fp32_db)),
        "" if row.status == BEATEN and not row.reason else row.reason,
    )


def _chosen_blocks(tuning: Tuning, chosen: Chosen) -> Iterator[Block]:
    rows = [Row(cells) for cells in ladder_cells(chosen)]
    yield Table(
        "Ladders, of an utterance on average",
        ("ladder", "windows", "ms", "against the choice", "first audio ms", "memory MB"),
        tuple(rows),
        frozenset({2, 3, 4, 5}),
        wraps=1,
    )
    usage = column(chosen.ladder.expected.runs, _DIGITS)
    yield Facts(
        (
            ("choice", chosen.windows),
            ("runs", ", ".join(f"{count} of {name}" for name, count in zip(chosen.ladder.names, usage, strict=True))),
            ("build", _building(tuning, chosen)),
        )
    )
    covers = [
        Row(
            (
                f"{number(cover.seconds)} s",
                f"{cover.frames}",
                repeated(cover.windows),
                number(cover.ms, _DIGITS),
                number(cover.ms / cover.seconds / MS_PER_S, _DIGITS),
                number(cover.first_audio_ms, _DIGITS),
            )
        )
        for cover in chosen.covers
    ]
    columns = ("utterance", "frames", "windows", "ms", "real-time factor", "first audio ms")
    yield Table("How utterances are covered", columns, tuple(covers), frozenset({1, 3, 4, 5}), wraps=2)


def ladder_cells(chosen: Chosen) -> Iterator[tuple[str, ...]]:
    """The ladders that are compared, and what each costs."""
    named = (("chosen", chosen.ladder), ("best single", chosen.single), ("default today", chosen.default))
    for name, ladder in named:
        if ladder is not None:
            yield (name, ",".join(ladder.names), *_figures(ladder, chosen.ladder))


def _figures(ladder: Ladder, chosen: Ladder) -> tuple[str, ...]:
    return (
        number(ladder.expected.ms, _DIGITS),
        f"{ladder.expected.ms / chosen.expected.ms:.2f}x",
        number(ladder.expected.first_audio_ms, _DIGITS),
        number(ladder.memory_mb, _DIGITS),
    )


def _building(tuning: Tuning, chosen: Chosen) -> str:
    """The command that builds the choice; of the default checkpoint, which a user's own one takes the place of."""
    knob = "--windows" if any(row.form for row in tuning.rows) else "--window"
    stage = f"{tuning.family} --stage {tuning.stage} --target {tuning.target}"
    asked = next((row.context for row in tuning.rows if row.name in chosen.ladder.names), None)
    context = "" if asked is None else f" --context {asked}"
    return f"./rknn-tts engine {stage} {knob} {chosen.windows}{context}"


def repeated(names: Sequence[str]) -> str:
    """`256t, 2 x 448t, 128m`."""
    parts: list[tuple[str, int]] = []
    for name in names:
        if parts and parts[-1][0] == name:
            parts[-1] = (name, parts[-1][1] + 1)
        else:
            parts.append((name, 1))
    return ", ".join(name if count == 1 else f"{count} x {name}" for name, count in parts)
