from __future__ import annotations

import pytest

from contracts.errors import UserInput
from converters.cosyvoice2.speaker_lengths import length_of, lengths_of, roles
from converters.stages import StageOptions


@pytest.mark.parametrize(("asked", "lengths"), [(None, (200, 400)), ("600", (600,)), ("1000, 200", (200, 1000))])
def test_lengths_are_those_asked_for(asked: str | None, lengths: tuple[int, ...]) -> None:
    options = StageOptions(lengths=asked)
    assert lengths_of(options) == lengths
    assert [length_of(role) for role in roles(options)] == list(lengths)
    assert roles(options)[0] == f"t{lengths[0]}"


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("", "different whole numbers"),
        ("200,", "different whole numbers"),
        ("200,200", "different whole numbers"),
        ("-200", "different whole numbers"),
        ("2e2", "different whole numbers"),
        (",".join(map(str, range(200, 2000, 200))), "at most 8"),
        ("300", "takes 200 frames or a multiple of that, up to 1000"),
        ("200,1200", "takes 200 frames or a multiple of that, up to 1000"),
        ("200000", "takes 200 frames or a multiple of that, up to 1000"),
        ("0", "takes 200 frames or a multiple of that, up to 1000"),
    ],
)
def test_other_lengths_are_refused(asked: str, says: str) -> None:
    with pytest.raises(UserInput, match=says):
        roles(StageOptions(lengths=asked))
