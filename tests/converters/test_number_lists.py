from __future__ import annotations

import pytest

from contracts.errors import UserInput
from converters.number_lists import ascending_numbers, different_numbers


def test_ascending_numbers_are_taken_as_they_are() -> None:
    assert ascending_numbers("lengths", "16, 200,2000", "frames", "1,2") == (16, 200, 2000)
    assert ascending_numbers("lengths", "0", "frames", "1,2") == (0,)


def test_different_numbers_are_sorted() -> None:
    assert different_numbers("buckets", "40, 32", "frames", "1,2") == (32, 40)


NONE = ["", "a", "12.5", "128,", "-3", "1e2", "1234567890", "1,2,3,4,5,6,7,8,9", "8,8"]


@pytest.mark.parametrize("asked", [*NONE, "192,128"])
def test_what_is_no_ascending_list_is_refused(asked: str) -> None:
    with pytest.raises(UserInput) as error:
        ascending_numbers("widths", asked, "tokens", "128,192")
    assert str(error.value) == (
        f"--widths {asked}: whole numbers of tokens are expected, ascending, at most 8 of them, as in 128,192."
    )


@pytest.mark.parametrize("asked", NONE)
def test_what_is_no_list_of_different_numbers_is_refused(asked: str) -> None:
    with pytest.raises(UserInput) as error:
        different_numbers("buckets", asked, "mel frames", "32,40")
    assert str(error.value) == (
        f"--buckets {asked}: different whole numbers of mel frames are expected, at most 8 of them, as in 32,40."
    )


def test_long_text_is_cut() -> None:
    with pytest.raises(UserInput, match=f"--widths {'1' * 60}: whole"):
        ascending_numbers("widths", "1" * 99, "tokens", "128,192")
