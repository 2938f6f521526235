"""The default voice's duration encoder, a real one, to rk3588: the figures that were measured for it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from contracts.verdicts import Status
from rknn_tts.steps import CHECKPOINTS_FOLDER
from tests.rknn_tts.workshop import new_workshop

SIMULATOR_DB = 57.0
"""Issue 7's facts: 57 to 63 dB; 62.8 measured at 128 tokens."""

DRIFT_PERCENT = 7.0
"""Issue 7, up to 192 tokens; 0.6 measured."""

CPU_LAYERS = {"Gather", "Less", "Reshape"}
"""Of the embedding, the mask and the count of tokens; before `rewrite_masked_choices` there was an Equal of N x N."""

MOST_BYTES = 18_800_000
"""The prototype's engine (family-facts); 16.5 MB measured."""


def test_default_voices_durations_are_encoded_on_the_npu(
    fetched_voice: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    workshop = new_workshop(tmp_path_factory)
    shutil.copytree(fetched_voice, workshop.cache / CHECKPOINTS_FOLDER / fetched_voice.name)
    built = workshop.build(stage="duration_encoder", widths="128")
    assert {verdict.status for verdict in built.verdicts} == {Status.PASSED}
    measured = {verdict.gate: verdict.measured for verdict in built.verdicts}
    simulated, drift = measured["simulator"], measured["simulator.drift"]
    assert isinstance(simulated, float)
    assert isinstance(drift, float)
    assert simulated >= SIMULATOR_DB
    assert drift <= DRIFT_PERCENT
    manifest = built.manifest
    assert manifest is not None
    assert manifest.layers is not None
    assert {layer.op for layer in manifest.layers.cpu} == CPU_LAYERS
    assert manifest.engine.bytes <= MOST_BYTES
    assert [spec.shape for spec in manifest.outputs] == [(1, 384, 1, 128), (1, 192, 1, 128)]
