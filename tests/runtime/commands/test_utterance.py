"""What is to be spoken, as the command line says it."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rknn_tts_runtime.commands.utterance import add_utterance_arguments, asked_by, codes_in, ids_of
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


def test_asked_by_reads_codes(tmp_path: Path) -> None:
    codes = np.arange(32).reshape(16, 2)
    for name, array in (("a.npy", codes), ("b.npy", codes[None])):
        np.save(tmp_path / name, array)
        given = asked("--codes", str(tmp_path / name)).codes
        assert given is not None
        np.testing.assert_array_equal(given, codes)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (np.zeros((16, 2), np.float32), "is no .npy file of whole numbers"),
        (np.zeros((2, 16, 2), np.int64), r"expected \[Q, N\] whole numbers, Q codebooks, not \[2, 16, 2\]"),
        (np.zeros((16, 0), np.int64), r"not \[16, 0\]"),
        (np.array([{}]), "is no .npy file of numbers"),  # pickled: it is not opened
        (b"RIFF", "is no .npy file of numbers"),
        (b"", "is no .npy file of numbers"),
        (b"PK\x03\x04abc", "is no .npy file of numbers"),
    ],
)
def test_codes_in_refuses_what_is_no_file_of_codes(data: NDArray[Any] | bytes, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "codes.npy"
    if isinstance(data, bytes):
        path.write_bytes(data)
    else:
        np.save(path, data)
    with pytest.raises(BadInput, match=sentence):
        codes_in(path)


def test_codes_in_refuses_files_that_are_missing_or_huge(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"gone\.npy: cannot be read \(No such file"):
        codes_in(tmp_path / "gone.npy")
    with (tmp_path / "huge.npy").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(BadInput, match="has 1099511627776 bytes"):
        codes_in(tmp_path / "huge.npy")
    os.mkfifo(tmp_path / "pipe.npy")  # it would be waited for
    with pytest.raises(BadInput, match=r"pipe\.npy: is no file"):
        codes_in(tmp_path / "pipe.npy")
