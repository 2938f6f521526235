"""`rknn-tts report`: one HTML page of an engine, or of several beside each other."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from contracts.errors import Refusal, RknnTtsError, UserInput
from contracts.files import write_whole
from contracts.manifest import Manifest
from converters.stages import Sentence
from rknn_tts.engine_page.build_log import log_classes
from rknn_tts.engine_page.compare import comparison_sections
from rknn_tts.engine_page.elements import EnginePart, Page, Section
from rknn_tts.engine_page.hearing import heard
from rknn_tts.engine_page.listening import listening_section, silent_section
from rknn_tts.engine_page.render import is_page, page_html
from rknn_tts.engine_page.reproducing import reproducing_section
from rknn_tts.engine_page.sections import badges_of, sections_of
from rknn_tts.engine_page.simulated import simulated
from rknn_tts.engine_page.subjects import Subject, Subjects, subjects_at
from rknn_tts.layer_file import layers_of
from rknn_tts.places import ANOTHER_PLACE, check_folder, make_folder
from rknn_tts.progress import Say
from rknn_tts.request import Request
from rknn_tts.roles import stage_text
from rknn_tts.sample import asked_by, asked_sentence
from rknn_tts.steps import Steps, open_steps

SUFFIX = ".html"

SEVERAL = "report.html"
"""Of the page of several engines, where --output names none."""

_MODELLED = "Times are modelled unless a board measured them; nothing here was measured on a board by rknn-tts itself."


@dataclass(frozen=True)
class WrittenPage:
    """A page that was written.

    Attributes:
        file: its file.
        bytes: its size.
        engines: the engines that it is of, as it calls them.
        notes: what it lacks, and why, as sentences.
    """

    file: str
    bytes: int
    engines: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Wanted:
    """What is to be heard of each engine.

    Attributes:
        sample: whether anything is.
        checkpoint: where the user says that it is.
        sentence: what is said.
        insisted: whether the user asked for something that must then be done, or the command fails.
    """

    sample: bool
    checkpoint: str | None
    sentence: Sentence
    insisted: bool


def write_page(request: Request, say: Say) -> WrittenPage:
    """Write the page of the engines that `request` names.

    Raises:
        UserInput: there are none, or only one that cannot be read; a sample is asked for that cannot be spoken; or
            something else stands where the page goes.
    """
    sentence = asked_sentence(request)
    asked = [*asked_by(request), *(["--checkpoint"] if request.checkpoint is not None else [])]
    if request.no_sample and asked:
        raise UserInput(f"{asked[0]} is about a sample, and --no-sample leaves it out: give one of them.")
    say.step("reading what was built")
    subjects = subjects_at(request.engines, Path.cwd())
    place = page_place(request.output, subjects)
    _check_replaced(place, subjects)
    wanted = _Wanted(not request.no_sample, request.checkpoint, sentence, bool(asked) and not subjects.compared)
    steps = open_steps(request.force, say.note)
    notes: list[str] = []
    anchors = [f"engine-{number + 1}" if one.found else "" for number, one in enumerate(subjects.engines)]
    parts = tuple(
        _part(anchor, subject, request, wanted, steps, say, notes)
        for anchor, subject in zip(anchors, subjects.engines, strict=True)
        if anchor
    )
    together = _together(subjects, wanted, steps, say, notes)
    say.step("drawing the page")
    data = page_html(_page(subjects, anchors, together, parts))
    make_folder(place.parent)
    write_whole(place, data)
    names = tuple(subject.name for subject in subjects.engines)
    faults = [f"{subject.name}: {subject.fault}" for subject in subjects.engines if subject.fault]
    return WrittenPage(str(place), len(data), names, (*faults, *notes))


def page_place(output: str | None, subjects: Subjects) -> Path:
    """Where the page goes.

    Raises:
        UserInput: `output` is a file of another kind, or several engines stand in several folders and it names none.
    """
    name = SEVERAL if subjects.compared else f"{subjects.engines[0].path.stem}{SUFFIX}"
    if output is not None:
        chosen = Path(output)
        if output.endswith("/") or chosen.is_dir() or not chosen.suffix:
            return chosen / name
        if chosen.suffix == SUFFIX:
            return chosen
        raise UserInput(f"--output {output}: a folder or a file ending in {SUFFIX} is expected.")
    if subjects.folder is not None:
        return subjects.folder / name
    folders = list(dict.fromkeys(subject.path.parent for subject in subjects.engines))
    if len(folders) > 1:
        told = f"The engines stand in several folders ({folders[0]} and {folders[1]})"
        raise UserInput(f"{told}; --output says where the page goes.")
    return folders[0] / name


def _check_replaced(place: Path, subjects: Subjects) -> None:
    """See that nothing but an earlier page is replaced, and that there is room for one."""
    check_folder(place.parent)
    if not os.path.lexists(place):
        return
    inputs = {subject.path.resolve() for subject in subjects.engines}
    if not place.is_file() or place.resolve() in inputs or not is_page(place):
        raise UserInput(f"{place}: is no page of rknn-tts, and would be replaced; {ANOTHER_PLACE}.")


def _page(subjects: Subjects, anchors: list[str], together: list[Section], parts: tuple[EnginePart, ...]) -> Page:
    if not subjects.compared:
        (part,) = parts
        return Page(part.name, _MODELLED, (), parts)
    count = len(subjects.engines)
    where = f" in {subjects.folder.name or subjects.folder}" if subjects.folder else ""
    title = f"{count} engine{'s' * (count != 1)}{where}"
    compared = comparison_sections(subjects.engines, anchors, subjects.sets)
    return Page(title, _MODELLED, (*compared, *together), parts)


def _together(subjects: Subjects, wanted: _Wanted, steps: Steps, say: Say, notes: list[str]) -> list[Section]:
    """What a ladder sounds like, its windows picked as a board picks them; of each set that is one."""
    known = {one.engine.resolve(): one for one in subjects.engines}
    sections = []
    for number, shared in enumerate(subjects.sets if wanted.sample else ()):
        members = [known.get(place.with_suffix(".rknn").resolve()) for place in shared.members]
        engines = [(m.found.manifest, m.engine) for m in members if m and m.found and m.found.manifest]
        if len(engines) < 2 or len(engines) < len(members) or not _is_ladder([manifest for manifest, _ in engines]):
            continue
        try:
            hearing = heard(engines, wanted.checkpoint, wanted.sentence, steps, say)
        except RknnTtsError as error:
            notes.append(f"{shared.name} is not heard: {error}")
            continue
        sections.append(listening_section(hearing, f"hearing-{number + 1}", f"Hearing of {shared.name}"))
    return sections


def _is_ladder(manifests: list[Manifest]) -> bool:
    """Whether engines are of one stage and one checkpoint, and differ by the width of their windows alone."""
    alike = {(one.family, one.stage, one.target, one.source, one.toolkit.version) for one in manifests}
    widths = {one.window.frames for one in manifests if one.window}
    return len(alike) == 1 and len(widths) == len(manifests)


def _part(
    anchor: str, subject: Subject, request: Request, wanted: _Wanted, steps: Steps, say: Say, notes: list[str]
) -> EnginePart:
    """An engine's part of the page; `notes` gets what is missing."""
    found = subject.found
    assert found is not None
    manifest = found.manifest
    layers, _ = layers_of(manifest, subject.path, Path.cwd())
    log, log_note = log_classes(manifest, subject.path, Path.cwd()) if manifest else (None, "")
    sections = sections_of(found, layers, log, log_note)
    notes += [f"{subject.name}: {note}" for note in found.notes]
    if manifest is not None:
        section, command = _hearing(subject, manifest, wanted, steps, say, notes)
        sections.insert(1, section)
        folder = subject.path.parent.as_posix()
        sections.append(reproducing_section(manifest, "" if folder == "." else folder, command, request))
    what = stage_text(manifest.family, manifest.stage, manifest.role) + f", {manifest.target}" if manifest else "engine"
    badges = badges_of(manifest.verdicts) if manifest else ()
    return EnginePart(anchor, subject.name, what, badges, tuple(sections))


def _hearing(
    subject: Subject, manifest: Manifest, wanted: _Wanted, steps: Steps, say: Say, notes: list[str]
) -> tuple[Section, str | None]:
    """The section with the sample, and the command that was found for it; `notes` gets why there is none."""
    if not wanted.sample:
        return silent_section("It was left out (--no-sample)."), None
    try:
        found = heard([(manifest, subject.engine)], wanted.checkpoint, wanted.sentence, steps, say)
    except RknnTtsError as error:
        if wanted.insisted:
            raise
        notes.append(f"{subject.name} is not heard: {error}")
        return _silent(subject, manifest, f"Nothing is heard of it: {error}", steps, say), None
    return listening_section(found), found.command


def _silent(subject: Subject, manifest: Manifest, why: str, steps: Steps, say: Say) -> Section:
    """The section of an engine that is not heard: what the simulator gave, where that is at hand."""
    try:
        return silent_section(why, simulated(manifest, subject.engine, steps, say))
    except Refusal as error:
        return silent_section(why, unfound=f"Nothing is drawn: {error}")
