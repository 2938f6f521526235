"""The sections of a catalogue's page that stand before its engines: failures, changes, totals, what was made twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from contracts.verdicts import Status, Verdict
from farm.catalogue import Catalogue, EngineEntry, Failure, Fault, Repeat
from farm.catalogue_diff import RULES, Changes, Difference, EngineChange, Named, failure_text
from farm.page_parts import (
    FROM_THIRD,
    Notice,
    Part,
    Row,
    Section,
    Table,
    counted,
    duration,
    figure,
    href,
    listed,
    megabytes,
)

_DIGITS = 12
"""Hex digits of a digest that are shown; catalogue.json has all of it."""

FOUND_AGAIN = "(found in the cache)"
"""In the place of the node that made an engine first."""

_PERCENT = 100


def failures_section(catalogue: Catalogue) -> Section:
    """What failed with its sentence, then what was left out, then what only waits for others."""
    causes = [failure for failure in catalogue.failures if failure.fault is not Fault.WAITING]
    waiting = [failure for failure in catalogue.failures if failure.fault is Fault.WAITING]
    columns = ("what", "how", "why", "node", "log")
    parts = []
    if causes:
        parts.append(Part(Table(counted(len(causes), "failure"), columns, tuple(map(_failure_row, causes)))))
    if catalogue.unplanned:
        rows = [Row((one.checkpoint, f"{one.family} {one.stage}", one.sentence), "warn") for one in catalogue.unplanned]
        caption = f"{counted(len(rows), 'checkpoint')} that no job was made of"
        parts.append(Part(Table(caption, ("checkpoint", "stage", "why"), tuple(rows))))
    if waiting:
        caption = f"{counted(len(waiting), 'job')} that waited for one of these"
        parts.append(listed(caption, columns, [_failure_row(one) for one in waiting], folded=True))
    notices = (
        () if parts else (Notice("none", "Every engine that was asked for is here, as its manifest says.", "good"),)
    )
    return Section("failures", "Failures", notices, parts=tuple(parts))


def changes_section(changes: Changes) -> Section:
    """What changed since the earlier catalogue, the worse first."""
    parts = []
    for caption, changed, tone in (("worse", changes.worse, "bad"), ("better", changes.better, "good")):
        if changed:
            rows = [row for change in changed for row in _change_rows(change, tone)]
            columns = ("engine", "figure", "before", "now", "change")
            parts.append(listed(f"{counted(len(changed), 'engine')} {caption}", columns, rows, FROM_THIRD))
    for caption, named, tone in (
        ("newly failed", changes.failed, "bad"),
        ("mended", changes.mended, "good"),
        ("new", changes.new, ""),
        ("gone", changes.gone, "warn"),
    ):
        if named:
            parts.append(_named_part(caption, named, tone))
    if changes.other_bytes:
        rows = [_bytes_row(change) for change in changes.other_bytes]
        caption = f"{counted(len(rows), 'engine')} with the same figures and other bytes"
        parts.append(listed(caption, ("engine", "what changed", "before", "now"), rows, folded=True))
    told = f"{counted(changes.same, 'engine')} {'is' if changes.same == 1 else 'are'} the same."
    notices = [Notice("against", changes.against), Notice("same", told)]
    if parts:
        notices.append(Notice("what counts", rules_text()))
    return Section("changes", "What changed", tuple(notices), parts=tuple(parts))


def rules_text() -> str:
    """From how much on a figure counts as better or worse."""
    told = []
    for rule in RULES:
        if rule.least:
            least = f"{rule.least * _PERCENT:g} %" if rule.relative else f"{rule.least:g} {rule.unit}"
            told.append(f"{rule.figure} by more than {least}")
        else:
            told.append(f"{rule.figure} at all")
    return f"{'; '.join(told)}; verdicts by their gates: failed is worse than unproven, and that than passed."


def totals_section(catalogue: Catalogue) -> Section:
    """What all comes to, and what only a board can tell."""
    totals, measured = catalogue.totals, catalogue.totals.measured
    facts = [
        ("engines", f"{totals.engines}, {megabytes(totals.bytes)}"),
        ("of", f"{counted(totals.voices, 'voice')} for {counted(totals.targets, 'target')}"),
        (
            "verdicts",
            f"{totals.verdicts.passed} passed, {totals.verdicts.failed} failed, {totals.verdicts.unproven} unproven",
        ),
    ]
    if totals.jobs:
        facts.append(("jobs", f"{totals.done} of {totals.jobs} done"))
    if measured.nodes:
        took = f"{duration(measured.wall_s)} in sum, {duration(measured.cpu_s)} of processors"
        facts.append(("measured", f"{took}, {megabytes(measured.peak_bytes)} of memory at most for a job"))
        facts.append(("nodes", ", ".join(measured.nodes)))
    if catalogue.strangers:
        facts.append(("others", f"{counted(len(catalogue.strangers), 'engine')} here that no job of this plan made"))
    parts = [_stages_part(catalogue.engines)] if catalogue.engines else []
    if unproven := _unproven_rows(catalogue.engines):
        columns = ("gate", "stage", "engines", "of one of them")
        parts.append(Part(Table("What only a board can tell", columns, unproven)))
    return Section("totals", "Totals", facts=tuple(facts), parts=tuple(parts))


def repeats_section(repeats: Sequence[Repeat]) -> Section:
    """What was made twice, and whether the bytes are the same."""
    rows = tuple(_repeat_row(repeat) for repeat in repeats)
    columns = ("of", "bytes", "files", "first on", "then on")
    same = sum(repeat.same for repeat in repeats)
    notices = [Notice("same bytes", f"{same} of {counted(len(repeats), 'set')} of engines made twice.", "good")]
    if same < len(repeats):
        notices[0] = Notice("other bytes", f"{len(repeats) - same} of {len(repeats)}: see the failures above.", "bad")
    if not any(repeat.measured.apart for repeat in repeats):
        told = "None is known to have been made on two nodes: another may make other bytes."
        notices.append(Notice("one node", told, "warn"))
    return Section("twice", "Made twice", tuple(notices), parts=(Part(Table("What was made twice", columns, rows)),))


def change_text(one: Difference) -> tuple[str, str, str]:
    """A difference as texts: before, now, and by how much."""
    if isinstance(one.before, str) or isinstance(one.after, str):
        return str(one.before), str(one.after), "better" if one.better else "worse"
    if one.unit == "bytes":
        before, after = megabytes(one.before), megabytes(one.after)
    else:
        before, after = (f"{figure(value)} {one.unit}".rstrip() for value in (one.before, one.after))
    if one.unit in ("", "dB") or not one.before:
        return before, after, f"{one.after - one.before:+.4g} {one.unit}".rstrip()
    return before, after, f"{(one.after / one.before - 1) * _PERCENT:+.1f} %"


def _failure_row(failure: Failure) -> Row:
    tone = "warn" if failure.fault in (Fault.WAITING, Fault.REFUSED) else "bad"
    log = PurePosixPath(failure.log).name if failure.log else ""
    cells = (failure_text(failure), failure.fault.value, failure.sentence, failure.measured.node or "", log)
    return Row(cells, tone, {4: href(failure.log)} if failure.log else {})


def _change_rows(change: EngineChange, tone: str) -> Iterator[Row]:
    for one in change.differences:
        yield Row((change.engine, one.figure, *change_text(one)), "good" if one.better else tone)


def _named_part(caption: str, named: Sequence[Named], tone: str) -> Part:
    rows = [Row((one.what, one.told), tone) for one in named]
    return listed(f"{len(rows)} {caption}", ("what", "file or reason"), rows, folded=not tone)


def _bytes_row(change: EngineChange) -> Row:
    why = ", ".join(change.other) or "nothing that the catalogue knows of"
    return Row((change.engine, why, change.sha256_before[:_DIGITS], change.sha256[:_DIGITS]))


def _stages_part(engines: Iterable[EngineEntry]) -> Part:
    """A row for each stage and target."""
    groups: dict[tuple[str, str], list[EngineEntry]] = {}
    for entry in engines:
        groups.setdefault((stage_title(entry), entry.target), []).append(entry)
    rows = tuple(_stage_row(stage, target, group) for (stage, target), group in sorted(groups.items()))
    columns = ("stage", "target", "engines", "voices", "size", "ms a run", "of real time", "simulator, dB")
    return Part(Table("By stage and target (least to most, modelled)", columns, rows, FROM_THIRD))


def _stage_row(stage: str, target: str, group: Sequence[EngineEntry]) -> Row:
    costs = [entry.cost for entry in group if entry.cost]
    cells = (
        stage,
        target,
        str(len(group)),
        str(len({entry.voice for entry in group})),
        megabytes(sum(entry.bytes for entry in group)),
        _range(cost.modelled_ms for cost in costs),
        _range(cost.real_time_factor for cost in costs if cost.real_time_factor is not None),
        _range(entry.simulator_db for entry in group if entry.simulator_db is not None),
    )
    return Row(cells)


def stage_title(entry: EngineEntry) -> str:
    """The stage of an engine, in words."""
    return " ".join(part for part in (entry.family, entry.stage) if part) or "foreign ONNX"


def _range(values: Iterable[float]) -> str:
    found = sorted(values)
    if not found:
        return "-"
    least, most = figure(found[0]), figure(found[-1])
    return least if least == most else f"{least} to {most}"


def _unproven_rows(engines: Iterable[EngineEntry]) -> tuple[Row, ...]:
    """A row for each gate and stage: how many engines, and what is said of one of them."""
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for entry in engines:
        for verdict in entry.notable:
            if verdict.status is Status.UNPROVEN:
                groups.setdefault((verdict.gate, stage_title(entry)), []).append(verdict)
    return tuple(
        Row((gate, stage, str(len(found)), found[0].detail), "warn") for (gate, stage), found in sorted(groups.items())
    )


def _repeat_row(repeat: Repeat) -> Row:
    of = ", ".join(
        part for part in (f"{repeat.family} {repeat.stage}", repeat.voice, repeat.width, repeat.target) if part
    )
    differing = [file.name for file in repeat.files if not file.same]
    files = ", ".join(differing) or counted(len(repeat.files), "file")
    nodes = (repeat.measured.first_node or FOUND_AGAIN, repeat.measured.second_node)
    return Row((of, "same" if repeat.same else "differ", files, *nodes), "good" if repeat.same else "bad")
