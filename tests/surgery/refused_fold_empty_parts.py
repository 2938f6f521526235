"""Splits whose empty part somebody asked for."""

from __future__ import annotations

from surgery.fold_empty_parts import A_LENGTH, fold_empty_parts
from tests.surgery.refusals import Refusal
from tests.surgery.split_graphs import parts

REFUSALS = (
    Refusal(fold_empty_parts(), A_LENGTH, "cut", "'p1' is a part of length 0", lambda: parts([8, 0], outputs=[1])),
    Refusal(fold_empty_parts(), A_LENGTH, "cut", "'p0' is a part", lambda: parts([0, 3, 5], outputs=[0, 1])),
)
