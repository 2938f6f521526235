"""A catalogue as JUnit XML: a suite a voice, with a case an engine, a verdict that did not pass, and a failure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from xml.etree import ElementTree as ET

from farm.catalogue import Catalogue, EngineEntry, Failure, Fault, Repeat
from farm.catalogue_diff import engine_text, failure_text
from rknn_tts.junit import element, suite_of, verdict_case

NAMELESS = "engines"
"""The suite of what has no voice."""


def catalogue_suites(catalogue: Catalogue) -> list[ET.Element]:
    """The suites of `catalogue`, by their voices' names."""
    cases: dict[str, list[ET.Element]] = {}
    for voice, case in _cases(catalogue):
        cases.setdefault(voice or NAMELESS, []).append(case)
    return [suite_of(f"rknn-tts catalogue {voice}", found) for voice, found in sorted(cases.items())]


def _cases(catalogue: Catalogue) -> Iterator[tuple[str, ET.Element]]:
    """Every case, with its voice."""
    for entry in catalogue.engines:
        yield entry.voice, element("testcase", {"classname": _class(entry), "name": engine_text(entry)})
        for verdict in entry.notable:
            named = replace(verdict, gate=f"{engine_text(entry)}: {verdict.gate}")
            yield entry.voice, verdict_case(_class(entry), named)
    for failure in catalogue.failures:
        if not (failure.kind == "engine" and failure.fault is Fault.FAILED):  # that verdict has its case
            yield failure.voice, _failure_case(failure)
    for one in catalogue.unplanned:
        case = element("testcase", {"classname": f"{one.family}.{one.stage}", "name": f"plan of {one.checkpoint}"})
        case.append(element("error", {"message": one.sentence, "type": "unplanned"}, one.sentence))
        yield one.checkpoint, case
    for repeat in catalogue.repeats:
        if repeat.same:  # else it is among the failures
            yield repeat.voice, element("testcase", {"classname": _class(repeat), "name": _repeat_name(repeat)})


def _failure_case(failure: Failure) -> ET.Element:
    """What failed its proof is a failure, as is what came out otherwise; what waited is skipped; all else an error."""
    case = element("testcase", {"classname": _class(failure), "name": failure_text(failure)})
    told = {"message": failure.sentence, "type": failure.fault.value}
    if failure.fault is Fault.WAITING:
        case.append(element("skipped", told))
    else:
        tag = "failure" if failure.fault in (Fault.FAILED, Fault.DIFFERS) else "error"
        case.append(element(tag, told, failure.sentence))
    return case


def _class(of: EngineEntry | Failure | Repeat) -> str:
    return ".".join(part for part in (of.family, of.stage) if part) or "rknn-tts"


def _repeat_name(repeat: Repeat) -> str:
    stage = " ".join((repeat.family, repeat.stage))
    return f"twice of {', '.join(part for part in (stage, repeat.voice, repeat.width, repeat.target) if part)}"
