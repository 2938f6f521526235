"""An NPU-ready ONNX to an engine: gates on the graph, the build, gates on the build, publication."""

from __future__ import annotations

from collections.abc import Sequence

from contracts.errors import GateFailure
from contracts.verdicts import Verdict
from engine.endings import StoppedByLog
from engine.environment import converter_python
from engine.result import LINES_FILE
from logs.regtask import RegtaskKey, parse_accepted
from rknn_tts.background import Background
from rknn_tts.build_step import Build, built, judge, restore_log
from rknn_tts.failing import keep_verdicts, stop_if_failed
from rknn_tts.graph_at_hand import GraphInfo, NumericGates, OnnxSource, check_graph, judge_numbers
from rknn_tts.outcome import Outcome
from rknn_tts.overwriting import check_engine_places, check_set_place
from rknn_tts.places import ANOTHER_FOLDER, Places, engine_places, make_folder, set_place
from rknn_tts.progress import Say
from rknn_tts.publication import Finished, publish_engine, publish_set
from rknn_tts.request import Request
from rknn_tts.roles import RoleSay, shared_cache, verdicts_of
from rknn_tts.steps import Steps


def convert_onnx(request: Request, target: str, source: OnnxSource, steps: Steps, say: Say) -> Outcome:
    """Compile `source` for `target`, and publish the engine if every gate lets it.

    Raises:
        UserInput, GateFailure, ToolFailure, NotWritten: see `finish_engine`.
    """
    return publish_engine(finish_engine(request, target, source, steps, say), steps)


def convert_set(request: Request, target: str, sources: Sequence[OnnxSource], steps: Steps, say: Say) -> Outcome:
    """Compile `sources`, which belong together, and publish all engines with the manifest of their set, or none.

    Raises:
        UserInput, GateFailure, ToolFailure, NotWritten: see `finish_engine`; or `--output` names one file, or their
            caches are unlike.
    """
    check_set(request, target, sources)
    place = set_place(sources[0].contract, target, request.output)
    return publish_set(finish_set(request, target, sources, steps, say), place, steps)


def check_set(request: Request, target: str, sources: Sequence[OnnxSource]) -> None:
    """See that `sources`, all that is built of one stage, belong together, and that their engines have places.

    Raises:
        UserInput: a place cannot be written to, or holds what must not be replaced.
        ToolFailure: their caches are unlike.
    """
    shared_cache([source.contract for source in sources])
    if len(sources) > 1:
        place = set_place(sources[0].contract, target, request.output)
        check_set_place(sources, place, request.output is not None)
    for source in sources:  # a place that is refused is refused before anything is built
        _places(request, target, source)


def finish_set(
    request: Request, target: str, sources: Sequence[OnnxSource], steps: Steps, say: Say
) -> tuple[Finished, ...]:
    """Compile `sources`, all that is built of one stage, as far as finished engines.

    Raises:
        UserInput, GateFailure, ToolFailure, NotWritten: see `finish_engine`.
    """
    if len(sources) == 1:
        return (finish_engine(request, target, sources[0], steps, say),)
    finished: list[Finished] = []
    for source in sources:
        try:
            finished.append(finish_engine(request, target, source, steps, RoleSay(say, source.contract.role)))
        except GateFailure as error:
            raise _of_set(error, source, finished) from error
    return tuple(finished)


def prove_source(request: Request, target: str, source: OnnxSource, steps: Steps, say: Say) -> NumericGates:
    """Every gate on `source` that needs no build: those that `finish_engine` waits for, and those beside its build.

    Raises:
        UserInput: an option is wrong, or a place cannot be written to.
        GateFailure: a gate failed.
    """
    places = _places(request, target, source)
    graph = _checked_graph(request, target, source, places, steps, say)
    numbers = judge_numbers(source, steps)
    verdicts = (*numbers.verdicts, *graph.verdicts)
    stop_if_failed(verdicts, places.failed, None, f"{places.engine.name} was not built")
    return numbers


def finish_engine(request: Request, target: str, source: OnnxSource, steps: Steps, say: Say) -> Finished:
    """Compile `source` for `target`, as far as a finished engine that is not in its place yet.

    The numeric gates run while the toolkit compiles; the build ends as soon as one of them fails.

    Raises:
        UserInput: an option is wrong, or a place cannot be written to.
        GateFailure: a gate failed; what stood at the engine's place is still there.
        ToolFailure, NotWritten: the toolkit broke, or the finished files cannot be put in their places; likewise.
    """
    accepted = _accepted(request)
    places = _places(request, target, source)
    graph = _checked_graph(request, target, source, places, steps, say)
    _ = source.feeds  # nothing may be there to stand in for them
    python = converter_python(request.toolkit)  # after the cheap gates: it may have to be set up, for minutes
    gates = Background(lambda: judge_numbers(source, steps))
    build = Build(request, target, source, accepted, places, python)
    try:
        folder = built(build, steps, say, lambda: _stop_early(gates, graph, places))
    except StoppedByLog as error:
        raise _with_verdicts(error, (*_reached(gates), *graph.verdicts), places) from error
    if "build" in steps.reused:
        restore_log(places.log, folder / LINES_FILE)
    numbers = gates.result()
    proven = (*numbers.verdicts, *graph.verdicts)
    stop_if_failed(proven, places.failed, places.log, f"{places.engine.name} was not written")
    judged = judge(build, folder, steps, say)
    verdicts = (*proven, *judged.verdicts)
    stop_if_failed(verdicts, places.failed, places.log, f"{places.engine.name} was not written")
    return Finished(build, graph, numbers, judged, folder)


def planned_build(request: Request, target: str, source: OnnxSource) -> Build:
    """The build that `finish_engine` does of `source`.

    Raises:
        UserInput: an option is wrong, or a place cannot be written to.
    """
    places = _places(request, target, source)
    return Build(request, target, source, _accepted(request), places, converter_python(request.toolkit))


def _accepted(request: Request) -> tuple[RegtaskKey, ...]:
    return tuple(sorted(parse_accepted(text) for text in request.accept_regtask))


def _checked_graph(
    request: Request, target: str, source: OnnxSource, places: Places, steps: Steps, say: Say
) -> GraphInfo:
    """The gates on the graph alone.

    Raises:
        GateFailure: one failed, or a pass had to rewrite a place and could not.
    """
    graph = check_graph(source.graph, steps, say, target, [str(key) for key in _accepted(request)])
    owed = (*source.refused, *graph.verdicts)
    stop_if_failed(owed, places.failed, None, f"{places.engine.name} was not built")
    return graph


def _places(request: Request, target: str, source: OnnxSource) -> Places:
    """Where the files of `source`'s engine go, in folders that can be written.

    Raises:
        UserInput: a place cannot be written to, or holds what must not be replaced.
    """
    places = engine_places(source.contract, source.stem, target, request.output)
    check_engine_places(source, target, places, request.output is not None)
    make_folder(places.engine.parent)
    make_folder(places.log.parent, ANOTHER_FOLDER)
    return places


def _of_set(error: GateFailure, source: OnnxSource, finished: Sequence[Finished]) -> GateFailure:
    """The failure of `source`, with the verdicts of the engines that were `finished` before; each says of which."""
    earlier = [v for item in finished for v in verdicts_of(item.build.source.contract.role, item.verdicts)]
    return GateFailure(str(error), (*earlier, *verdicts_of(source.contract.role, error.verdicts)), error.log)


def _stop_early(gates: Background[NumericGates], graph: GraphInfo, places: Places) -> None:
    """End the build if a gate beside it has failed by now."""
    numbers = gates.peek()
    if numbers is not None:
        verdicts = (*numbers.verdicts, *graph.verdicts)
        stop_if_failed(verdicts, places.failed, places.log, f"{places.engine.name} was not built to its end")


def _reached(gates: Background[NumericGates]) -> tuple[Verdict, ...]:
    """The numeric verdicts that there are by now; a build that failed already has its own reason."""
    try:
        numbers = gates.peek()
    except Exception:  # noqa: BLE001  (whatever it is, the failure at hand is the one to tell)
        return ()
    return numbers.verdicts if numbers is not None else ()


def _with_verdicts(error: StoppedByLog, proven: Sequence[Verdict], places: Places) -> GateFailure:
    """The failure of a build that was stopped by its log, with all verdicts up to there."""
    verdicts = (*proven, *error.verdicts)
    return GateFailure(f"{error}{keep_verdicts(verdicts, places.failed, error.log)}", verdicts, error.log)
