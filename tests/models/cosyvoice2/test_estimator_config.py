"""Names and shapes of the estimator's weights against the original's."""

from __future__ import annotations

from math import prod

from models.cosyvoice2.estimator_config import TRUE_CONFIG, layout
from tests.cosyvoice2_estimator import SMALL, original


def test_layout_is_the_originals() -> None:
    assert layout(SMALL) == {name: tuple(tensor.shape) for name, tensor in original().state_dict().items()}


def test_published_estimator_has_71_million_numbers() -> None:
    """As the published one (family-facts)."""
    assert round(sum(map(prod, layout(TRUE_CONFIG).values())) / 1e6, 1) == 71.3
    assert (TRUE_CONFIG.given, TRUE_CONFIG.heads, len(TRUE_CONFIG.layers)) == (320, 8, 56)
