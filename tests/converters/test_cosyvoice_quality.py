from __future__ import annotations

import math

from contracts.quality import quality_fault
from converters.cosyvoice_quality import OTHER_COSINE, OTHER_L1, REFERENCE_COSINE, REFERENCE_L1, mel_figures


def test_figures_are_two_gates_and_a_measurement() -> None:
    figures = mel_figures("mu", 0.9999, 0.01, "the mean", "mask")
    assert [(item.figure, item.bound) for item in figures] == [
        ("mel_cosine", 0.9999),
        ("mel_l1_relative", 0.01),
        ("mel_l1", None),
    ]
    assert {(item.output, item.mask) for item in figures} == {("mu", "mask")}
    assert quality_fault(figures, {"mask"}, {"mu"}) is None


def test_share_is_what_the_references_two_figures_make_together() -> None:
    """Errors of a normal distribution have a root mean square of sqrt(pi / 2) times their mean absolute value."""
    relative = math.sqrt(2 * (1 - REFERENCE_COSINE))
    values_rms = 0.016937 * math.sqrt(math.pi / 2) / relative
    assert 0.016937 / values_rms < REFERENCE_L1 < 0.016937 / (values_rms * math.sqrt(2 / math.pi))
    assert (OTHER_COSINE, OTHER_L1) == (0.9999, 0.01)
