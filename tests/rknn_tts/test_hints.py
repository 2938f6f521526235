from __future__ import annotations

import pytest

from rknn_tts.hints import called, did_you_mean


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


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("tokens", "tokens"),
        ("input", "'input'"),
        ("input_ids", "input_ids"),
        ("is", "'is'"),
        ("a b", "'a b'"),
        ("", "''"),
    ],
)
def test_called_quotes_a_name_that_would_be_read_as_the_sentence(name: str, shown: str) -> None:
    assert called(name) == shown
