"""REGTASK lines and keys."""

from __future__ import annotations

import pytest

from contracts.errors import UserInput
from logs.regtask import Evidence, RegtaskKey, RegtaskLine, evidence_of, parse_accepted, parse_regtask
from tests.logs.build_logs import regtask

STRIDE = RegtaskKey("v2", 0x1014, 0, 7)
TEXT = "E RKNN: [1] REGTASK: The bit width of field value exceeds the limit"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param(regtask("v2", "0x1014", "0x7", "0x9"), RegtaskLine(STRIDE, 9), id="as_printed"),
        pytest.param(regtask("V2", "0X1014", "7", "9"), RegtaskLine(STRIDE, 9), id="other_case_and_decimal"),
        pytest.param(
            regtask("v2", "0x4038", "0x1FFF", "0x528A", shift=16),
            RegtaskLine(RegtaskKey("v2", 0x4038, 16, 0x1FFF), 0x528A),
            id="uppercase_hex",
        ),
        pytest.param(
            regtask("v2", "0x10", "0", "0x1"), RegtaskLine(RegtaskKey("v2", 0x10, 0, 0), 1), id="zero_has_no_0x"
        ),
    ],
)
def test_parse_regtask_reads_key_and_value(line: str, expected: RegtaskLine) -> None:
    assert parse_regtask(line.strip()) == expected


@pytest.mark.parametrize(
    "line",
    [
        "I rknn building done.",
        "E RKNN: [1] REGTASK: something new",
        f"{TEXT}, target: v2, offset: 0x1014, shift = 0, limit: 0x7",
        f"{TEXT}, target: v2, offset: 0x1014, shift = 0, limit: 0x7, value: -1",
        f"{TEXT}, target: v2, offset: 0x1014, shift = 0, limit: 0x7, value: 12ab",
        f"{TEXT}, target: , offset: 0x1014, shift = 0, limit: 0x7, value: 0x9",
    ],
)
def test_parse_regtask_gives_nothing_when_the_line_has_another_form(line: str) -> None:
    assert parse_regtask(line) is None


@pytest.mark.parametrize(
    ("key", "evidence"),
    [
        (STRIDE, Evidence.FATAL),
        (RegtaskKey("lite", 0x1014, 3, 0xF), Evidence.FATAL),
        (RegtaskKey("v2", 0x4030, 0, 0x1FFF), Evidence.FATAL),
        (RegtaskKey("f2", 0x4030, 16, 0x1FFF), Evidence.FATAL),
        (RegtaskKey("v2", 0x1028, 0, 0x3FFF), Evidence.FATAL),
        (RegtaskKey("v2", 0x1028, 16, 0x3FFF), Evidence.FATAL),
        (RegtaskKey("lite", 0x1028, 0, 0x7FF), Evidence.UNPROVEN),
        (RegtaskKey("lite", 0x1028, 16, 0x7FF), Evidence.UNPROVEN),
        (RegtaskKey("v2", 0x4038, 0, 0x1FFF), Evidence.UNPROVEN),
        (RegtaskKey("lite", 0x4038, 16, 0x1FFF), Evidence.UNPROVEN),
        (RegtaskKey("v2", 0x5048, 19, 0x1FFF), Evidence.UNPROVEN),
        (RegtaskKey("f2", 0x1090, 0, 0x3FFF), Evidence.UNPROVEN),
        (RegtaskKey("v2", 0x1028, 0, 0x7FF), Evidence.UNKNOWN),
        (RegtaskKey("lite", 0x1028, 0, 0x3FFF), Evidence.UNKNOWN),
        (RegtaskKey("v2", 0x1090, 0, 0x3FFF), Evidence.UNKNOWN),
        (RegtaskKey("v2", 0x7ABC, 0, 3), Evidence.UNKNOWN),
        (RegtaskKey("v2", 0x403C, 0, 0x1FFF), Evidence.UNKNOWN),
    ],
    ids=str,
)
def test_evidence_of_follows_the_whole_key(key: RegtaskKey, evidence: Evidence) -> None:
    assert evidence_of(key)[0] is evidence


@pytest.mark.parametrize("text", ["v2:0x1014:0:0x7", "V2:0X1014:0x0:0x07", " v2 : 4116 : 0 : 7 "])
def test_parse_accepted_normalises_the_numbers(text: str) -> None:
    assert parse_accepted(text) == STRIDE


def test_parse_accepted_reads_a_key_back_as_it_is_written() -> None:
    assert str(STRIDE) == "v2:0x1014:0:0x7"
    assert parse_accepted(str(STRIDE)) == STRIDE


@pytest.mark.parametrize(
    "text", ["", "v2", "v2:0x1014:0", "v2:0x1014:0:0x7:1", ":0x1014:0:0x7", "v2:stride:0:7", "v2:-1:0:7", "v2:0x:0:7"]
)
def test_parse_accepted_refuses_with_the_form_when_it_is_no_key(text: str) -> None:
    with pytest.raises(UserInput, match="target:offset:shift:limit"):
        parse_accepted(text)
