from __future__ import annotations

import pytest

from gates.sentences import listed


@pytest.mark.parametrize(
    ("names", "sentence"),
    [("", ""), ("a", "a"), ("abcde", "a, b, c, d, e"), ("abcdefg", "a, b, c, d, e and 2 more")],
)
def test_listed_counts_the_rest_when_there_are_more_than_five(names: str, sentence: str) -> None:
    assert listed(names) == sentence
    assert listed(iter(names)) == sentence
    assert listed(names, between="; ") == sentence.replace(", ", "; ")
