"""Which of the toolkit's own fuse rules a build crashed in; switched off, the same graph often builds.

A rule rewrites one pattern of the graph, and some raise on what they match. The toolkit then prints the name that
`config(disable_rules=[...])` takes, and a traceback (measured, 2.3.2 and 2.5.0):

    W You can add disable_rules=['merge_conv_channel_inner_perm'] in rknn.config() to temporarily disable ...
    E build: Traceback (most recent call last):
      File "rknn/api/rules/matmul.py", line 1863, in rknn.api.rules.matmul._p_merge_weight_inner_perm
    IndexError: too many indices for array: array is 3-dimensional, but 4 were indexed

The traceback's function may serve several rules and have another name than each: here `merge_weight_inner_perm`, which
switches off nothing. So it is asked only where the toolkit gives no advice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_ADVICE = re.compile(r"W (?:\w+: )?You can add disable_rules=\['(\w+)'\] in rknn\.config\(\)")
_FRAME = re.compile(r' *File "rknn/api/rules/\w+\.py", line \d+, in rknn\.api\.rules\.\w+\.(?:_p)?_?(\w+)')
_TRACEBACK = "Traceback (most recent call last):"


def crashed_rule(lines: Iterable[str]) -> str | None:
    """The rule that the clean log `lines` of a failed build say it crashed in; None where they show no such crash."""
    advised = framed = None
    raised = False
    for line in lines:
        if match := _ADVICE.match(line):
            advised = match[1]
        elif match := _FRAME.match(line):
            framed = match[1]
        elif line.endswith(_TRACEBACK):
            raised = True
    return (advised or framed) if raised else None
