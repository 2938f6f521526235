"""Verdicts that only a board can give have names of their own."""

from __future__ import annotations

from pathlib import Path

from contracts.manifest import read_manifest
from rknn_tts.verify_gates import unproven_places
from tests.rknn_tts.signed_results import write_probed_engine


def test_names_of_unproven_verdicts_tell_fields_apart(tmp_path: Path) -> None:
    manifest = read_manifest(write_probed_engine(tmp_path).with_suffix(".json"))
    assert unproven_places(manifest) == {"log.regtask:v2:0x4038:0:0x1fff": 1, "log.regtask:v2:0x5048:0:0x1fff": 2}
