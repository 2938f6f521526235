"""What each command does: a request in, a report out. Everything heavy is imported here, when a command needs it."""

from __future__ import annotations

import dataclasses
import os
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from contracts.errors import EXIT_DONE, EXIT_FAILED, RknnTtsError, UserInput
from rknn_tts.hints import did_you_mean
from rknn_tts.many_voices import is_pattern
from rknn_tts.progress import Say
from rknn_tts.report import NOTHING, TRACEBACK_VARIABLE, Report, report_of_failure
from rknn_tts.request import Option, Request, options

if TYPE_CHECKING:
    from converters.stages import PackagedCheckpoint

ROOT = Path(__file__).resolve().parents[1]
"""The checkout that rknn-tts runs from."""

LARGEST_LIMIT = 1e9
"""Of seconds and of GB: thirty years, and a billion of them; past it the system's calls overflow."""

COUNTED_LIMITS = frozenset({"jobs", "cores"})
"""Whole numbers that are limits too, which 0 is not; every fraction is one."""


def perform(request: Request, say: Say, spelling: Callable[[Option], str]) -> Report:
    """Do what `request` asks; never raises, whatever goes wrong.

    Args:
        request: what is asked.
        say: gets the progress.
        spelling: how the user writes an option (`--target`, or `TARGET` under make).
    """
    subject = "rknn-tts"
    try:
        check_complete(request, spelling)
        if request.junit is not None:
            from rknn_tts.junit import check_junit_path

            check_junit_path(Path(request.junit))
        subject = resolve_subject(request)
        report = _COMMANDS[request.command](request, say)
        return dataclasses.replace(report, subject=subject)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - whatever it is ends as a sentence
        if os.environ.get(TRACEBACK_VARIABLE) and not isinstance(error, RknnTtsError):
            traceback.print_exc()
        return report_of_failure(request, error, subject)


def check_complete(request: Request, spelling: Callable[[Option], str]) -> None:
    """See that everything is given that the command needs, that no text is empty, and that limits lie above zero.

    Raises:
        UserInput: something is missing or empty, or no limit.
    """
    for option in options(request.command):
        value = getattr(request, option.name)
        if option.required and not value:
            raise UserInput(f"{request.command} needs {spelling(option)}. {option.help}")
        if value == "":
            raise UserInput(f"{spelling(option)} is empty; leave it out, or say what it is. {option.help}")
        is_limit = isinstance(value, float) or (value is not None and option.name in COUNTED_LIMITS)
        if is_limit and not 0 < value < LARGEST_LIMIT:
            raise UserInput(
                f"{spelling(option)} cannot be {value:g}; it must lie above 0 and below {LARGEST_LIMIT:g}. "
                f"{option.help}"
            )


def resolve_subject(request: Request) -> str:
    """What is worked on: `family.stage`, or the stem of the file.

    Raises:
        UserInput: there is no such target, family or stage; the message lists those there are.
    """
    for target in filter(None, (request.target, request.cost)):
        from contracts.targets import TARGETS
        from engine.targets import ALIASES, resolve_target

        _with_hint(partial(resolve_target, target), target, (*TARGETS, *ALIASES))
    if request.model is not None:
        return Path(request.model).stem
    if request.family is None:
        return "rknn-tts"
    from converters.registry import STAGES
    from converters.stages import find_stage

    _with_hint(lambda: find_stage(STAGES, request.family or "", None), request.family, {s.family for s in STAGES})
    names = {stage.name for stage in STAGES if stage.family == request.family}
    _with_hint(lambda: find_stage(STAGES, request.family or "", request.stage), request.stage or "", names)
    if request.all:
        return request.family
    return f"{request.family}.{find_stage(STAGES, request.family, request.stage).name}"


def _with_hint(check: Callable[[], object], word: str, choices: tuple[str, ...] | set[str]) -> None:
    try:
        check()
    except UserInput as error:
        hint = did_you_mean(word, sorted(choices))
        if not hint:
            raise
        raise UserInput(f"{error}{hint}") from error


def _engine(request: Request, say: Say) -> Report:
    if is_pattern(request.checkpoint):
        return _many(request, say)
    from rknn_tts import pipeline

    return Report(request, outcome=pipeline.engine(request, say))


def _many(request: Request, say: Say) -> Report:
    from rknn_tts.many import convert_many

    return convert_many(request, say)


def _export(request: Request, say: Say) -> Report:
    if is_pattern(request.checkpoint):
        return _many(request, say)
    from rknn_tts import pipeline

    return Report(request, outcome=pipeline.export(request, say))


def _compile(request: Request, say: Say) -> Report:
    from rknn_tts import pipeline

    return Report(request, outcome=pipeline.compile_onnx(request, say))


def _surgery(request: Request, say: Say) -> Report:
    from rknn_tts.trial import try_passes

    trial = try_passes(request, say)
    return Report(request, EXIT_FAILED if trial.fault else EXIT_DONE, trial.fault, extra={"trial": trial})


def _inspect(request: Request, say: Say) -> Report:
    from rknn_tts.inspection import inspect_file

    assert request.model is not None
    return Report(request, extra={"inspection": inspect_file(Path(request.model), Path.cwd())})


def _diff(request: Request, say: Say) -> Report:
    from rknn_tts.comparison import compare_files

    assert request.a is not None
    assert request.b is not None
    return Report(request, extra={"diff": compare_files(Path(request.a), Path(request.b), Path.cwd())})


def _report(request: Request, say: Say) -> Report:
    from rknn_tts.engine_page.write_page import write_page

    page = write_page(request, say)
    return Report(request, outcome=dataclasses.replace(NOTHING, files=(page.file,)), extra={"page": page})


def _probe(request: Request, say: Say) -> Report:
    from rknn_tts.probe.write_kit import write_kit

    return Report(request, extra={"probe": write_kit(request, say)})


def _verify(request: Request, say: Say) -> Report:
    from rknn_tts.verify import verify

    assert request.model is not None
    assert request.result is not None
    done = verify(Path(request.model), Path(request.result))
    return Report(request, EXIT_FAILED if done.failure else EXIT_DONE, done.failure, done.outcome)


def _bench(request: Request, say: Say) -> Report:
    from rknn_tts.bench import bench

    return Report(request, extra={"bench": bench(request, say)})


def _tune(request: Request, say: Say) -> Report:
    from rknn_tts.tune.tuning import tune

    tuning = tune(request, say)
    return Report(request, EXIT_FAILED if tuning.failure else EXIT_DONE, tuning.failure, extra={"tuning": tuning})


def _farm(request: Request, say: Say) -> Report:
    from rknn_tts.farm import farm

    return farm(request, say)


def _catalogue(request: Request, say: Say) -> Report:
    from rknn_tts.catalogue import catalogue

    return catalogue(request, say)


def _plan(request: Request, say: Say) -> Report:
    if request.schema:
        from rknn_tts_runtime.plans.schema import plan_schema

        if request.engines:
            raise UserInput("plan --schema prints the schema alone, and takes no engines.")
        return Report(request, extra={"plan_schema": plan_schema()})
    from rknn_tts.plan import write_plan

    return Report(request, extra={"plan": write_plan(request, say)})


def _families(request: Request, say: Say) -> Report:
    from converters.registry import STAGES

    families = [
        {
            "family": stage.family,
            "stage": stage.name,
            "summary": stage.summary,
            "default_checkpoint": _default_checkpoint(stage.default_checkpoint),
            "options": sorted(stage.options),
        }
        for stage in STAGES
    ]
    return Report(request, extra={"families": families})


def _default_checkpoint(packaged: PackagedCheckpoint | None) -> dict[str, object] | None:
    return {**dataclasses.asdict(packaged), "packages": packaged.packages} if packaged else None


def _passes(request: Request, say: Say) -> Report:
    from rknn_tts.catalogue_page import bound_text, targets_text
    from surgery.catalogue import CATALOGUE

    passes = [
        {
            "name": declaration.name,
            "summary": declaration.summary,
            "bound": bound_text(declaration),
            "targets": targets_text(declaration),
            "why": declaration.exactness.why,
            "after": sorted(declaration.after),
        }
        for declaration in CATALOGUE
    ]
    return Report(request, extra={"passes": passes})


def _doctor(request: Request, say: Say) -> Report:
    from rknn_tts.doctor import examine

    findings = examine(ROOT, Path.cwd())
    problem = any(finding.status == "problem" for finding in findings)
    return Report(request, EXIT_FAILED if problem else EXIT_DONE, extra={"findings": findings})


def _clean(request: Request, say: Say) -> Report:
    from rknn_tts import pipeline

    return Report(request, extra={"removed": pipeline.clean(request)})


_COMMANDS: dict[str, Callable[[Request, Say], Report]] = {
    "engine": _engine,
    "export": _export,
    "compile": _compile,
    "surgery": _surgery,
    "inspect": _inspect,
    "diff": _diff,
    "plan": _plan,
    "report": _report,
    "probe": _probe,
    "verify": _verify,
    "bench": _bench,
    "tune": _tune,
    "farm": _farm,
    "catalogue": _catalogue,
    "families": _families,
    "passes": _passes,
    "doctor": _doctor,
    "clean": _clean,
}
