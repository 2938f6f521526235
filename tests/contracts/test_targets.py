"""The chips that are known."""

from __future__ import annotations

import pytest

from contracts.targets import EVERY_TARGET, TARGETS, check_target


@pytest.mark.parametrize("target", [None, *TARGETS])
def test_target_is_taken_when_it_is_known_or_left_open(target: str | None) -> None:
    check_target(target)


@pytest.mark.parametrize("target", ["", "rk3588s", "RK3588", "rv1106"])
def test_target_is_refused_with_those_that_are_known_when_it_is_none_of_them(target: str) -> None:
    with pytest.raises(ValueError, match=f"^nothing is known of the target {target}: it has to be one of rk3562, .*"):
        check_target(target)


def test_every_target_is_each_of_them_once() -> None:
    assert sorted(EVERY_TARGET) == list(TARGETS)
