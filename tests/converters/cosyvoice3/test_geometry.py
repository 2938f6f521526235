from __future__ import annotations

import pytest

from contracts.errors import UserInput
from converters.cosyvoice3.geometry import lengths_of, notes_on, roles, stem_of
from converters.stages import StageOptions


def test_the_ladder_is_the_references_by_default() -> None:
    assert roles(StageOptions()) == ("s110", "s200", "s250", "s400")
    assert stem_of(110) == "cosyvoice3-flow-s110"


def test_lengths_are_taken_as_they_are_asked_for() -> None:
    assert lengths_of(StageOptions(lengths="16, 200,2000")) == (16, 200, 2000)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("", "whole numbers of frames"),
        ("200,200", "ascending"),
        ("200,110", "ascending"),
        ("-5", "whole numbers"),
        ("1e2", "whole numbers"),
        ("1,2,3,4,5,6,7,8,9", "at most 8"),
        ("0", "takes 16 frames or more"),
        ("15,200", "what is shorter is padded"),
        ("100000", "takes 2000 frames at most"),
        ("200,2001", "2000 frames at most, for on the reference's board engines of 900 frames and more did not load"),
    ],
)
def test_other_lengths_are_refused(asked: str, told: str) -> None:
    with pytest.raises(UserInput, match=told):
        roles(StageOptions(lengths=asked))


def test_engines_longer_than_the_reference_loads_have_a_word_of_warning() -> None:
    assert notes_on(500) == ()
    (note,) = notes_on(501)
    assert note.startswith("An engine of 501 frames may not load: on the reference's board engines of 900 frames")
