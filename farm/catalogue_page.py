"""The catalogue as one HTML file: no script, nothing fetched, and the same bytes for the same catalogue.

Failures come first, then what changed, the totals, and the engines: a line for each voice, which opens its table. Names
come from checkpoints, and are escaped; links lead to files of the catalogue's folder and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path, PurePosixPath

from jinja2 import Environment

from contracts.verdicts import Status
from cost.aperture import MIB
from farm.catalogue import Catalogue, EngineEntry, Fault
from farm.catalogue_diff import Changes
from farm.page_parts import (
    FROM_FOURTH,
    UNKNOWN,
    Badge,
    Row,
    Section,
    Stage,
    Table,
    Voice,
    counted,
    duration,
    figure,
    href,
    megabytes,
)
from farm.page_sections import changes_section, failures_section, repeats_section, stage_title, totals_section
from pages.theme import environment, is_marked

MARK = b'<meta name="generator" content="rknn-tts catalogue">'
"""In the first bytes of every page: what may be replaced by another."""

_TEMPLATES = Path(__file__).resolve().parent / "templates"

_DIGITS = 12
"""Hex digits of a digest that are shown; catalogue.json has all of it."""

_INTRO = (
    'Times are modelled, not measured on a board; "of real time" is seconds of a run for each second of audio that it '
    "emits: below 1 is faster than speech."
)

_COLUMNS = (
    "engine",
    "target",
    "verdicts",
    "ms a run",
    "ms a frame or code",
    "of real time",
    "simulator, dB",
    "size",
    "on the CPU",
    "address space",
    "built in",
    "memory",
    "sha256",
)


def page_html(catalogue: Catalogue, changes: Changes | None = None) -> bytes:
    """The page of `catalogue` as the bytes of its file (UTF-8); `changes` since an earlier one are shown too."""
    sections = [failures_section(catalogue)]
    if changes is not None:
        sections.append(changes_section(changes))
    sections.append(totals_section(catalogue))
    if catalogue.repeats:
        sections.append(repeats_section(catalogue.repeats))
    values: dict[str, str | Sequence[Badge] | Sequence[Section] | Sequence[Stage]] = {
        "title": f"Catalogue of {catalogue.matrix}" if catalogue.matrix else "Catalogue",
        "intro": _INTRO,
        "badges": tuple(_badges(catalogue)),
        "sections": tuple(sections),
        "stages": tuple(_stages(catalogue.engines)),
    }
    text = _environment().get_template("catalogue.html.j2").render(values)
    return text.encode("utf-8", errors="backslashreplace")


def is_page(path: Path) -> bool:
    """Whether the file `path` is a catalogue's page.

    Raises:
        OSError: it cannot be read.
    """
    return is_marked(path, MARK)


@cache
def _environment() -> Environment:
    return environment(_TEMPLATES)


def _badges(catalogue: Catalogue) -> Iterable[Badge]:
    refused = sum(failure.fault is Fault.REFUSED for failure in catalogue.failures)
    failed = sum(failure.fault not in (Fault.WAITING, Fault.REFUSED) for failure in catalogue.failures)
    yield Badge(counted(len(catalogue.engines), "engine"), "good" if catalogue.engines else "warn")
    if failed:
        yield Badge(f"{failed} failed", "bad")
    if refused:
        yield Badge(f"{refused} refused", "warn")
    if catalogue.unplanned:
        yield Badge(f"{len(catalogue.unplanned)} left out", "warn")
    if catalogue.totals.verdicts.unproven:
        yield Badge(f"{counted(catalogue.totals.verdicts.unproven, 'verdict')} unproven", "warn")


def _stages(engines: Iterable[EngineEntry]) -> Iterable[Stage]:
    stages: dict[str, dict[str, list[EngineEntry]]] = {}
    for entry in engines:
        stages.setdefault(stage_title(entry), {}).setdefault(entry.voice, []).append(entry)
    for number, (title, voices) in enumerate(stages.items(), 1):
        told = f"{title}: {counted(len(voices), 'voice')}"
        yield Stage(f"stage-{number}", told, tuple(_voice(name, group) for name, group in voices.items()))


def _voice(name: str, engines: Sequence[EngineEntry]) -> Voice:
    language = next((entry.language for entry in engines if entry.language), None)
    size = megabytes(sum(entry.bytes for entry in engines))
    what = ", ".join(part for part in (language, counted(len(engines), "engine"), size) if part)
    failed = sum(entry.verdicts.failed for entry in engines)
    unproven = sum(entry.verdicts.unproven for entry in engines)
    badges = [Badge(f"{failed} failed", "bad")] if failed else []
    badges += [Badge(f"{unproven} unproven", "warn")] if unproven else []
    source = engines[0].source
    return Voice(name, what, tuple(badges), Table(source, _COLUMNS, tuple(map(_row, engines)), FROM_FOURTH))


def _row(entry: EngineEntry) -> Row:
    cost, measured = entry.cost, entry.measured
    cells = (
        PurePosixPath(entry.path).stem,
        entry.target,
        _verdicts(entry),
        _time(entry),
        figure(cost.unit_ms if cost else None),
        figure(cost.real_time_factor if cost else None),
        figure(entry.simulator_db),
        megabytes(entry.bytes),
        str(cost.cpu_layers) if cost else UNKNOWN,
        f"{entry.aperture.context_bytes / MIB:.0f} MiB" if entry.aperture else UNKNOWN,
        duration(measured.build_s),
        megabytes(measured.build_peak_bytes),
        entry.sha256[:_DIGITS],
    )
    return Row(cells, _tone(entry), {0: href(entry.page)} if entry.page else {})


def _verdicts(entry: EngineEntry) -> str:
    counts = entry.verdicts
    told = {Status.FAILED: counts.failed, Status.UNPROVEN: counts.unproven, Status.PASSED: counts.passed}
    return ", ".join(f"{count} {status.value}" for status, count in told.items() if count) or "none"


def _time(entry: EngineEntry) -> str:
    """Milliseconds of a run; both figures where a board measured it too."""
    modelled = figure(entry.cost.modelled_ms if entry.cost else None)
    board_ms = entry.measured.board_ms
    return modelled if board_ms is None else f"{figure(board_ms)} on a board, {modelled} modelled"


def _tone(entry: EngineEntry) -> str:
    if entry.verdicts.failed:
        return "bad"
    return "warn" if entry.verdicts.unproven else "good" if entry.verdicts.passed else ""
