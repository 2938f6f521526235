from __future__ import annotations

from rknn_tts.blocks import plain_text
from rknn_tts.graph_cost import GraphCost
from rknn_tts.present_trial import trial_blocks
from rknn_tts.trial import BEFORE, Trial, Tried


def tried(name: str, fault: str) -> Tried:
    return Tried(name, 0, (), None, 3, GraphCost(fault=fault))


def trial(*rows: Tried) -> Trial:
    return Trial("net.onnx", "rk3588", rows, None, "", None, (), None)


def test_what_does_not_build_is_told_once_for_all_that_have_the_same_fault() -> None:
    rows = [tried(BEFORE, "No kernel."), tried("fold_scales", "No kernel."), tried("fold_shifts", "No memory.")]
    lines = plain_text(trial_blocks(trial(*rows))).splitlines()
    assert lines[-2:] == ["does not build: before, fold_scales: No kernel.", "does not build: fold_shifts: No memory."]
