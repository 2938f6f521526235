from __future__ import annotations

import pytest

from rknn_tts.hints import did_you_mean


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("rk3589", " Did you mean rk3588?"),
        ("RK3588S", " Did you mean rk3588?"),
        ("piper", ""),
        ("stm32", ""),
        ("", ""),
    ],
)
def test_did_you_mean_names_the_nearest_when_there_is_one(word: str, hint: str) -> None:
    assert did_you_mean(word, ["rk3588", "rk2118", "piper"]) == hint
