"""Which stage of a build a line of the toolkit's log belongs to."""

from __future__ import annotations

import re

from logs.lines import parse_progress

_PYTHON_STAGE = re.compile(r"D (\w+) \.\.\.")
_NATIVE_PASS = re.compile(r"D RKNN: \[[\d:.]+\] >>>>>> start: (?:rknn::)?(?:RKNN)?(\w+)")
_BARS = {"Loading": "loading", "GraphPreparing": "simulator", "SessionPreparing": "simulator"}


def stage_of(line: str) -> str | None:
    """The stage that the clean log line `line` starts, as a few words; None where it starts none.

    The toolkit's stages in order (measured, 2.3.2): a bar "Loading"; `D base_optimize ...`, `fold_constant`,
    `correct_ops`, `fuse_ops`, `sparse_weight`; `I rknn building ...`, then native passes (`>>>>>> start: ...`); the
    simulator's two bars.
    """
    if line == "I rknn building ...":
        return "compiling"
    if match := _PYTHON_STAGE.fullmatch(line):
        return match[1].replace("_", " ")
    if match := _NATIVE_PASS.fullmatch(line):
        return f"compiling: {match[1]}"
    if progress := parse_progress(line):
        return _BARS.get(progress.stage)
    return None
