"""Names in a sentence: each once, and no more than a person reads."""

from __future__ import annotations

import pytest
from rknn_tts_runtime.speaking.listed import listed


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ("", ""),
        ("a", "a"),
        ("bab", "b, a"),
        ("abcdefghij", "a, b, c, d, e, f, g, h, i, j"),
        ("abcdefghijkla", "a, b, c, d, e, f, g, h, i, j and 2 more"),
    ],
)
def test_listed_names_each_once_and_counts_the_rest(names: str, told: str) -> None:
    assert listed(names) == told
