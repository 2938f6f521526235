"""Recognising in a log which fuse rule of the toolkit crashed."""

from __future__ import annotations

import pytest

from engine.fuse_rules import crashed_rule

ADVICE = "W You can add disable_rules=['{}'] in rknn.config() to temporarily disable the error rule!"
TRACEBACK = "E build: Traceback (most recent call last):"
OPTIMIZER = '  File "rknn/api/graph_optimizer.py", line 2181, in rknn.api.graph_optimizer.GraphOptimizer.fuse_ops'
FRAME = '  File "rknn/api/rules/{}.py", line 1863, in rknn.api.rules.{}.{}'
ERROR = "IndexError: too many indices for array: array is 3-dimensional, but 4 were indexed"

MERGE = "merge_conv_channel_inner_perm"
MERGE_FRAME = FRAME.format("matmul", "matmul", "_p_merge_weight_inner_perm")


@pytest.mark.parametrize(
    ("lines", "rule"),
    [
        ([f"Rule: {MERGE}", ADVICE.format(MERGE), TRACEBACK, OPTIMIZER, MERGE_FRAME, ERROR], MERGE),
        # the toolkit prints the traceback three times, and the worker once more
        ([ADVICE.format(MERGE), TRACEBACK, MERGE_FRAME, ERROR, TRACEBACK, MERGE_FRAME, f"ValueError: {ERROR}"], MERGE),
        (
            [ADVICE.format("swap_expand_transpose").replace("W ", "W build: "), TRACEBACK, ERROR],
            "swap_expand_transpose",
        ),
        ([TRACEBACK, OPTIMIZER, MERGE_FRAME, ERROR], "merge_weight_inner_perm"),
        ([TRACEBACK, FRAME.format("swap", "swap", "_swap_transpose_expand"), ERROR], "swap_transpose_expand"),
        (
            [TRACEBACK, FRAME.format("matmul", "matmul", "_p_fuse_mul_into_sdpa.<locals>.can_broadcast"), ERROR],
            "fuse_mul_into_sdpa",
        ),
        # the innermost frame of two
        ([TRACEBACK, MERGE_FRAME, FRAME.format("dims", "dims", "_p_opt_dims"), ERROR], "opt_dims"),
    ],
)
def test_crashed_rule_is_named_when_the_toolkit_advises_or_its_traceback_tells(lines: list[str], rule: str) -> None:
    assert crashed_rule(lines) == rule


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["D fuse_ops ...", f"D     {MERGE}: remove node = ['a'], add node = ['b']", "I rknn building done."],
        [ADVICE.format(MERGE)],  # nothing raised
        [TRACEBACK, OPTIMIZER, ERROR],
        [TRACEBACK, "KeyError: 'cond'"],
        [TRACEBACK, "ValueError: " + ADVICE.format(MERGE), ERROR],  # no line of its own
        [TRACEBACK, ADVICE.format("a b'; import os"), ERROR],
        [TRACEBACK, '  File "rules/matmul.py", line 1, in <module>', ERROR],
    ],
)
def test_crashed_rule_is_none_when_no_rule_crashed(lines: list[str]) -> None:
    assert crashed_rule(lines) is None
