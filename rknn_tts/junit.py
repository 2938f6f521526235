"""Verdicts as JUnit XML: a testcase a verdict, as CI servers read it.

A figure stands in `system-out`: properties of a testcase are read by some servers and refused by the schema of others.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from xml.etree import ElementTree as ET

from contracts.errors import UserInput
from contracts.verdicts import Status, Verdict
from rknn_tts.numbers import figures
from rknn_tts.report import Report

_XML = b"<"
"""How every report begins, whoever wrote it."""

_COUNTED = ("tests", "failures", "errors", "skipped")
"""What a suite, and all of them, say of their cases."""

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold (its production 2, Char)."""


def check_junit_path(path: Path) -> None:
    """See that the report can be written to `path`; its folder is made where it is missing.

    Raises:
        UserInput: it cannot, or would replace something else than a report; the message says why.
    """
    if path.is_dir():
        raise UserInput(f"--junit {path}: is a folder; name a file in it.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Only a write tells: permissions, read-only mounts and full disks look alike otherwise.
        with tempfile.TemporaryFile(dir=path.parent):
            pass
        spoils = not may_hold_report(path)
    except OSError as error:
        raise UserInput(f"--junit {path}: the report cannot be written there ({error.strerror or error}).") from error
    if spoils:
        raise UserInput(f"--junit {path}: holds no XML, and would be replaced; name another file.")


def may_hold_report(path: Path) -> bool:
    """Whether `path` is free or holds a report, and not a model or what else a slip may name."""
    return not path.exists() or (path.is_file() and _head(path) in (b"", _XML))


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(len(_XML))


def junit_xml(report: Report) -> bytes:
    """The report as a JUnit document with one suite, or one a checkpoint of many, or one a voice of a catalogue."""
    each = _suites(report)
    totals = {key: str(sum(int(suite.attrib[key]) for suite in each)) for key in _COUNTED}
    suites = element("testsuites", totals)
    suites.extend(each)
    ET.indent(suites)
    text: bytes = ET.tostring(suites, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _suites(report: Report) -> list[ET.Element]:
    if "catalogue" in report.extra:
        from rknn_tts.junit_catalogue import catalogue_suites

        return catalogue_suites(report.extra["catalogue"])
    told = [part.report for part in report.parts] or [report]
    return [_suite(one, of_many=bool(report.parts)) for one in told]


def _suite(report: Report, *, of_many: bool) -> ET.Element:
    """The verdicts of `report`; `of_many`: the suite says of which checkpoint it is."""
    name = report.subject
    cases = [verdict_case(name, verdict) for verdict in report.outcome.verdicts]
    told = any(verdict.status is Status.FAILED for verdict in report.outcome.verdicts)
    if report.error is not None and not told:
        cases.append(element("testcase", {"classname": name, "name": report.request.command}))
        cases[-1].append(element("error", {"message": report.error}, report.error))
    of_which = f" {report.request.checkpoint}" if of_many else ""
    return suite_of(f"rknn-tts {report.request.command}{of_which}", cases)


def suite_of(name: str, cases: list[ET.Element]) -> ET.Element:
    """The suite `name` of `cases`, counted."""
    counts = {
        "tests": len(cases),
        "failures": sum(case.find("failure") is not None for case in cases),
        "errors": sum(case.find("error") is not None for case in cases),
        "skipped": sum(case.find("skipped") is not None for case in cases),
    }
    attributes = {key: str(value) for key, value in counts.items()}
    suite = element("testsuite", {"name": name, **attributes})
    suite.extend(cases)
    return suite


def verdict_case(name: str, verdict: Verdict) -> ET.Element:
    """The case of `verdict`; `name` is of what."""
    case = element("testcase", {"classname": name, "name": verdict.gate})
    measured, threshold = figures(verdict.measured, verdict.threshold)
    compared = f"measured {measured} {verdict.unit}".rstrip() if measured else ""
    if threshold:
        compared += f", threshold {threshold} {verdict.unit}".rstrip()
    text = ". ".join(part for part in (compared, verdict.detail) if part)
    if verdict.status is Status.FAILED:
        case.append(element("failure", {"message": text or "failed", "type": "gate"}, text))
    elif verdict.status is Status.UNPROVEN:
        case.append(element("skipped", {"message": f"unproven: {text}" if text else "unproven: only a board can tell"}))
    if text:
        case.append(element("system-out", {}, text))
    return case


def element(tag: str, attributes: dict[str, str], text: str | None = None) -> ET.Element:
    """The element `tag`; what XML cannot hold is a question mark."""
    made = ET.Element(tag, {key: _NOT_XML.sub("?", value) for key, value in attributes.items()})
    made.text = None if text is None else _NOT_XML.sub("?", text)
    return made
