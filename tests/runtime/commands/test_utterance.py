"""What is to be spoken, as the command line says it."""

from __future__ import annotations

import argparse

import pytest
from rknn_tts_runtime.commands.utterance import add_utterance_arguments, asked_by, ids_of
from rknn_tts_runtime.faults import BadInput
from rknn_tts_runtime.speaking.speaker import Asked


def asked(*arguments: str) -> Asked:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_utterance_arguments(parser, required=True)
    return asked_by(parser.parse_args(arguments))


def test_asked_by_takes_what_was_given() -> None:
    assert asked("--ids", "1,0, 20 0,2", "--speaker", "3", "--speed", "1.5", "--seed", "7") == Asked(
        ids=(1, 0, 20, 0, 2), speaker=3, speed=1.5, seed=7
    )
    assert asked("--text", "Hello").text == "Hello"
    assert asked("--phonemes", "həlˈoʊ").phonemes == "həlˈoʊ"


@pytest.mark.parametrize("text", ["", " ", "1,x", "1,-2", "1.5", "1e3", "٣", "1" * 11, ","])
def test_ids_of_refuses_what_is_no_list_of_ids(text: str) -> None:
    with pytest.raises(BadInput, match="whole numbers are expected"):
        ids_of(text)


def test_ids_of_refuses_more_than_an_utterance_has() -> None:
    with pytest.raises(BadInput, match="65537 are too many at once, 65536"):
        ids_of("1," * 65537)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--text", " "), "--text: there is nothing to speak"),
        (("--phonemes", ""), "--phonemes: there is nothing to speak"),
        (("--text", "a\udcff"), "--text: is not valid UTF-8"),
        (("--ids", "1", "--speed", "0"), "--speed 0.0: expected from 0.1 to 10"),
        (("--ids", "1", "--speed", "nan"), "--speed nan"),
        (("--ids", "1", "--speaker", "-1"), "--speaker -1: expected from 0"),
        (("--ids", "1", "--seed", str(2**31)), "--seed 2147483648"),
    ],
)
def test_asked_by_refuses_what_cannot_be_spoken(arguments: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence.replace(".", r"\.")):
        asked(*arguments)
