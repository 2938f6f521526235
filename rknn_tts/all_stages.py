"""`engine FAMILY --all`: every stage of a family, all of their files in one folder, or none.

1. Every stage finds its checkpoint; what any of them lacks is told before anything is read.
2. Every stage is exported and proven, one after the other, and let go of: a whole family does not fit into memory.
3. The engines are built. What has come of a stage by then lies in the finished steps, so behind an interruption, or
   a stage that failed, the same command goes on there.
4. All files are put in their places, with the manifest of the whole and the digests of all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from contracts.errors import GateFailure, Refusal, RknnTtsError, ToolFailure, UserInput
from contracts.quantisation import W8A8
from converters.registry import STAGES
from converters.stages import Stage, StageOptions, find_stage
from rknn_tts.all_publication import StageFinished, publish_all
from rknn_tts.checkpoint_to_onnx import Conversion, open_conversions
from rknn_tts.checksums import SUMS, check_sums_place
from rknn_tts.earning.weighing import weighed
from rknn_tts.export_step import Proof
from rknn_tts.exported_sources import exported_sources
from rknn_tts.graph_at_hand import OnnxSource
from rknn_tts.onnx_to_engine import check_set, finish_set, prove_source
from rknn_tts.outcome import Outcome
from rknn_tts.overwriting import check_set_place
from rknn_tts.places import check_set_output, engine_places, family_set_place
from rknn_tts.progress import Say
from rknn_tts.publication import Finished
from rknn_tts.request import Request
from rknn_tts.roles import RoleSay, verdicts_of
from rknn_tts.steps import Steps

FOR_ONE = ("stage", "member", "sample", "text", "ids")
"""Options that are about one engine."""

BUILDING_STEPS = ("build", "judge")
"""The steps behind the proof. That those before it are found again there is this command's own doing."""

_NOTHING_CHOSEN = StageOptions()


@dataclass(frozen=True)
class _Ready:
    """A stage whose graphs are proven, with what is asked of it."""

    stage: Stage
    request: Request
    sources: tuple[OnnxSource, ...]


def engines_of_all(request: Request, target: str, steps: Steps, say: Say) -> Outcome:
    """Every stage of the family to its engines, with a manifest of all of them and the digests of their files.

    Raises:
        RknnTtsError: refused, a gate failed, or the toolkit broke, and of which stage; no file is written then.
    """
    plan = plan_of(request)
    check_set_output(request.output, otherwise="")
    opened = _opened(plan, target, say)
    ready: list[_Ready] = []
    finished: list[StageFinished] = []
    for stage, asked in plan:
        with _of_stage(stage):
            ready.append(_ready(stage, asked, target, opened.pop(stage.name), steps))
    place = _checked_place(request, target, ready)
    building = dataclasses.replace(steps, reused=[])
    for one in ready:
        with _of_stage(one.stage, finished):
            made = finish_set(one.request, target, one.sources, building, RoleSay(say, one.stage.name))
            finished.append(StageFinished(one.stage.name, tuple(map(_without_feeds, made))))
    steps.reused.extend(name for name in building.reused if name in BUILDING_STEPS)
    return publish_all(finished, place, steps)


def plan_of(request: Request) -> list[tuple[Stage, Request]]:
    """The family's stages, each with what is asked of it: those of the options that it has.

    Raises:
        UserInput: an option is about one engine, or no stage has it; or there is no checkpoint for a stage.
    """
    for name in FOR_ONE:
        if getattr(request, name) is not None:
            raise UserInput(f"--all builds every engine, and --{name} is about one: leave one of them out.")
    find_stage(STAGES, request.family or "", None)  # says which families there are
    stages = [stage for stage in STAGES if stage.family == request.family]
    without = [stage for stage in stages if stage.default_checkpoint is None]
    if request.checkpoint is None and without:
        told = ", ".join(stage.name for stage in without)
        raise UserInput(
            f"Which checkpoint? Of {request.family}, {told} has no default one: --checkpoint {without[0].checkpoints}."
        )
    names = [field.name for field in dataclasses.fields(StageOptions)]
    given = [name for name in names if getattr(request, name) not in (None, False)]
    for name in given:
        if not any(_takes(stage, name) for stage in stages):
            raise UserInput(f"{request.family} has no stage with an option --{name.replace('_', '-')}.")
    plan = []
    for stage in stages:
        others = {name: getattr(_NOTHING_CHOSEN, name) for name in given if not _takes(stage, name)}
        plan.append((stage, dataclasses.replace(request, stage=stage.name, **others)))
    return plan


def _takes(stage: Stage, option: str) -> bool:
    """Whether an option of the whole command is meant for `stage`: a calibration set holds the inputs of the one stage
    that is built in 8 bits."""
    if option == "calibration" and (stage.precision is None or stage.precision.default != W8A8):
        return False
    return option in stage.options


def _opened(plan: Sequence[tuple[Stage, Request]], target: str, say: Say) -> dict[str, tuple[Conversion, ...]]:
    """The conversions of each stage, by its name; no checkpoint is read yet.

    Raises:
        UserInput: stages lack their checkpoint, or refuse an option; each is told.
    """
    found: dict[str, tuple[Conversion, ...]] = {}
    refused: dict[str, list[str]] = {}
    for stage, request in plan:
        try:
            found[stage.name] = open_conversions(request, target, RoleSay(say, stage.name))
        except (UserInput, Refusal) as error:
            refused.setdefault(str(error), []).append(stage.name)
    if refused:
        raise UserInput(" ".join(f"{', '.join(names)}: {sentence}" for sentence, names in refused.items()))
    return found


def _ready(stage: Stage, request: Request, target: str, conversions: tuple[Conversion, ...], steps: Steps) -> _Ready:
    """A stage proven; nothing keeps what was open for that."""
    if request.weigh:
        conversions = weighed(conversions, request, target, steps)
    sources = exported_sources(conversions, steps)
    check_set(request, target, sources)
    proven = []
    for source, conversion in zip(sources, conversions, strict=True):
        with _of_role(source.contract.role):
            numbers = prove_source(request, target, source, steps, conversion.say)
        proven.append(dataclasses.replace(source, prove=_already(numbers.proof)))
    return _Ready(stage, request, tuple(proven))


def _already(proof: Proof) -> Callable[[], Proof]:
    return lambda: proof


def _without_feeds(finished: Finished) -> Finished:
    """`finished` without what was read of its files for the build."""
    build = finished.build
    return dataclasses.replace(finished, build=dataclasses.replace(build, source=dataclasses.replace(build.source)))


def _checked_place(request: Request, target: str, ready: Sequence[_Ready]) -> Path:
    """Where the manifest of them all goes, in the one folder of their engines.

    Raises:
        UserInput: a file there is not ours to replace, or there is more than one folder.
    """
    sources = [source for one in ready for source in one.sources]
    folders = {engine_places(s.contract, s.stem, target, request.output).engine.parent: s.contract for s in sources}
    if len(folders) > 1:
        told = ", ".join(f"{contract.stage} in {folder}" for folder, contract in folders.items())
        raise UserInput(f"The stages of {request.family} would lie apart ({told}); --output names one folder for all.")
    (folder,) = folders
    place = family_set_place(folder, request.family or "")
    check_set_place(sources, place, request.output is not None)
    check_sums_place(folder / SUMS)
    return place


@contextmanager
def _of_stage(stage: Stage, finished: Sequence[StageFinished] = ()) -> Iterator[None]:
    """An error from inside says of which stage it is; a failed gate brings the verdicts of those `finished` before."""
    try:
        yield
    except GateFailure as error:
        earlier = [verdict for one in finished for verdict in one.verdicts]
        verdicts = (*earlier, *verdicts_of(stage.name, error.verdicts))
        raise GateFailure(f"{stage.name}: {error}", verdicts, error.log) from error
    except ToolFailure as error:
        raise ToolFailure(f"{stage.name}: {error}", error.log, error.shortage) from error
    except RknnTtsError as error:
        raise type(error)(f"{stage.name}: {error}") from error


@contextmanager
def _of_role(role: str | None) -> Iterator[None]:
    """A failed gate from inside says of which engine it is, of a stage of several."""
    try:
        yield
    except GateFailure as error:
        if role is None:
            raise
        raise GateFailure(str(error), verdicts_of(role, error.verdicts), error.log) from error
