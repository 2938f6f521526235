"""REGTASK lines: a value that a hardware field cannot hold, and what is known of each field.

    E RKNN: [12:00:00.000] REGTASK: The bit width of field value exceeds the limit, target: v2, offset: 0x1014, \
        shift = 0, limit: 0x7, value: 0x9

Every return code stays 0 and the simulator stays right when the compiler prints one. Lines are judged by their whole
key (target, offset, shift, limit), never by magnitude, which does not separate good from bad: 0x1e01/0x7ff and
0x7800/0x1fff are both 3.75 (cases.md).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from contracts.errors import UserInput

REGTASK_MARK = "REGTASK"

REGTASK_FLOOD = 100_000
"""More lines than this in one log fail whatever their keys (cases.md, log_flood: 100 001 lines fail by count)."""

_NUMBER = r"0[xX][0-9a-fA-F]+|\d+"
_FIELD = re.compile(
    r"REGTASK: The bit width of field value exceeds the limit, target: *(?P<target>[\w.-]+), "
    rf"*offset: *(?P<offset>{_NUMBER}), *shift *[=:] *(?P<shift>{_NUMBER}), "
    rf"*limit: *(?P<limit>{_NUMBER}), *value: *(?P<value>{_NUMBER})(?![\w.])"
)
_TARGET = re.compile(r"[\w.-]+")


@dataclass(frozen=True, order=True)
class RegtaskKey:
    """One hardware field: the core's name ("v2" rk3588, "lite" rk3566, "f2" rk3576), register offset, shift, limit."""

    target: str
    offset: int
    shift: int
    limit: int

    def __str__(self) -> str:
        """As `--accept-regtask` takes it: `v2:0x1014:0:0x7`."""
        return f"{self.target}:{self.offset:#x}:{self.shift}:{self.limit:#x}"


@dataclass(frozen=True)
class RegtaskLine:
    """A parsed line: the field and the value it cannot hold."""

    key: RegtaskKey
    value: int


class Evidence(str, Enum):
    """What is known of a field: FATAL, wrong on a board; UNPROVEN, seen on engines that run; UNKNOWN, nothing."""

    FATAL = "fatal"
    UNPROVEN = "unproven"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class KnownField:
    """A row of the table: what is known of all keys that agree with it (None: any value)."""

    evidence: Evidence
    reason: str
    offset: int
    target: str | None = None
    limit: int | None = None

    def matches(self, key: RegtaskKey) -> bool:
        """Whether `key` is one of this row's."""
        return key.offset == self.offset and self.target in (None, key.target) and self.limit in (None, key.limit)


_RUNNING = "seen on engines that the reference runs, or on every Piper and Qwen3 build of a target"

KNOWN_FIELDS = (
    KnownField(
        Evidence.FATAL, "the stride field: Conv1d strides 9, 15, 30, 60 print it, 6, 7, 8, 10, 12, 16 do not", 0x1014
    ),
    KnownField(Evidence.FATAL, "the field that over-wide windows overflow (the 512-frame Kokoro window)", 0x4030),
    KnownField(Evidence.FATAL, "the field that over-wide convolutions overflow", 0x1028, "v2", 0x3FFF),
    KnownField(Evidence.UNPROVEN, _RUNNING, 0x1028, "lite", 0x7FF),
    KnownField(Evidence.UNPROVEN, _RUNNING, 0x4038),
    KnownField(Evidence.UNPROVEN, _RUNNING, 0x5048),
    KnownField(Evidence.UNPROVEN, _RUNNING, 0x1090, "f2"),
)
"""From cases.md, in order of precedence. A field that is not here fails until it is added with its evidence."""

UNKNOWN_FIELD = "nothing is known of this field"


def parse_regtask(line: str) -> RegtaskLine | None:
    """The REGTASK line in `line`; None where there is none, or one of another form."""
    start = line.find(REGTASK_MARK)
    return _parse_from_mark(line[start:]) if start >= 0 else None


@lru_cache(maxsize=1024)
def _parse_from_mark(text: str) -> RegtaskLine | None:
    """Cached: a log repeats few different texts thousands of times."""
    match = _FIELD.search(text)
    if match is None:
        return None
    key = RegtaskKey(
        match["target"].lower(), _number(match["offset"]), _number(match["shift"]), _number(match["limit"])
    )
    return RegtaskLine(key, _number(match["value"]))


def evidence_of(key: RegtaskKey) -> tuple[Evidence, str]:
    """What is known of `key`, and why."""
    for row in KNOWN_FIELDS:
        if row.matches(key):
            return row.evidence, row.reason
    return Evidence.UNKNOWN, UNKNOWN_FIELD


def parse_accepted(text: str) -> RegtaskKey:
    """The key that `--accept-regtask target:offset:shift:limit` names (`v2:0x7abc:0:0x3`; numbers decimal or hex).

    Raises:
        UserInput: `text` has another form.
    """
    parts = [part.strip() for part in text.split(":")]
    well_formed = len(parts) == 4 and _TARGET.fullmatch(parts[0])
    if not well_formed or not all(re.fullmatch(_NUMBER, part) for part in parts[1:]):
        raise UserInput(
            f"--accept-regtask {text}: is no REGTASK key; write target:offset:shift:limit as the failed verdict names "
            "it, for example v2:0x7abc:0:0x3."
        )
    return RegtaskKey(parts[0].lower(), *(_number(part) for part in parts[1:]))


def _number(text: str) -> int:
    return int(text, 16) if text[:2].lower() == "0x" else int(text)
