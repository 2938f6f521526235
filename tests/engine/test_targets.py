"""Which names of chips are understood."""

from __future__ import annotations

import pytest

from contracts.errors import UserInput
from engine.targets import resolve_target


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("rk3562", "rk3562"),
        ("rk3566", "rk3566"),
        ("rk3568", "rk3568"),
        ("rk3576", "rk3576"),
        ("rk3588", "rk3588"),
        ("rk3588s", "rk3588"),
        ("RK3588S", "rk3588"),
        (" Rk3566 ", "rk3566"),
    ],
)
def test_target_is_understood_when_it_can_be_built_for(name: str, target: str) -> None:
    assert resolve_target(name) == target


@pytest.mark.parametrize("name", ["rk3399", "", "rk3588x", "3588", "rk3566s", "rv1126", "rk３５８８"])
def test_target_is_refused_with_the_choices_when_it_is_unknown(name: str) -> None:
    with pytest.raises(UserInput, match="is unknown; choose one of rk3562, rk3566, rk3568, rk3576, rk3588 "):
        resolve_target(name)


@pytest.mark.parametrize("name", ["rv1103", "RV1103B", "rv1106", "rv1106b", "rv1126b", "rk2118"])
def test_target_is_refused_in_other_words_when_only_the_toolkit_knows_it(name: str) -> None:
    with pytest.raises(UserInput, match=f"'{name}' is one that the toolkit knows, but .* choose one of rk3562"):
        resolve_target(name)
