"""What a person sees of a catalogue: what failed first, then what changed, what there is, and where it stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from farm.catalogue import Catalogue, Failure, Fault
from farm.catalogue_diff import Changes, EngineChange, Named, failure_text
from farm.page_parts import counted, duration, megabytes
from farm.page_sections import change_text, rules_text
from rknn_tts.blocks import Block, Facts, Notice, Row, Table, Tone
from rknn_tts.numbers import BYTES_PER_KB, size

CATALOGUE, CHANGES = "catalogue", "changes"

MOST_SHOWN = 20
"""Rows of a list in the terminal; the page and the JSON have all of them."""


def catalogue_blocks(extra: Mapping[str, Any], files: Sequence[str] = ()) -> list[Block]:
    """What failed, what changed, and what there is, of the `extra` of a report; then its JSON and its page, `files`."""
    found: Catalogue = extra[CATALOGUE]
    changes: Changes | None = extra.get(CHANGES)
    pairs = [*_totals(found), *zip(("catalogue", "page"), files, strict=False)]
    return [*_failures(found), *(_changes(changes) if changes is not None else ()), Facts(tuple(pairs))]


def _failures(found: Catalogue) -> Iterator[Block]:
    causes = [failure for failure in found.failures if failure.fault is not Fault.WAITING]
    if causes:
        rows = tuple(map(_failure_row, causes[:MOST_SHOWN]))
        yield Table("Failures", ("how", "what", "node", "why"), rows, wraps=1, prose="below")
        yield from _more(len(causes))
    waiting = len(found.failures) - len(causes)
    if waiting:
        yield Notice("waiting", f"{counted(waiting, 'job')} not begun, as what it needs was not made.", "warn")
    for one in found.unplanned[:MOST_SHOWN]:
        yield Notice("left out", f"{one.checkpoint}, {one.family} {one.stage}: {one.sentence}", "warn")
    yield from _more(len(found.unplanned))
    if found.strangers:
        there = counted(len(found.strangers), "engine")
        others = f"no job of this plan made {there} here, {found.strangers[0]} the first."
        yield Notice("note", others)


def _failure_row(failure: Failure) -> Row:
    tone: Tone = "warn" if failure.fault is Fault.REFUSED else "bad"
    node = failure.measured.node or ""
    return Row((failure.fault.value, failure_text(failure), node, failure.sentence), tone)


def _changes(changes: Changes) -> Iterator[Block]:
    rows = [row for change in (*changes.worse, *changes.better) for row in _change_rows(change)]
    if rows:
        columns = ("engine", "figure", "before", "now", "change")
        yield Table("What is worse, and better", columns, tuple(rows[:MOST_SHOWN]), frozenset({2, 3, 4}))
        yield from _more(len(rows))
        yield Notice("what counts", rules_text())
    labelled: tuple[tuple[str, Tone, Sequence[Named]], ...] = (
        ("newly failed", "bad", changes.failed),
        ("mended", "good", changes.mended),
    )
    for label, tone, named in labelled:
        for one in named[:MOST_SHOWN]:
            yield Notice(label, f"{one.what}: {one.told}", tone)
        yield from _more(len(named))
    counts = {
        "worse": len(changes.worse),
        "better": len(changes.better),
        "new": len(changes.new),
        "gone": len(changes.gone),
        "with other bytes": len(changes.other_bytes),
        "the same": changes.same,
    }
    told = ", ".join(f"{count} {what}" for what, count in counts.items() if count) or "nothing in either"
    yield Facts((("against", changes.against), ("engines", told)))


def _change_rows(change: EngineChange) -> Iterator[Row]:
    for one in change.differences:
        yield Row((change.engine, one.figure, *change_text(one)), "good" if one.better else "bad")


def _totals(found: Catalogue) -> Iterator[tuple[str, str]]:
    totals, measured = found.totals, found.totals.measured
    if totals.jobs:
        yield "jobs", f"{totals.done} of {totals.jobs} done"
    of = f"{counted(totals.voices, 'voice')}, {counted(totals.targets, 'target')}"
    yield "engines", f"{totals.engines} ({of}), {size(totals.bytes / BYTES_PER_KB)}"
    verdicts = totals.verdicts
    yield "verdicts", f"{verdicts.passed} passed, {verdicts.failed} failed, {verdicts.unproven} unproven"
    if totals.repeated:
        yield "made twice", f"{totals.same} of {totals.repeated} the same bytes, {_where(found)}"
    if measured.nodes:
        took = f"{duration(measured.wall_s)} in sum, {duration(measured.cpu_s)} of processors"
        yield "took", f"{took}, {megabytes(measured.peak_bytes)} of memory at most for a job"
        yield "nodes", ", ".join(measured.nodes)


def _where(found: Catalogue) -> str:
    """Whether what was made twice was made on several nodes."""
    measured = [repeat.measured for repeat in found.repeats]
    if apart := sum(one.apart for one in measured):
        return f"{apart} of them on two nodes"
    return "none known to be of two nodes" if any(one.first_node is None for one in measured) else "all on one node"


def _more(count: int) -> Iterator[Block]:
    if count > MOST_SHOWN:
        yield Notice("note", f"{count - MOST_SHOWN} more are on the page.")
