from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from contracts.errors import UserInput
from converters.kokoro.voices import Voices, read_voices, style_of, tokens_of
from tests.kokoro_writer.speaking import VOCABULARY, VOICE_NAMES, write_voices
from tests.mutations import mutations

STYLES = np.arange(12, dtype=np.float32).reshape(3, 1, 4)
"""Of a voice that has been trained for up to three phonemes."""

THREE = Voices({"one": STYLES}, {"a": 1, "b": 2})


def test_read_voices_gives_styles_by_name_and_the_vocabulary_beside_them(tmp_path: Path) -> None:
    found = read_voices(write_voices(tmp_path))
    assert tuple(found.styles) == VOICE_NAMES
    assert found.first == "first"
    assert found.vocabulary == VOCABULARY
    assert {(style.shape, style.dtype.name) for style in found.styles.values()} == {((300, 1, 8), "float32")}


def test_read_voices_sorts_names(tmp_path: Path) -> None:
    path = write_voices(tmp_path)
    np.savez(path, b=STYLES, a=STYLES)
    assert tuple(read_voices(path).styles) == ("a", "b")


@pytest.mark.parametrize("gone", ["voices_ja.npz", "vocab.json"])
def test_read_voices_says_what_to_do_when_a_file_is_missing(tmp_path: Path, gone: str) -> None:
    path = write_voices(tmp_path)
    (tmp_path / gone).unlink()
    with pytest.raises(UserInput, match=r"voices_ja\.npz: its voices .* remove the folder, and it is fetched again"):
        read_voices(path)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x80\x04N.", b"words"])
def test_read_voices_says_what_to_do_when_the_voices_are_none(tmp_path: Path, content: bytes) -> None:
    path = write_voices(tmp_path)
    path.write_bytes(content)
    with pytest.raises(UserInput, match=r"cannot be read .* it is fetched again"):
        read_voices(path)


def test_read_voices_says_what_to_do_when_the_file_is_one_array(tmp_path: Path) -> None:
    path = write_voices(tmp_path)
    with path.open("wb") as file:
        np.save(file, STYLES)
    with pytest.raises(UserInput, match="cannot be read"):
        read_voices(path)


@pytest.mark.parametrize("content", ["", "[]", "{}", '"vocab"', '{"vocab": ', "\udcff"])
def test_read_voices_says_what_to_do_when_the_vocabulary_is_none(tmp_path: Path, content: str) -> None:
    path = write_voices(tmp_path)
    (tmp_path / "vocab.json").write_text(content, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(UserInput, match=r"the vocabulary vocab\.json beside it cannot be read"):
        read_voices(path)


def test_read_voices_reads_or_refuses_when_the_file_is_damaged_anywhere(tmp_path: Path) -> None:
    path = write_voices(tmp_path)
    with path.open("wb") as file:
        np.savez_compressed(file, one=STYLES, two=STYLES)
    for damaged in mutations(path.read_bytes(), 300):
        path.write_bytes(damaged)
        try:
            read_voices(path)
        except UserInput as error:
            assert "it is fetched again" in str(error)  # noqa: PT017 - some damage is harmless


def test_read_voices_runs_nothing(tmp_path: Path) -> None:
    path = write_voices(tmp_path)
    np.savez(path, one=np.array([{"an": "object"}], dtype=object))
    with pytest.raises(UserInput, match="cannot be read"):
        read_voices(path)


@pytest.mark.parametrize(
    ("phonemes", "tokens"),
    [("ab", [0, 1, 2, 0]), ("", [0, 0]), ("bab", [0, 2, 1, 2, 0]), ("a b\N{SNOWMAN}", [0, 1, 2, 0])],
)
def test_tokens_stand_between_boundaries_and_leave_unknown_signs_out(phonemes: str, tokens: list[int]) -> None:
    made = tokens_of(phonemes, THREE)
    assert made.dtype == np.dtype(np.int64)
    assert made.tolist() == [tokens]


@pytest.mark.parametrize(
    ("phonemes", "row"), [("a", 0), ("ab", 1), ("aba", 2), ("abab", 2), ("", 0)]
)  # [lengths, 1, 2 S], the first for one phoneme: the reference's `pack[len(ps) - 1]`
def test_style_is_the_one_for_that_many_phonemes(phonemes: str, row: int) -> None:
    style = style_of("one", tokens_of(phonemes, THREE), THREE)
    assert style.tolist() == [[4 * row, 4 * row + 1, 4 * row + 2, 4 * row + 3]]
