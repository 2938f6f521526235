"""The commands that convert: the road of a checkpoint, or a part of it.

Finished steps are found again by digest (`steps`), so a repeated command only checks that its files are in place.
Heavy libraries are imported inside the steps that need them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from contracts.errors import GateFailure, UserInput
from contracts.files import Content
from contracts.verdicts import Measurement, Verdict
from converters.stages import SavedCheckpoint
from engine.targets import resolve_target
from rknn_tts.all_stages import engines_of_all
from rknn_tts.checkpoint_to_onnx import Conversion, open_conversions
from rknn_tts.checksums import with_sums
from rknn_tts.earning.weighing import weighed
from rknn_tts.exported_sources import exported_sources
from rknn_tts.failing import stop_if_failed
from rknn_tts.graph_at_hand import OnnxSource, check_graph, judge_numbers, twin_of, with_proof
from rknn_tts.onnx_to_engine import convert_onnx, convert_set, planned_build
from rknn_tts.outcome import Outcome
from rknn_tts.overwriting import check_export_places
from rknn_tts.places import ANOTHER_PLACE, check_set_output, export_failed_place, export_place, make_folder
from rknn_tts.progress import Say
from rknn_tts.publish import each_once, publish
from rknn_tts.request import Request
from rknn_tts.roles import RoleSay, measurements_of, shared_cache, verdicts_of
from rknn_tts.sample import Speaking, add_sample, check_sample_folder, read_sentence, sentence_of
from rknn_tts.saving import ANOTHER_PLACE_TO_SAVE, saved_checkpoint
from rknn_tts.steps import Steps, open_steps


def engine(request: Request, say: Say) -> Outcome:
    """A checkpoint to an engine with its manifest, ONNX twin and host half.

    Raises:
        RknnTtsError: refused, a gate failed, or the toolkit broke; no engine is written then.
    """
    target = _target(request)
    sentence = sentence_of(request)
    steps = open_steps(request.force, say.note)
    if request.all:
        return engines_of_all(request, target, steps, say)
    conversions = _conversions(request, target, steps, say)
    if request.sample is not None:
        check_sample_folder(Path(request.sample))
        sentence = read_sentence(conversions[0], sentence, steps)
    sources = exported_sources(conversions, steps)
    if len(sources) == 1:
        outcome = convert_onnx(request, target, sources[0], steps, say)
    else:
        outcome = convert_set(request, target, sources, steps, say)
    if request.sample is None:
        return outcome
    speaking = [
        Speaking(planned_build(request, target, source), conversion)
        for source, conversion in zip(sources, conversions, strict=True)
    ]
    # Of engines that are no ladder, the first is the one for sentences of usual length.
    engines = speaking if conversions[0].origin.options.windows is not None else speaking[:1]
    return add_sample(outcome, engines, Path(request.sample), sentence, steps, say)


def export(request: Request, say: Say) -> Outcome:
    """A checkpoint to its NPU-ready ONNX, contract and proof inside, and its host half beside it.

    Raises:
        RknnTtsError: refused, or a gate failed; nothing is written then.
    """
    steps = open_steps(request.force, say.note)
    target = _target(request) if request.target is not None else None
    conversions = _conversions(request, target, steps, say)
    saved = SavedCheckpoint()
    if request.save_checkpoint is not None:
        saved = saved_checkpoint(conversions[0].origin, Path(request.save_checkpoint))
    sources = exported_sources(conversions, steps)
    if len(sources) == 1:
        exports = [_finished_export(sources[0], target, request, steps, say)]
    else:
        exports = _exports_of_set(sources, target, request, steps, say)
    files = with_sums(each_once((*(item for exported in exports for item in exported.files), *saved.files)))
    publish(files, ANOTHER_PLACE_TO_SAVE if saved.files else ANOTHER_PLACE)
    for source in sources:
        export_failed_place(source.contract, source.stem).unlink(missing_ok=True)
    return Outcome(
        files=tuple(str(path) for path, _ in files),
        manifest=None,
        verdicts=tuple(verdict for exported in exports for verdict in exported.verdicts),
        measurements=tuple(figure for exported in exports for figure in exported.measurements),
        notes=(*dict.fromkeys(note for source in sources for note in source.notes), *saved.notes),
        reused=tuple(dict.fromkeys(steps.reused)),
        models=tuple(str(exported.files[0][0]) for exported in exports),
    )


@dataclass(frozen=True)
class FinishedExport:
    """An ONNX that every gate lets through, with the files that are written for it, and is not in its place yet."""

    files: tuple[tuple[Path, Content], ...]  # the ONNX first
    verdicts: tuple[Verdict, ...]
    measurements: tuple[Measurement, ...]


def _finished_export(
    source: OnnxSource, target: str | None, request: Request, steps: Steps, say: Say
) -> FinishedExport:
    place = export_place(source.contract, source.stem, target, request.output)
    check_export_places(source, place, request.output is not None)
    make_folder(place.parent)
    graph, numbers = check_graph(source.graph, steps, say), judge_numbers(source, steps)
    verdicts = (*source.refused, *numbers.verdicts, *graph.verdicts)
    failed = export_failed_place(source.contract, source.stem)
    stop_if_failed(verdicts, failed, None, f"{place.name} was not written")
    contract = with_proof(source.contract, numbers.proof)
    files: list[tuple[Path, Content]] = [(place, twin_of(source, numbers.proof))]
    if contract.host and source.host:
        files.append((place.with_name(contract.host.file), source.host.read_bytes()))
    return FinishedExport(tuple(files), verdicts, (*contract.measurements, *graph.measurements))


def _exports_of_set(
    sources: Sequence[OnnxSource], target: str | None, request: Request, steps: Steps, say: Say
) -> list[FinishedExport]:
    """The exports of engines that belong together; each verdict says of which it is."""
    shared_cache([source.contract for source in sources])
    made: list[FinishedExport] = []
    for source in sources:
        role = source.contract.role
        try:
            one = _finished_export(source, target, request, steps, RoleSay(say, role))
        except GateFailure as error:
            earlier = [verdict for other in made for verdict in other.verdicts]
            raise GateFailure(str(error), (*earlier, *verdicts_of(role, error.verdicts)), error.log) from error
        made.append(FinishedExport(one.files, verdicts_of(role, one.verdicts), measurements_of(role, one.measurements)))
    return made


def compile_onnx(request: Request, say: Say) -> Outcome:
    """An ONNX, exported by `export` or by anyone, to an engine; several exports of one set to all engines of that set.

    Raises:
        RknnTtsError: refused, a gate failed, or the toolkit broke; no engine is written then.
    """
    target = _target(request)
    if request.model is None:
        raise UserInput("Which ONNX? rknn-tts compile MODEL.onnx --target rk3588")
    from rknn_tts.onnx_source import open_set, open_source

    steps = open_steps(request.force, say.note)
    if request.also:
        check_set_output(request.output, "")
        sources = open_set([Path(path) for path in (request.model, *request.also)], request, target, steps, say)
        return convert_set(request, target, sources, steps, say)
    return convert_onnx(request, target, open_source(Path(request.model), request, target, steps, say), steps, say)


def clean(request: Request) -> list[str]:
    """Remove the finished steps, and the build logs of the working directory; sentences that say what went."""
    from rknn_tts.cleaning import remove_steps_and_logs

    return remove_steps_and_logs()


def _target(request: Request) -> str:
    if request.target is None:
        raise UserInput("Which SoC? --target rk3588, rk3576, rk3568, rk3566 or rk3562.")
    return resolve_target(request.target)


def _conversions(request: Request, target: str | None, steps: Steps, say: Say) -> tuple[Conversion, ...]:
    """What is converted, once what it makes can go where it is asked to."""
    conversions = open_conversions(request, target, say)
    if len(conversions) > 1:
        check_set_output(request.output)
    if not request.weigh:
        return conversions
    if target is None:
        raise UserInput("--weigh weighs for one SoC: say which with --target.")
    return weighed(conversions, request, target, steps)
