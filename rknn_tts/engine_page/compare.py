"""What stands before several engines' parts: all of them side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from contracts.manifest import Manifest
from contracts.thresholds import simulator_db
from contracts.verdicts import Status, Verdict
from rknn_tts.blocks import Notice, Row, Table, Tone
from rknn_tts.engine_page.elements import Element, Linked, Section
from rknn_tts.engine_page.figures import Bar, bar_figure
from rknn_tts.engine_page.sections import badges_of, per_second_ms, run_ms
from rknn_tts.engine_page.subjects import SetOf, Subject
from rknn_tts.numbers import BYTES_PER_MB, KB_PER_MB, number, size
from rknn_tts.present_aperture import together_blocks
from rknn_tts.roles import stage_text

_DIGITS = 16
"""Hex digits of a digest that are shown in the table; each engine's part has all of it."""

_COLUMNS = (
    "engine",
    "what",
    "target",
    "verdicts",
    "ms a run",
    "ms per second",
    "simulator, dB",
    "file",
    "between layers",
    "address space",
    "on the CPU",
    "sha256",
)


def comparison_sections(subjects: Sequence[Subject], anchors: Sequence[str], sets: Sequence[SetOf]) -> list[Section]:
    """The engines side by side, their bars, and which fit into one process.

    Args:
        subjects: the engines.
        anchors: where the part of each begins; "" of one that has none.
        sets: what sets of them say.
    """
    known = [(subject.name, subject.found.manifest) for subject in subjects if subject.found and subject.found.manifest]
    sections = [Section("engines", "Side by side", tuple(_table(subjects, anchors)))]
    if known:
        sections.append(Section("bars", "Bars", tuple(_bars(known))))
    told = [(one.name, one.aperture) for one in sets if one.aperture is not None]
    if told:
        blocks = tuple(block for name, shared in told for block in (Notice("set", name), *together_blocks(shared)))
        sections.append(Section("together", "In one process", blocks))
    return sections


def _table(subjects: Sequence[Subject], anchors: Sequence[str]) -> Iterator[Element]:
    table = Table("Engines", _COLUMNS, tuple(map(_row, subjects)), frozenset(range(4, 11)))
    yield Linked(table, tuple(anchors))
    for subject in subjects:
        if subject.found is None:
            yield Notice(subject.name, subject.fault, "bad")
        elif subject.found.manifest is None:
            for note in subject.found.notes:
                yield Notice(subject.name, note, "bad")
    yield Notice(
        "figures", "Times are modelled but where a board measured them; none of the rest was measured on a board."
    )


def _row(subject: Subject) -> Row:
    manifest = subject.found.manifest if subject.found else None
    if manifest is None:
        what = "cannot be read" if subject.found is None else "no manifest that belongs to it"
        return Row((subject.name, what, *("-" for _ in _COLUMNS[2:])), "bad")
    aperture, memory, layers = manifest.aperture, manifest.memory, manifest.layers
    cells = (
        subject.name,
        stage_text(manifest.family, manifest.stage, manifest.role),
        manifest.target,
        ", ".join(badge.text for badge in badges_of(manifest.verdicts)) or "none",
        number(run_ms(manifest)) or "-",
        number(per_second_ms(manifest)) or "-",
        number(simulator_db(manifest.verdicts)) or "-",
        size(manifest.engine.bytes / 1000),
        size(memory.internal_kb) if memory else "-",
        size(aperture.context_bytes / 1000) if aperture else "-",
        str(len(layers.cpu)) if layers else "-",
        manifest.engine.sha256[:_DIGITS],
    )
    return Row(cells, _tone(manifest.verdicts))


def _tone(verdicts: Sequence[Verdict]) -> Tone:
    reached = {verdict.status for verdict in verdicts}
    if Status.FAILED in reached:
        return "bad"
    return "warn" if Status.UNPROVEN in reached else "good" if verdicts else "plain"


def _bars(known: Sequence[tuple[str, Manifest]]) -> Iterator[Element]:
    def bars(values: Iterable[float | None]) -> list[Bar]:
        return [Bar(name, value) for (name, _), value in zip(known, values, strict=True)]

    manifests = [manifest for _, manifest in known]
    yield bar_figure(
        bars(map(per_second_ms, manifests)),
        "ms for each second of audio",
        "What a second of audio costs, of those whose run emits a stretch of it: below 1000 is faster than speech.",
    )
    yield bar_figure(bars(map(run_ms, manifests)), "ms a run", "What one run costs, whatever it emits.")
    yield bar_figure(bars(m.engine.bytes / BYTES_PER_MB for m in manifests), "MB", "Size of the engine's file.")
    yield bar_figure(
        bars(m.layers.rw_kb / KB_PER_MB if m.layers else None for m in manifests), "MB a run", "Traffic of one run."
    )
