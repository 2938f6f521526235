from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from contracts.verdicts import failure, unproven
from farm.gathering import gather_farm
from farm.jobs import Kind, Unplanned
from farm.outcomes import Ended
from rknn_tts.cli import run
from rknn_tts.junit import junit_xml
from rknn_tts.report import Report
from rknn_tts.request import Request
from tests.farm.farm_folder import FarmFolder, simulated

HOSTILE = "<&>\x1b\udcff"


@pytest.fixture
def farm(tmp_path: Path) -> FarmFolder:
    return FarmFolder(tmp_path / "out")


def suites(farm: FarmFolder) -> dict[str, ET.Element]:
    """The suites of the farm's catalogue, by name."""
    found = gather_farm(farm.plan().places)
    root = ET.fromstring(junit_xml(Report(Request("catalogue"), extra={"catalogue": found})))
    each = {suite.attrib["name"]: suite for suite in root}
    for key in ("tests", "failures", "errors", "skipped"):
        assert int(root.attrib[key]) == sum(int(suite.attrib[key]) for suite in each.values())
    return each


def counts(suite: ET.Element) -> tuple[int, int, int, int]:
    tests, failures, errors, skipped = (int(suite.attrib[key]) for key in ("tests", "failures", "errors", "skipped"))
    assert tests == len(suite.findall("testcase"))
    return tests, failures, errors, skipped


def test_voice_is_a_suite_with_a_case_an_engine(farm: FarmFolder) -> None:
    for target in ("rk3588", "rk3566"):
        farm.compiled("amy", target)
    farm.compiled("joe", "rk3588")
    found = suites(farm)
    assert {name: counts(suite) for name, suite in found.items()} == {
        "rknn-tts catalogue amy": (2, 0, 0, 0),
        "rknn-tts catalogue joe": (1, 0, 0, 0),
    }
    (case,) = found["rknn-tts catalogue joe"]
    assert case.attrib == {"classname": "piper.decoder", "name": "piper decoder, joe, rk3588"}


def test_verdict_that_did_not_pass_is_a_case_of_its_own(farm: FarmFolder) -> None:
    farm.compiled(
        "amy",
        "rk3588",
        verdicts=(simulated(45.0), unproven("log.regtask", "A board tells."), failure("board.x", "No.")),
    )
    (suite,) = suites(farm).values()
    assert counts(suite) == (3, 1, 0, 1)
    names = [case.attrib["name"] for case in suite]
    assert names == [f"piper decoder, amy, rk3588{more}" for more in ("", ": log.regtask", ": board.x")]
    assert [found.attrib["message"] for found in suite.iter("failure")] == ["No."]


@pytest.mark.parametrize(
    ("ended", "tag"),
    [
        (Ended.FAILED, "failure"),
        (Ended.REFUSED, "error"),
        (Ended.MEMORY, "error"),
        (Ended.DISK, "error"),
        (Ended.LOST, "error"),
        (Ended.WAITING, "skipped"),
    ],
)
def test_failure_is_a_case_with_its_sentence(farm: FarmFolder, ended: Ended, tag: str) -> None:
    farm.ended(farm.job(Kind.COMPILE, "amy", "rk3588"), ended=ended, sentence="So it was.")
    (suite,) = suites(farm).values()
    (case,) = suite
    assert case.attrib["name"] == "compile of piper decoder, amy, rk3588"
    (found,) = case
    assert (found.tag, found.attrib["type"]) == (tag, ended.value)
    assert found.attrib["message"].startswith("So it was.")


def test_what_was_made_twice_is_a_case_that_fails_when_the_bytes_differ(farm: FarmFolder) -> None:
    farm.twice("amy", "rk3588", farm.compiled("amy", "rk3588"))
    farm.twice("joe", "rk3588", farm.compiled("joe", "rk3588"), engine=b"other")
    found = suites(farm)
    assert counts(found["rknn-tts catalogue amy"]) == (2, 0, 0, 0)
    assert counts(found["rknn-tts catalogue joe"]) == (2, 1, 0, 0)
    (failed,) = found["rknn-tts catalogue joe"].iter("failure")
    assert failed.attrib["message"].startswith(
        "Made twice, on n1 and on n2, it has other bytes in piper-decoder-w102.rknn"
    )


def test_names_that_xml_cannot_hold_are_made_harmless(farm: FarmFolder) -> None:
    farm.unplanned.append(Unplanned(HOSTILE, "piper", "decoder", f"{HOSTILE} is none."))
    # JSON may hold a surrogate, which no UTF-8 file of a plan has.
    found = gather_farm(FarmFolder(farm.output).plan().places)
    told = replace(found, unplanned=tuple(farm.unplanned))
    (suite,) = ET.fromstring(junit_xml(Report(Request("catalogue"), extra={"catalogue": told})))
    assert suite.attrib["name"] == "rknn-tts catalogue <&>??"
    assert [error.text for error in suite.iter("error")] == ["<&>?? is none."]


def test_command_writes_the_report_that_it_is_asked_for(farm: FarmFolder, tmp_path: Path) -> None:
    farm.ended(farm.job(Kind.COMPILE, "amy", "rk3588"), ended=Ended.FAILED, sentence="So it was.")
    report = tmp_path / "report.xml"
    assert run(["catalogue", str(farm.plan().output), "--junit", str(report)]) == 1
    assert [failed.text for failed in ET.parse(report).getroot().iter("failure")] == ["So it was."]
