"""The command `probe`: writes a kit that shows on a board what no PC can tell of an engine.

First the engine itself, on its real inputs; then each rewritten operator that it uses, and each part of its graph that
overflows a hardware field, as small engines of their own: where the engine is wrong on a board, these say which.
"""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from rknn_tts_runtime.probing.kit import KIT_FILE, KIT_SCHEMA, OPERATOR, REGTASK

from contracts.errors import GateFailure, NotWritten, Refusal, ToolFailure, UserInput
from engine.folders import new_folder
from rknn_tts.hints import did_you_mean
from rknn_tts.places import make_folder
from rknn_tts.probe.engine_case import engine_draft, fields_of
from rknn_tts.probe.forms import AUTO, CHOICES, NONE, chosen_forms, read_twin
from rknn_tts.probe.kit_files import Draft, KitFolder
from rknn_tts.probe.micro_engines import MicroGraph, Workshop, compiled
from rknn_tts.probe.operator_graphs import operator_graph
from rknn_tts.probe.part_builds import PartBuilds
from rknn_tts.probe.regtask_graphs import field_graph, field_parts
from rknn_tts.probe.subject import Probed, open_subject
from rknn_tts.progress import Say
from rknn_tts.request import Request
from rknn_tts.steps import open_steps

ENDING = ".probe"
"""Of the folder beside the engine that a kit is written to, where the user names none."""

ANOTHER = "--output names another folder"


@dataclass(frozen=True)
class CaseInfo:
    """A case of the kit, for the user.

    Attributes:
        name, kind, what, proves: as in the kit.
        feeds: how many.
        bound_db: the least of its outputs' bounds.
        simulator_db: what the simulator reached on it; None where that is not known.
    """

    name: str
    kind: str
    what: str
    feeds: int
    bound_db: float
    simulator_db: float | None
    proves: tuple[str, ...]


@dataclass(frozen=True)
class WrittenKit:
    """What the command came to.

    Attributes:
        folder: the kit.
        target: the chip that it is for.
        size_bytes: of all its files.
        twins_bytes: of the twins among them, which only a PC needs.
        cases: what is in it.
        notes: sentences for the user.
        reused: names of the steps whose finished result was found.
    """

    folder: str
    target: str
    size_bytes: int
    twins_bytes: int
    cases: tuple[CaseInfo, ...]
    notes: tuple[str, ...]
    reused: tuple[str, ...]


def write_kit(request: Request, say: Say) -> WrittenKit:
    """Write the kit of the engine that `request` names.

    Raises:
        UserInput: no engine that can be probed, no such choice of operators, or something that is no kit stands in the
            folder.
        ToolFailure, NotWritten: onnxruntime broke, or the folder cannot be written; an earlier kit is as it was.
    """
    assert request.model is not None
    choice = request.operators or AUTO
    if choice not in CHOICES:
        hint = did_you_mean(choice, CHOICES)
        raise UserInput(f"--operators {choice:.100}: {', '.join(CHOICES)} is expected.{hint}")
    probed = open_subject(Path(request.model))
    folder = _folder(request.output, probed)
    steps = open_steps(request.force, say.note)
    with _published(folder) as partial, tempfile.TemporaryDirectory(prefix="rknn-tts-probe-") as work:
        manifest, kit = probed.manifest, KitFolder(partial)
        accepted, toolkit = manifest.log.accepted, manifest.toolkit.version
        shop = Workshop(request, manifest.target, toolkit, accepted, partial, Path(work), steps, say)
        say.step("running the twin on the engine's inputs")
        engine, notes = engine_draft(probed)
        drafts, more = _small_cases(probed, engine, choice, shop)
        for draft in (engine, *drafts):
            kit.add(draft)
        kit.finish(manifest)
        sizes = {path.name: path.stat().st_size for path in partial.iterdir()}
    return WrittenKit(
        folder=str(folder),
        target=manifest.target,
        size_bytes=sum(sizes.values()),
        twins_bytes=sum(size for name, size in sizes.items() if name.endswith(".onnx")),
        cases=tuple(map(_info, (engine, *drafts))),
        notes=(*notes, *more),
        reused=tuple(dict.fromkeys(steps.reused)),
    )


def _small_cases(probed: Probed, engine: Draft, choice: str, shop: Workshop) -> tuple[list[Draft], list[str]]:
    """The cases beside the engine's own, and sentences for the user: one that cannot be compiled is left out."""
    drafts: list[Draft] = []
    notes: list[str] = []
    wanted = _operators(probed, choice, shop)
    if probed.manifest.quantisation is not None and choice != NONE:
        notes.append("The engine is of 8 bits, and the engines of its operators are of fp16.")
    for name, kind, what, proves, make_graph in chain(wanted, _fields(probed, engine, shop, notes)):
        try:
            graph = make_graph()
            if graph is None:
                notes.append(f"{name}: its passes leave it as it is on {shop.target}, so that there is no case of it.")
            else:
                drafts.append(compiled(graph, name, kind, what, proves, shop))
        except (GateFailure, Refusal, ToolFailure) as error:
            notes.append(f"{name}: there is no case of it, for its engine was not built: {error}")
    return drafts, notes


_Wanted = tuple[str, str, str, tuple[str, ...], Callable[[], MicroGraph | None]]
"""Name, kind, what it shows, what it proves, and what makes the graph that is compiled for it."""


def _operators(probed: Probed, choice: str, shop: Workshop) -> Iterator[_Wanted]:
    twin = read_twin(probed.model, {record.name: record.hits for record in probed.manifest.passes})
    forms = chosen_forms(choice, twin)
    for number, form in enumerate(forms, start=1):
        shop.say.step(f"operator {number} of {len(forms)}: {form.name}")
        yield form.name, OPERATOR, form.what, form.proves, functools.partial(operator_graph, form, shop.target)


def _fields(probed: Probed, engine: Draft, shop: Workshop, notes: list[str]) -> Iterable[_Wanted]:
    """The parts of the graph that overflow its hardware fields; what is not found is told in `notes`."""
    from engine.environment import converter_python
    from logs.regtask import parse_accepted

    fields = fields_of(probed.manifest)
    if not fields:
        return
    accepted, rules = tuple(map(parse_accepted, shop.accepted)), probed.manifest.toolkit.disabled_rules
    python = converter_python(shop.toolkit)
    builds = PartBuilds(shop.request, shop.target, shop.toolkit, python, accepted, rules, shop.steps)
    parts = field_parts(probed.model, fields, builds.fields, shop.say)
    for number, part in enumerate(parts, start=1):
        what = f"the smallest part found to overflow {', '.join(part.fields)}: {part.what}; on the twin's own values"
        make_graph = functools.partial(field_graph, part, number, probed.model, engine.feeds[0], probed.manifest)
        yield f"regtask_{number}", REGTASK, what, part.fields, make_graph
    alone = [name for name in fields if not any(name in part.fields for part in parts)]
    if alone:
        notes.append(
            f"No part of the graph was found that overflows {', '.join(alone)} by itself: the engine's own case "
            "decides."
        )


def _folder(output: str | None, probed: Probed) -> Path:
    """Where the kit goes.

    Raises:
        UserInput: a file, or something that is no kit, stands there; or nothing can be written there.
    """
    folder = Path(output) if output is not None else probed.engine.with_suffix(ENDING)
    if folder.exists() and not (folder.is_dir() and (_is_kit(folder) or not any(folder.iterdir()))):
        raise UserInput(f"{folder}: stands there already, and is no probe kit; {ANOTHER}.")
    if folder.resolve() == probed.engine.resolve().parent:
        raise UserInput(f"{folder}: holds the engine itself; {ANOTHER}.")
    make_folder(folder.absolute().parent, ANOTHER)
    return folder


def _is_kit(folder: Path) -> bool:
    try:
        data = json.loads((folder / KIT_FILE).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(data, dict) and data.get("schema") == KIT_SCHEMA


@contextmanager
def _published(folder: Path) -> Iterator[Path]:
    """A folder to write to, which becomes `folder` at the end; where anything fails, that is as it was.

    Raises:
        NotWritten: it cannot be written.
    """
    try:
        with new_folder(folder.absolute()) as partial:
            yield partial
    except OSError as error:
        raise NotWritten(f"{folder}: cannot be written ({error.strerror or error}); {ANOTHER}.") from error


def _info(draft: Draft) -> CaseInfo:
    feeds = len(draft.feeds)
    return CaseInfo(draft.name, draft.kind, draft.what, feeds, draft.bound_db, draft.simulator_db, draft.proves)
