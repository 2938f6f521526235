"""The file of lengths: read, refused, and turned into frames."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from contracts.errors import UserInput
from rknn_tts.tune.utterance_lengths import SCHEMA, in_frames, read_lengths

GIVEN = {"schema": SCHEMA, "name": "of a test", "source": "invented", "lengths": [[1.0, 3], [2.5, 1]]}


def write(folder: Path, **changes: Any) -> Path:
    path = folder / "lengths.json"
    path.write_text(json.dumps({**GIVEN, **changes}), encoding="utf-8")
    return path


def test_lengths_are_read_when_the_file_is_right(tmp_path: Path) -> None:
    found = read_lengths(write(tmp_path))
    assert (found.name, found.source, found.derivation) == ("of a test", "invented", "")
    assert found.lengths == ((1.0, 3.0), (2.5, 1.0))
    assert found.mean_s == pytest.approx((3 * 1 + 2.5) / 4)


def test_frames_take_the_shares_of_their_lengths_when_a_rate_is_given(tmp_path: Path) -> None:
    # 10 frames a second: 10 and 25 frames; 0.5 s and 0.52 s are both 5 frames, and 1 ms is one frame.
    assert in_frames(read_lengths(write(tmp_path)), 10.0) == {10: 0.75, 25: 0.25}
    path = write(tmp_path, lengths=[[0.5, 1], [0.001, 2], [0.52, 1]])
    assert in_frames(read_lengths(path), 10.0) == {1: 0.5, 5: 0.5}


def test_default_lengths_are_what_their_source_says() -> None:
    found = read_lengths()
    # Half LJ Speech, whose page states a mean of 6.57 s, and half VCTK at the same rate: 1,720,038 characters in
    # 44,070 texts, 15.196 a second. Bins of 0.25 s move a mean by little.
    assert found.mean_s == pytest.approx((6.57 + 1_720_038 / 44_070 / 15.196) / 2, abs=0.01)
    seconds = [length for length, _ in found.lengths]
    assert seconds == sorted(seconds)
    assert (min(seconds), max(seconds)) == (0.625, 12.375)
    assert sum(weight for _, weight in found.lengths) == pytest.approx(100, abs=0.01)
    assert "jaywalnut310/vits" in found.source
    assert "no recording was measured" in found.derivation


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"schema": "rknn-tts/engine/1"}, "its schema is not 'rknn-tts/utterance-lengths/1'"),
        ({"lengths": []}, "it holds 0 lengths, and 1 to 200 are expected"),
        ({"lengths": [[1, 1]] * 1001}, "it holds 1001 lengths"),
        ({"lengths": [[1, 1], [2]]}, "lengths[1] is no pair of seconds and weight"),
        ({"lengths": [[1, 1, 1]]}, "lengths[0] is no pair of seconds and weight"),
        ({"lengths": [[0, 1]]}, "lengths[0] is of 0 s, and more than 0 and at most 600 are expected"),
        ({"lengths": [[-1, 1]]}, "lengths[0] is of -1 s"),
        ({"lengths": [["nan", 1]]}, "lengths[0] is of nan s"),
        ({"lengths": [[601, 1]]}, "lengths[0] is of 601 s"),
        ({"lengths": [[1, 0]]}, "lengths[0] has the weight 0"),
        ({"lengths": [[1, "inf"]]}, "lengths[0] has the weight inf"),
        ({"lengths": [[1, 1e308], [2, 1e308]]}, "lengths[0] has the weight 1e+308"),  # their sum is no number
        ({"lengths": [["long", 1]]}, "lengths.lengths[0][0]: float was expected, not 'long'"),
        ({"lengths": 3}, "lengths.lengths: "),
        ({"name": 3}, "lengths.name: str was expected, not 3"),
    ],
)
def test_lengths_are_refused_in_one_sentence_when_they_are_none(
    tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    path = write(tmp_path, **changes)
    with pytest.raises(UserInput) as refused:
        read_lengths(path)
    assert str(refused.value).startswith(f"{path}: {sentence}")
    assert str(refused.value).endswith("is read.")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"{", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[]", "its schema is not"),
        (b" " * (1 << 21), "is over 1 MB"),
    ],
)
def test_lengths_are_refused_when_the_file_is_no_json(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "lengths.json"
    path.write_bytes(content)
    with pytest.raises(UserInput, match=sentence):
        read_lengths(path)


def test_lengths_are_refused_when_the_file_is_a_pipe_or_a_device(tmp_path: Path) -> None:
    pipe, device = tmp_path / "pipe.json", tmp_path / "device.json"
    os.mkfifo(pipe)
    device.symlink_to("/dev/zero")
    for path in (pipe, device):  # the one is waited for, the other has no end
        with pytest.raises(UserInput, match="is no regular file"):
            read_lengths(path)


def test_lengths_are_refused_when_the_file_is_missing_or_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UserInput, match="cannot be read"):
        read_lengths(tmp_path / "none.json")
    with pytest.raises(UserInput, match="cannot be read"):
        read_lengths(tmp_path)
