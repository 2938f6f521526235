"""What a person reads of an engine's precision."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contracts.quantisation import Quantisation
from rknn_tts.present import manifest_pairs
from tests.contracts.samples import MANIFEST, SHA


@pytest.mark.parametrize(
    ("calibration", "told"),
    [
        ("file", "w8a8, ranges found on 40 given inputs (normal, by channel)"),
        ("synthetic", "w8a8, ranges found on 40 seeded random inputs (normal, by channel)"),
        ("feeds", "w8a8, ranges found on 40 of the inputs that it is judged on (normal, by channel)"),
    ],
)
def test_summary_tells_what_ranges_were_found_on(calibration: str, told: str) -> None:
    found = Quantisation(calibration=calibration, windows=40, sha256=SHA)
    assert ("precision", told) in manifest_pairs(replace(MANIFEST, quantisation=found))


def test_summary_of_fp16_has_no_line_about_it() -> None:
    assert "precision" not in dict(manifest_pairs(MANIFEST))
