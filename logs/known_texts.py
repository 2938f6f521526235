"""The texts of the toolkit that mean something, in one table: class, reason, and where each was seen.

A text that fails a build is looked for anywhere in a line. One that lets an E line pass must be the whole message, so
that nothing hides behind it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum


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


FAILING = frozenset({LineClass.RANDOM_WEIGHTS, LineClass.NO_KERNEL, LineClass.BAD_TENSOR, LineClass.UNKNOWN_ERROR})
"""Classes of which one line is enough to fail a build."""

START_LINE = "I rknn building ..."
END_LINE = "I rknn building done."


@dataclass(frozen=True)
class KnownText:
    """A row of the table: a text the toolkit prints.

    Attributes:
        kind: the class of lines that hold it.
        needle: a literal part, looked for first.
        pattern: the text, with the names it tells (`node`, `op`, `tensor`).
        reason: what such a line means.
        evidence: where it was seen.
    """

    kind: LineClass
    needle: str
    pattern: re.Pattern[str]
    reason: str
    evidence: str


_FALLBACK_FORMATS = (
    "channel is too large, may produce thousands of regtask, fallback to cpu!",
    "AveragePool count_include_pad=%d, fallback to cpu",
    "Compiler: LayerNorm: Shape not support Target:NPU, turn to Target:CPU implement.",
    "Deconv: Invalid stride of %d. Must be 1, 2, 4 or 8, fallback to CPU.",
    "DepthToSpace: Shape not supported yet, fallback CPU",
    "DepthToSpace: deconv subgraph emit failed, fallback CPU",
    "Fallback to CPU",
    "Greater: meet unsupport input elems: %d vs %d, fallback to cpu",
    "GreaterOrEqual: meet unsupport input elems: %d vs %d, fallback to cpu",
    "LSTM: Not support batch_size(%d) unaligned to 4 for NPU, fallback to CPU.",
    "Less: meet unsupport input elems: %d vs %d, fallback to cpu",
    "LessOrEqual: meet unsupport input elems: %d vs %d, fallback to cpu",
    "Meet unsupported AveragePool, input tensor name: %s input type: %d, fallback to cpu",
    "Pad: RKNPU not support mode %s, fallback CPU implement.",
    "RKNPU Softmax axis:%d not support, fallback CPU implement",
    "Softmax:transpose Perm{0, 2, 3, 1} RKNPU not support, fallback CPU implement",
    "Softmax:transpose Perm{0, 3, 1, 2} RKNPU not support, fallback CPU implement",
    "Transpose will fallback to CPU, because input shape has exceeded the max limit, %s",
    "Transpose will fallback to CPU, because shape has exceeded the max limit, %s",
    "Transpose: Not support transpose n, c now, Fallback CPU",
    "exSoftmax for w1: only support i8, fallback CPU implement",
    "exSoftmaxMask: RKNPU need enableLayoutMatch, fallback CPU implement",
    "exSoftmaxMask: fallback CPU implement",
    "pad_top %d > input_height %d, fallback to CPU pool",
)
"""What librknnc 2.3.2 and 2.5.0 can print of an operator that goes to the CPU, as in their message tables."""


def _row(kind: LineClass, needle: str, pattern: str, reason: str, evidence: str) -> KnownText:
    return KnownText(kind, needle, re.compile(pattern), reason, evidence)


def _fallback(text: str) -> KnownText:
    pattern = re.escape(text).replace("%d", r"-?\d+").replace("%s", ".*")
    needle = max(re.split("%[ds]", text), key=len)
    reason = "an operator that the NPU declines in this shape runs on the CPU: slow, not wrong"
    evidence = (
        "cases.md, log_fallback" if text == _FALLBACK_FORMATS[0] else "message table of librknnc; printed by no test"
    )
    return _row(LineClass.FALLBACK, needle, pattern, reason, evidence)


KNOWN_TEXTS = (
    _row(
        LineClass.RANDOM_WEIGHTS,
        "Generate random data for test",
        r"(?:Load external data for '(?P<tensor>.*)' failed! )?Generate random data for test",
        "weights are missing and random numbers stand in for them; every return code is 0",
        "measured, 2.3.2: a model without its external data file; a W line",
    ),
    _row(
        LineClass.NO_KERNEL,
        "No lowering found for",
        r"No lowering found for(?:: (?P<node>.*), node type = (?P<op>[^,]*))?",
        "the board has no kernel for this operator; build returns 0 and the simulator is right",
        "measured, 2.3.2 and 2.5.0: Atan, RandomNormalLike; on fd 1, without a level, often only when the process ends",
    ),
    _row(
        LineClass.BAD_TENSOR,
        "invalid tensor malloc size",
        r"invalid tensor malloc size(?:, tensor name: (?P<tensor>.*), target: \w*, size: \d+)?",
        "a tensor of the engine has no memory (`invalid tensor reset size`, a W line, is on every good build)",
        "cases.md, log_zero_tensor",
    ),
    _row(
        LineClass.UNKNOWN_TARGET,
        "op target: ",
        r"Unkn?own op target: [\w.-]+",
        "noise on ordinary graphs",
        "measured, 2.3.2 and 2.5.0: 4 on every Piper build; Slice with step -1, ConvTranspose, reflect Pad",
    ),
    *(_fallback(text) for text in _FALLBACK_FORMATS),
    _row(
        LineClass.NOISE,
        "rknn-toolkit2 version: ",
        r"rknn-toolkit2 version: \S+",
        "the toolkit repeats its version, at level E, under each error of its own",
        "measured, 2.3.2: under every `E load_onnx:` and `E build:`",
    ),
)
"""In order of precedence. Of lines that hold none of these, E lines are unknown errors, the rest is noise."""
