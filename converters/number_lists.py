"""Lists of numbers that a user gives for an option, one engine for each: `--lengths 110,200`. No torch."""

from __future__ import annotations

import re
from itertools import pairwise

from contracts.errors import UserInput

MOST = 8
"""Engines of one ladder: what is more is a slip of the keyboard."""

_NUMBER = re.compile(r"\d{1,9}")


def ascending_numbers(option: str, text: str, unit: str, example: str) -> tuple[int, ...]:
    """The numbers in `text`, which are in ascending order.

    Args:
        option: its name, without dashes.
        text: what the user gave.
        unit: of the numbers, for a sentence ("frames").
        example: what may be given.

    Raises:
        UserInput: they are no whole numbers of up to nine digits, not ascending, or too many.
    """
    numbers = _numbers(text)
    if numbers is None or not all(one < other for one, other in pairwise(numbers)):
        raise _refusal(option, text, f"whole numbers of {unit} are expected, ascending,", example)
    return numbers


def different_numbers(option: str, text: str, unit: str, example: str) -> tuple[int, ...]:
    """The numbers in `text`, in whatever order, as ascending ones; see `ascending_numbers`.

    Raises:
        UserInput: they are no whole numbers of up to nine digits, or too many, or one is there twice.
    """
    numbers = _numbers(text)
    if numbers is None or len(set(numbers)) != len(numbers):
        raise _refusal(option, text, f"different whole numbers of {unit} are expected,", example)
    return tuple(sorted(numbers))


def _numbers(text: str) -> tuple[int, ...] | None:
    words = [word.strip() for word in text.split(",")]
    if len(words) > MOST or not all(_NUMBER.fullmatch(word) for word in words):
        return None
    return tuple(map(int, words))


def _refusal(option: str, text: str, expected: str, example: str) -> UserInput:
    return UserInput(f"--{option} {text:.60}: {expected} at most {MOST} of them, as in {example}.")
