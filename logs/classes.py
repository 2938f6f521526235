"""The class of every line of a build log: one table of known texts, then the level letter.

"Any E line fails" is wrong (ordinary graphs print `E RKNN: .. Unkown op target: 0`), and so is trusting W lines and
lines without a level (random weights come as W, a missing kernel without any). So every line is
looked up: a REGTASK line is judged by its key, a known text means what the table says, an E line nobody knows fails.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from logs.regtask import REGTASK_MARK, RegtaskLine, parse_regtask


class LineClass(str, Enum):
    """What a line means for the build."""

    STARTED = "started"
    DONE = "done"
    RANDOM_WEIGHTS = "random weights"
    NO_KERNEL = "no kernel"
    BAD_TENSOR = "bad tensor"
    FALLBACK = "cpu fallback"
    UNKNOWN_TARGET = "unknown op target"
    REGTASK = "regtask"
    UNKNOWN_ERROR = "unknown error"
    NOISE = "noise"


@dataclass(frozen=True)
class Line:
    """A classified line.

    Attributes:
        kind: its class.
        message: its text without level and time.
        regtask: its field and value, where it is a REGTASK line of the known form.
        groups: what its pattern names (`node`, `op`, `tensor`).
    """

    kind: LineClass
    message: str
    regtask: RegtaskLine | None = None
    groups: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class KnownText:
    """A row of the table: a text the toolkit prints.

    Attributes:
        kind: the class of lines that hold it.
        needle: a literal part, looked for first.
        pattern: the text, with the names it tells: anywhere in a line where it is a failure, the whole message where it
            lets the line pass, so that nothing hides behind it.
        reason: what such a line means.
        evidence: where it was seen.
    """

    kind: LineClass
    needle: str
    pattern: re.Pattern[str]
    reason: str
    evidence: str


FAILING = frozenset({LineClass.RANDOM_WEIGHTS, LineClass.NO_KERNEL, LineClass.BAD_TENSOR, LineClass.UNKNOWN_ERROR})
"""Classes of which one line is enough to fail a build."""


def _known(kind: LineClass, needle: str, pattern: str, reason: str, evidence: str) -> KnownText:
    return KnownText(kind, needle, re.compile(pattern), reason, evidence)


_MESSAGES = "message table of librknnc 2.3.2 and 2.5.0; no graph here prints it"
_SLOW = "an operator the NPU declines here runs on the CPU: slow, not wrong"

KNOWN_TEXTS = (
    _known(
        LineClass.RANDOM_WEIGHTS,
        "Generate random data for test",
        r"(?:Load external data for '(?P<tensor>.*)' failed! )?Generate random data for test",
        "weights are missing and random numbers stand in for them; every return code is 0",
        "measured, 2.3.2: a model without its external data file",
    ),
    _known(
        LineClass.NO_KERNEL,
        "No lowering found for",
        r"No lowering found for(?:: (?P<node>.*), node type = (?P<op>[^,]*))?",
        "the board has no kernel for this operator; build returns 0 and the simulator is right",
        "measured, 2.3.2: Atan, RandomNormalLike; printed on fd 1 without a level, at exit",
    ),
    _known(
        LineClass.BAD_TENSOR,
        "invalid tensor malloc size",
        r"invalid tensor malloc size(?:, tensor name: (?P<tensor>.*), target: \w*, size: \d+)?",
        "a tensor of this engine has no memory",
        "cases.md, log_zero_tensor",
    ),
    _known(
        LineClass.UNKNOWN_TARGET,
        "op target: ",
        r"Unkn?own op target: [\w.-]+",
        "noise on ordinary graphs",
        "measured, 2.3.2: 4 on every Piper build; Slice with step -1, Gather, ConvTranspose, reflect Pad",
    ),
    _known(
        LineClass.FALLBACK,
        "channel is too large",
        r"channel is too large.*fallback to cpu!?",
        _SLOW,
        "cases.md, log_fallback",
    ),
    _known(
        LineClass.FALLBACK,
        "Transpose",
        r"Transpose(?: will fallback to CPU, because .*|: Not support transpose n, c now, Fallback CPU)",
        _SLOW,
        _MESSAGES,
    ),
    _known(LineClass.FALLBACK, "fallback CPU implement", r".*\bfallback CPU implement\.?", _SLOW, _MESSAGES),
    _known(LineClass.FALLBACK, "turn to Target:CPU", r".*\bturn to Target:CPU implement\.?", _SLOW, _MESSAGES),
    _known(
        LineClass.FALLBACK,
        "Deconv: Invalid stride",
        r"Deconv: Invalid stride of .*fallback to CPU\.?",
        _SLOW,
        _MESSAGES,
    ),
    _known(
        LineClass.FALLBACK,
        ", fallback to ",
        r".*(?:AveragePool|meet unsupport input elems|pad_top).*, fallback to (?:cpu|CPU pool)",
        _SLOW,
        _MESSAGES,
    ),
    _known(
        LineClass.NOISE,
        "rknn-toolkit2 version: ",
        r"rknn-toolkit2 version: \S+",
        "the toolkit repeats its version, at level E, under each error of its own",
        "measured, 2.3.2: under every `E load_onnx:` and `E build:`",
    ),
)
"""Texts with a meaning, in order of precedence. Of the others, E lines are unknown errors, the rest is noise."""

START_LINE = "I rknn building ..."
END_LINE = "I rknn building done."

_RECORD = re.compile(r"([EWIDF])(?:\s+(?:RKNN: )?(?:\[[\d:. ]+\] ?)?|:|$)")
_ONNXRUNTIME_ERROR = re.compile(r"\d{4}-\d\d-\d\d [\d:.]+ \[[EF]:onnxruntime")


def classify(line: str) -> Line:
    """The class of one clean line."""
    if line == START_LINE:
        return Line(LineClass.STARTED, line)
    if line == END_LINE:
        return Line(LineClass.DONE, line)
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
