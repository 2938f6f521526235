"""The class of every line of a build log.

"Any E line fails" is wrong (ordinary graphs print `E RKNN: .. Unkown op target: 0`), and so is trusting W lines and
lines without a level (random weights come as W, a missing kernel without any). So every line is looked up: a REGTASK
line is judged by its key, a known text means what the table says, an E line nobody knows fails.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from logs.known_texts import END_LINE, FAILING, KNOWN_TEXTS, START_LINE, LineClass
from logs.regtask import REGTASK_MARK, RegtaskLine, parse_regtask

_RECORD = re.compile(r"([EWIDF])(?:\s+(?:RKNN: )?(?:\[[\d:. ]+\] ?)?|:|$)")
_ONNXRUNTIME_ERROR = re.compile(r"\d{4}-\d\d-\d\d [\d:.]+ \[[EF]:onnxruntime")


@dataclass(frozen=True)
class Line:
    """A classified line.

    Attributes:
        kind: its class.
        message: its text without level and time.
        regtask: its field and value, where it is a REGTASK line of the known form.
        groups: the names that its text tells (`node`, `op`, `tensor`).
    """

    kind: LineClass
    message: str
    regtask: RegtaskLine | None = None
    groups: tuple[tuple[str, str], ...] = ()


def classify(line: str) -> Line:
    """The class of one clean line."""
    if line in (START_LINE, END_LINE):
        return Line(LineClass.STARTED if line == START_LINE else LineClass.DONE, line)
    if REGTASK_MARK in line and (regtask := parse_regtask(line)):
        return Line(LineClass.REGTASK, line, regtask)
    record = _RECORD.match(line)
    message = line[record.end() :] if record else line
    for known in KNOWN_TEXTS:
        if known.needle not in line:
            continue
        match = known.pattern.search(line) if known.kind in FAILING else known.pattern.fullmatch(message)
        if match:
            groups = tuple((name, text) for name, text in match.groupdict().items() if text is not None)
            return Line(known.kind, message, groups=groups)
    level = record[1] if record else ""
    if level in ("E", "F") or (REGTASK_MARK in line and level not in ("D", "I")) or _ONNXRUNTIME_ERROR.match(line):
        return Line(LineClass.UNKNOWN_ERROR, message)
    return Line(LineClass.NOISE, message)
